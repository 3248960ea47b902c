// Small images and the store that holds each of them once, by number.
//
// An image keeps its cells row by row without gaps: a 2 x 3 image is 6 bytes. Cells that NumPy pads with 0 are not
// there at all, so a kernel is one loop over height * width bytes, which the compiler turns into vector instructions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

namespace jaxarc::search {

constexpr int kLargest = 30;  // rows and columns of an image at most
constexpr int kMostCells = kLargest * kLargest;
constexpr int kColors = 10;
constexpr int kNone = -1;  // the number of no image

using Cell = uint8_t;

// What an image is, beside its cells. A position may be negative.
struct Box {
  int row = 0;
  int column = 0;
  int height = 0;
  int width = 0;

  int size() const { return height * width; }
  bool operator==(const Box& other) const {
    return row == other.row && column == other.column && height == other.height && width == other.width;
  }
};

// An image of the store, whose cells stay where they are as long as the store lives.
struct Image : Box {
  const Cell* cells = nullptr;

  Cell at(int r, int c) const { return cells[r * width + c]; }
  // The color at a place that may lie outside of the image, where it is 0.
  Cell seen(int r, int c) const { return r < 0 || c < 0 || r >= height || c >= width ? Cell{0} : at(r, c); }
};

// An image that a kernel is about to write; without rows or columns it is no image.
struct Picture : Box {
  Cell cells[kMostCells + 8] = {};  // a hash reads whole words

  Cell& at(int r, int c) { return cells[r * width + c]; }
  Image image() const { return {*this, cells}; }
};

// Mixes words of 8 bytes: a product of 128 bits folded in half depends on all bits of both factors.
inline uint64_t mixed(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD6E8FEB86659FD93u);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_of(const void* bytes, size_t count, uint64_t seed) {
  const auto* place = static_cast<const unsigned char*>(bytes);
  uint64_t hash = mixed(seed, count);
  for (; count >= 8; count -= 8, place += 8) {
    uint64_t word;
    std::memcpy(&word, place, 8);
    hash = mixed(hash, word);
  }
  uint64_t word = 0;
  std::memcpy(&word, place, count);
  return mixed(hash, word);
}

template <typename Value>
int64_t bytes_of(const std::vector<Value>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(Value));
}

// Numbers hashes of 64 bits in the order in which they come. A slot that is taken sends the search to the next one.
class HashIndex {
 public:
  int64_t size() const { return count_; }
  int64_t num_bytes() const { return bytes_of(slots_); }

  // Return the number of a hash, and whether it is new.
  std::pair<int32_t, bool> number(uint64_t hash) {
    if (2 * count_ >= static_cast<int64_t>(slots_.size())) grow();
    Slot& slot = find(hash);
    if (slot.number != kNone) return {slot.number, false};
    slot = {hash, static_cast<int32_t>(count_++)};
    return {slot.number, true};
  }

  void clear() {
    slots_.assign(kSlots, Slot{0, kNone});
    count_ = 0;
  }

  // Return the number of a hash, or kNone.
  int32_t known(uint64_t hash) const { return slots_[place_of(hash)].number; }

 private:
  struct Slot {
    uint64_t hash;
    int32_t number;
  };

  size_t place_of(uint64_t hash) const {
    size_t place = hash & (slots_.size() - 1);
    while (slots_[place].number != kNone && slots_[place].hash != hash) place = (place + 1) & (slots_.size() - 1);
    return place;
  }

  Slot& find(uint64_t hash) { return slots_[place_of(hash)]; }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2, Slot{0, kNone});
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kNone) find(slot.hash) = slot;
    }
  }

  static constexpr size_t kSlots = 1024;
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots, Slot{0, kNone});
  int64_t count_ = 0;
};

// All images of a search. Cells lie in blocks that never move.
class ImageStore {
 public:
  int64_t size() const { return static_cast<int64_t>(images_.size()); }
  int64_t num_bytes() const {
    return static_cast<int64_t>(blocks_.size() * kBlock) + bytes_of(images_) + index_.num_bytes();
  }
  const Image& operator[](int32_t number) const { return images_[static_cast<size_t>(number)]; }

  // Return the number of an image, a new one if none is equal; kNone if it has no cells.
  int32_t add(const Image& image) {
    if (image.height <= 0 || image.width <= 0) return kNone;
    const uint64_t place = static_cast<uint64_t>(static_cast<uint32_t>(image.row)) << 32 |
                           static_cast<uint32_t>(image.column);
    const uint64_t size = static_cast<uint64_t>(image.height) << 32 | static_cast<uint64_t>(image.width);
    const uint64_t hash = hash_of(image.cells, static_cast<size_t>(image.size()), mixed(place, size));
    const auto [number, is_new] = index_.number(hash);
    if (is_new) images_.push_back({image, kept(image)});
    return number;
  }

  void clear() {
    blocks_.resize(std::min<size_t>(blocks_.size(), 1));
    used_ = blocks_.empty() ? kBlock : 0;
    images_.clear();
    index_.clear();
  }

 private:
  const Cell* kept(const Image& image) {
    const size_t count = static_cast<size_t>(image.size());
    if (used_ + count > kBlock) {
      blocks_.push_back(std::make_unique<Cell[]>(kBlock + 64));
      used_ = 0;
    }
    Cell* place = blocks_.back().get() + used_;
    std::memcpy(place, image.cells, count);
    used_ += count;
    return place;
  }

  static constexpr size_t kBlock = 1 << 16;
  std::vector<std::unique_ptr<Cell[]>> blocks_;
  size_t used_ = kBlock;
  std::vector<Image> images_;
  HashIndex index_;
};

}  // namespace jaxarc::search

// Pieces on the cells of the outputs, and how they are stacked; pieces.py calls them.
//
// All cells of all outputs stand in one row of bits; cell i is bit i % 64 of word i / 64. Of each piece there are two
// rows: the cells that it colors right, and those that it colors wrong.
#pragma once

#include "graph.h"

namespace jaxarc::search {

using Bits = uint64_t;

// Write an image on a canvas: as it is if all images of its state have the sizes of the outputs, else at its position.
inline void draw_on(const Image& image, bool is_exact, int height, int width, Cell* out) {
  if (is_exact) {
    std::memcpy(out, image.cells, static_cast<size_t>(image.size()));
    return;
  }
  std::memset(out, 0, static_cast<size_t>(height * width));
  const int left = std::max(image.column, 0), right = std::min(image.column + image.width, width);
  for (int r = std::max(image.row, 0); r < std::min(image.row + image.height, height) && left < right; r++) {
    std::memcpy(out + r * width + left, image.cells + (r - image.row) * image.width + left - image.column,
                static_cast<size_t>(right - left));
  }
}

// Pack bytes of 0 and 1 into bits, 8 by one product: byte k of the factor brings bit k to the top byte.
inline void pack(const uint8_t* bytes, int64_t words, Bits* bits) {
  for (int64_t w = 0; w < words; w++) {
    Bits packed = 0;
    for (int64_t part = 0; part < 8; part++) {
      uint64_t eight;
      std::memcpy(&eight, bytes + 64 * w + 8 * part, 8);
      packed |= (eight * 0x0102040810204080u) >> 56 << (8 * part);
    }
    bits[w] = packed;
  }
}

// States as pieces. Of those that are right and wrong at the same cells only the first is one, unless they are all right.
class PieceFinder {
 public:
  PieceFinder(const ImageStore& images, int num_inputs, const int32_t* sizes, const Cell* target, int64_t target_size)
      : images_(images), num_inputs_(num_inputs), sizes_(sizes), target_(target), target_size_(target_size) {
    for (int p = 0; p < num_inputs; p++) num_cells_ += sizes[2 * p] * sizes[2 * p + 1];
    cells_.resize(static_cast<size_t>(num_cells_) + 8);
    are_right_.resize(static_cast<size_t>(target_size + 63) / 64 * 64, 0);
    are_solid_ = are_right_;
  }

  // Draw a state on the canvases of all outputs: its images, or one color where there are none. Write its bits; false
  // if no cell but 0 is right, or it is known. A plain color needs no right cell.
  bool find(const int64_t* numbers, Cell color, int64_t words, Bits* right, Bits* solid) {
    if (numbers == nullptr) {
      std::fill_n(cells_.begin(), num_cells_, color);
    } else {
      bool is_exact = true;
      for (int p = 0; p < num_inputs_; p++) {
        const Image& image = images_[static_cast<int32_t>(numbers[p])];
        is_exact &= image.height == sizes_[2 * p] && image.width == sizes_[2 * p + 1];
      }
      Cell* place = cells_.data();
      for (int p = 0; p < num_inputs_; p++) {
        const int height = sizes_[2 * p], width = sizes_[2 * p + 1];
        draw_on(images_[static_cast<int32_t>(numbers[p])], is_exact, height, width, place);
        place += height * width;
      }
    }
    uint8_t is_useful = 0, is_exact = 1;
    for (int64_t i = 0; i < target_size_; i++) {
      const Cell cell = cells_[static_cast<size_t>(i)];
      const uint8_t is_right = cell == target_[i], is_solid = cell != 0;
      are_right_[static_cast<size_t>(i)] = is_right;
      are_solid_[static_cast<size_t>(i)] = is_solid;
      is_useful |= is_right & is_solid;
      is_exact &= is_right;
    }
    if (is_useful == 0 && numbers != nullptr) return false;
    pack(are_right_.data(), words, right);
    pack(are_solid_.data(), words, solid);
    const size_t bytes = static_cast<size_t>(words) * sizeof(Bits);
    uint64_t hash = hash_of(right, bytes, hash_of(solid, bytes, 0));
    if (is_exact != 0) hash = hash_of(cells_.data(), static_cast<size_t>(num_cells_), hash);
    return known_.number(hash).second;
  }

 private:
  const ImageStore& images_;
  int num_inputs_;
  const int32_t* sizes_;
  const Cell* target_;
  int64_t target_size_;
  int64_t num_cells_ = 0;
  std::vector<Cell> cells_;
  std::vector<uint8_t> are_right_;
  std::vector<uint8_t> are_solid_;
  HashIndex known_;
};

// Write each piece twice, word by word: it covers the cells that are not 0, or all cells. Word w of piece k stands at
// w * 2 count + k, as the first word shows most pieces to be wrong.
inline void lay_out(int64_t count, int64_t words, const Bits* right, const Bits* solid, const Bits* all_cells,
                    Bits* good, Bits* bad) {
  constexpr int64_t kBlock = 64;  // pieces whose bits stay in the cache
  for (int64_t first = 0; first < count; first += kBlock) {
    for (int64_t w = 0; w < words; w++) {
      for (int64_t k = first; k < std::min(first + kBlock, count); k++) {
        const Bits is_right = right[k * words + w], is_solid = solid[k * words + w];
        const int64_t place = 2 * w * count + k;
        good[place] = is_right & is_solid;
        bad[place] = is_solid & ~is_right;
        good[place + count] = is_right;
        bad[place + count] = all_cells[w] & ~is_right;
      }
    }
  }
}

// All pieces, laid out.
struct PieceBits {
  const Bits* good;
  const Bits* bad;
  const int64_t* costs;
  int64_t count;
  int64_t words;

  // How many open cells a piece colors right; -1 if it colors one wrong.
  int64_t gain(int64_t piece, const Bits* open) const {
    for (int64_t w = 0; w < words; w++) {
      if ((bad[w * count + piece] & open[w]) != 0) return -1;
    }
    return right(piece, open);
  }

  int64_t right(int64_t piece, const Bits* open) const {
    int64_t sum = 0;
    for (int64_t w = 0; w < words; w++) sum += __builtin_popcountll(good[w * count + piece] & open[w]);
    return sum;
  }

  // Stack pieces on a first one: the next one has no wrong open cell and adds most right ones, of equals the cheapest.
  // Where none is left, the one that is right most often is the last. Returns how many are chosen.
  int64_t stack(const Bits* needed, int64_t first, int64_t most, int64_t* chosen) const {
    std::vector<Bits> open(needed, needed + words);
    int64_t layers = 0;
    const auto take = [&](int64_t piece) {
      chosen[layers++] = piece;
      for (int64_t w = 0; w < words; w++) open[static_cast<size_t>(w)] &= ~good[w * count + piece];
    };
    const auto is_open = [&] { return std::any_of(open.begin(), open.end(), [](Bits word) { return word != 0; }); };
    take(first);
    while (layers < most && is_open()) {
      int64_t best = -1, best_gain = 0;
      for (int64_t piece = 0; piece < count; piece++) {
        const int64_t own = gain(piece, open.data());
        if (own > best_gain || (own == best_gain && own > 0 && costs[piece] < costs[best])) {
          best = piece;
          best_gain = own;
        }
      }
      if (best < 0) break;
      take(best);
    }
    if (!is_open()) return layers;
    std::vector<int32_t> sums(static_cast<size_t>(count), 0);
    for (int64_t w = 0; w < words; w++) {
      const Bits* own = good + w * count;
      for (int64_t piece = 0; piece < count; piece++) {
        sums[static_cast<size_t>(piece)] += __builtin_popcountll(own[piece] & open[static_cast<size_t>(w)]);
      }
    }
    take(std::max_element(sums.begin(), sums.end()) - sums.begin());
    return layers;
  }
};

}  // namespace jaxarc::search

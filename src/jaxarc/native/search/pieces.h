// Pieces on the cells of the outputs, and how they are stacked; pieces.py calls them.
//
// All cells of all outputs stand in one row of bits; cell i is bit i % 64 of word i / 64. Of each piece there are two
// rows: the cells that it colors right, and those that it colors wrong.
#pragma once

#include <set>
#include <tuple>

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

// Draw a state on the canvases of all outputs, of heights and widths; return whether an image stands at its position that
// a program would take as it is.
template <typename Number>
bool draw_state(const ImageStore& images, const Number* numbers, int num_inputs, const int32_t* sizes, Cell* cells) {
  bool is_exact = true, is_moved = false;
  for (int p = 0; p < num_inputs; p++) {
    const Image& image = images[static_cast<int32_t>(numbers[p])];
    const bool has_size = image.height == sizes[2 * p] && image.width == sizes[2 * p + 1];
    is_exact &= has_size;
    is_moved |= has_size && (image.row != 0 || image.column != 0);
  }
  for (int p = 0; p < num_inputs; p++) {
    draw_on(images[static_cast<int32_t>(numbers[p])], is_exact, sizes[2 * p], sizes[2 * p + 1], cells);
    cells += sizes[2 * p] * sizes[2 * p + 1];
  }
  return !is_exact && is_moved;
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

// A state or a plain color as a layer of a stack.
struct Piece {
  int32_t state = kNone;            // or kNone
  const int32_t* numbers = nullptr;  // of its images, one for each output
  Cell color = 0;                    // where there is no state
  int cost = 0;
};

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

  int64_t num_cells() const { return num_cells_; }

  // Draw a piece on the canvases of all outputs, its images or its color; return whether it is placed.
  bool draw(const Piece& piece, Cell* cells) const {
    if (piece.numbers != nullptr) return draw_state(images_, piece.numbers, num_inputs_, sizes_, cells);
    std::fill_n(cells, num_cells_, piece.color);
    return false;
  }

  // Write the bits of a piece; false if no cell but 0 is right, or it is known. A plain color needs no right cell.
  bool find(const Piece& piece, int64_t words, Bits* right, Bits* solid) {
    draw(piece, cells_.data());
    uint8_t is_useful = 0, is_exact = 1;
    for (int64_t i = 0; i < target_size_; i++) {
      const Cell cell = cells_[static_cast<size_t>(i)];
      const uint8_t is_right = cell == target_[i], is_solid = cell != 0;
      are_right_[static_cast<size_t>(i)] = is_right;
      are_solid_[static_cast<size_t>(i)] = is_solid;
      is_useful |= is_right & is_solid;
      is_exact &= is_right;
    }
    if (is_useful == 0 && piece.numbers != nullptr) return false;
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

// A stack of pieces, from top to bottom, with what it draws.
struct Stack {
  std::vector<int64_t> chosen;
  std::vector<bool> are_placed;
  int64_t cost = 0;
  int64_t unforeseen = 0;   // demonstrations that alone need a layer
  std::vector<Cell> cells;  // of all outputs
};

// All pieces for one canvas, plain colors first and then the cheapest, each twice: piece k covers the cells that are not
// 0, and piece k + n, where there are n, covers all.
class Pieces {
 public:
  Pieces(const Graph& graph, int num_inputs, const int32_t* sizes, const Cell* target, int64_t target_size)
      : sizes_(sizes, sizes + 2 * num_inputs), target_(target, target + target_size),
        finder_(graph.images(), num_inputs, sizes_.data(), target_.data(), target_size), words_((target_size + 63) / 64) {
    std::vector<Piece> tried;
    bool has_color[256] = {};
    for (Cell cell : target_) has_color[cell] = true;
    for (int color = 0; color < 256; color++) {
      if (has_color[color]) tried.push_back({kNone, nullptr, static_cast<Cell>(color), 0});
    }
    graph.each_image_state([&](int32_t state, const int32_t* own, int cost) { tried.push_back({state, own, 0, cost}); });
    std::stable_sort(tried.begin(), tried.end(), [](const Piece& a, const Piece& b) { return a.cost < b.cost; });
    std::vector<Bits> right, solid;
    for (const Piece& piece : tried) {
      const size_t place = right.size();
      right.resize(place + static_cast<size_t>(words_));
      solid.resize(right.size());
      if (finder_.find(piece, words_, &right[place], &solid[place])) {
        pieces_.push_back(piece);
      } else {
        right.resize(place);
        solid.resize(place);
      }
    }
    lay_out(right, solid);
  }

  // Single pieces that equal all outputs, the cheapest.
  std::vector<Stack> exact(int64_t most) const {
    std::vector<int64_t> found;
    for (int64_t k = count_ / 2; k < count_; k++) {
      if (right(k, all_.data()) == static_cast<int64_t>(target_.size())) found.push_back(k);
    }
    return single(found, most, [&](int64_t a, int64_t b) { return cost(a) < cost(b); });
  }

  // The single pieces that color most cells right; those that cover all cells come first.
  std::vector<Stack> nearest(int64_t most) const {
    std::vector<int64_t> found, counts;
    for (int64_t k = 0; k < count_; k++) {
      counts.push_back(right(k, all_.data()));
      found.push_back(k);
    }
    return single(found, most, [&](int64_t a, int64_t b) {
      const auto key = [&](int64_t k) {
        return std::tuple(!is_solid(k), -counts[static_cast<size_t>(k)], cost(k));
      };
      return key(a) < key(b);
    });
  }

  // Stack pieces greedily on the cells of some demonstrations, from several first pieces: those that color most of them
  // right and none wrong. Once the time is over no other stack is begun.
  std::vector<Stack> stacks(const uint8_t* shown, int64_t num_starts, int64_t most, double seconds) const {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Bits> needed(static_cast<size_t>(words_), 0);
    for (size_t pair = 0; pair < of_pairs_.size(); pair++) {
      for (size_t w = 0; w < needed.size() && shown[pair] != 0; w++) needed[w] |= of_pairs_[pair][w];
    }
    std::vector<std::tuple<int64_t, int, int64_t>> starts;
    for (int64_t k = 0; k < count_; k++) {
      const int64_t own = gain(k, needed.data());
      if (own > 0) starts.push_back({-own, cost(k), k});
    }
    const int64_t count = std::min(num_starts, static_cast<int64_t>(starts.size()));
    std::partial_sort(starts.begin(), starts.begin() + count, starts.end());
    std::vector<Stack> found;
    std::set<std::vector<Bits>> known;  // of equal open cells the rest of the stack would be the same
    for (int64_t start = 0; start < count; start++) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      if (!found.empty() && spent.count() > seconds) break;
      const int64_t first = std::get<2>(starts[static_cast<size_t>(start)]);
      std::vector<Bits> open = needed;
      for (int64_t w = 0; w < words_; w++) open[static_cast<size_t>(w)] &= ~good_[static_cast<size_t>(w * count_ + first)];
      if (known.insert(open).second) found.push_back(drawn(stack(first, open, most)));
    }
    return found;
  }

  const Piece& piece(int64_t k) const { return pieces_[static_cast<size_t>(k % (count_ / 2))]; }
  bool is_solid(int64_t k) const { return k >= count_ / 2; }

 private:
  // One word shows most pieces to be wrong, so that which shows most of them comes first; word w of piece k stands at
  // w * count_ + k.
  void lay_out(const std::vector<Bits>& right, const std::vector<Bits>& solid) {
    const int64_t num_pieces = static_cast<int64_t>(pieces_.size());
    count_ = 2 * num_pieces;
    std::vector<Bits> all(static_cast<size_t>(words_), 0);
    for (size_t i = 0; i < target_.size(); i++) all[i / 64] |= Bits{1} << i % 64;
    std::vector<int64_t> num_wrong(all.size(), 0);
    for (int64_t k = 0; k < num_pieces; k++) {
      for (size_t w = 0; w < all.size(); w++) {
        const size_t place = static_cast<size_t>(k * words_) + w;
        num_wrong[w] += ((solid[place] & ~right[place]) != 0) + ((all[w] & ~right[place]) != 0);
      }
    }
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return num_wrong[a] > num_wrong[b]; });
    for (size_t w : order) all_.push_back(all[w]);
    int64_t begin = 0;
    for (size_t p = 0; begin < static_cast<int64_t>(target_.size()); p++) {
      std::vector<Bits> own(all.size(), 0);
      const int64_t end = begin + sizes_[2 * p] * sizes_[2 * p + 1];
      for (int64_t i = begin; i < end; i++) own[static_cast<size_t>(i / 64)] |= Bits{1} << i % 64;
      begin = end;
      of_pairs_.emplace_back();
      for (size_t w : order) of_pairs_.back().push_back(own[w]);
    }
    good_.resize(static_cast<size_t>(count_ * words_));
    bad_.resize(good_.size());
    constexpr int64_t kBlock = 64;  // pieces whose bits stay in the cache
    for (int64_t first = 0; first < num_pieces; first += kBlock) {
      for (size_t w = 0; w < order.size(); w++) {
        for (int64_t k = first; k < std::min(first + kBlock, num_pieces); k++) {
          const size_t from = static_cast<size_t>(k * words_) + order[w];
          const size_t place = w * static_cast<size_t>(count_) + static_cast<size_t>(k), twin = place + pieces_.size();
          good_[place] = right[from] & solid[from];
          bad_[place] = solid[from] & ~right[from];
          good_[twin] = right[from];
          bad_[twin] = all_[w] & ~right[from];
        }
      }
    }
  }

  int cost(int64_t k) const { return piece(k).cost; }

  template <typename IsLess>
  std::vector<Stack> single(std::vector<int64_t> pieces, int64_t most, IsLess is_less) const {
    std::stable_sort(pieces.begin(), pieces.end(), is_less);
    std::vector<Stack> found;
    for (size_t i = 0; i < pieces.size() && static_cast<int64_t>(i) < most; i++) found.push_back(drawn({pieces[i]}));
    return found;
  }

  // How many open cells a piece colors right; -1 if it colors one wrong.
  int64_t gain(int64_t piece, const Bits* open) const {
    for (int64_t w = 0; w < words_; w++) {
      if ((bad_[static_cast<size_t>(w * count_ + piece)] & open[w]) != 0) return -1;
    }
    return right(piece, open);
  }

  int64_t right(int64_t piece, const Bits* open) const {
    int64_t sum = 0;
    for (int64_t w = 0; w < words_; w++) sum += __builtin_popcountll(good_[static_cast<size_t>(w * count_ + piece)] & open[w]);
    return sum;
  }

  // Stack pieces on a first one: the next one has no wrong open cell and adds most right ones, of equals the cheapest.
  // Where none is left, the one that is right most often is the last.
  std::vector<int64_t> stack(int64_t first, std::vector<Bits> open, int64_t most) const {
    std::vector<int64_t> chosen = {first};
    const auto take = [&](int64_t piece) {
      chosen.push_back(piece);
      for (int64_t w = 0; w < words_; w++) open[static_cast<size_t>(w)] &= ~good_[static_cast<size_t>(w * count_ + piece)];
    };
    const auto is_open = [&] { return std::any_of(open.begin(), open.end(), [](Bits word) { return word != 0; }); };
    while (static_cast<int64_t>(chosen.size()) < most && is_open()) {
      int64_t best = -1, best_gain = 0;
      for (int64_t piece = 0; piece < count_; piece++) {
        const int64_t own = gain(piece, open.data());
        if (own > best_gain || (own == best_gain && own > 0 && cost(piece) < cost(best))) {
          best = piece;
          best_gain = own;
        }
      }
      if (best < 0) break;
      take(best);
    }
    if (!is_open()) return chosen;
    std::vector<int32_t> sums(static_cast<size_t>(count_), 0);
    for (int64_t w = 0; w < words_; w++) {
      const Bits* own = &good_[static_cast<size_t>(w * count_)];
      for (int64_t piece = 0; piece < count_; piece++) {
        sums[static_cast<size_t>(piece)] += __builtin_popcountll(own[piece] & open[static_cast<size_t>(w)]);
      }
    }
    take(std::max_element(sums.begin(), sums.end()) - sums.begin());
    return chosen;
  }

  // Draw a stack on all outputs, and add what it costs.
  Stack drawn(std::vector<int64_t> chosen) const {
    const size_t num_cells = static_cast<size_t>(finder_.num_cells());
    Stack found = {std::move(chosen), {}, 0, 0, std::vector<Cell>(num_cells, 0)};
    std::vector<uint8_t> is_open(num_cells, 1), is_owner(of_pairs_.size(), 0);
    std::vector<Cell> own(num_cells);
    for (int64_t k : found.chosen) {
      found.cost += cost(k) + 2;
      found.are_placed.push_back(finder_.draw(piece(k), own.data()));
      size_t i = 0, num_shown = 0, owner = 0;
      for (size_t p = 0; 2 * p < sizes_.size(); p++) {
        bool is_shown = false;
        for (const size_t end = i + static_cast<size_t>(sizes_[2 * p] * sizes_[2 * p + 1]); i < end; i++) {
          if (is_open[i] == 0 || (own[i] == 0 && !is_solid(k))) continue;
          found.cells[i] = own[i];
          is_open[i] = 0;
          is_shown = true;
        }
        if (!is_shown || p >= is_owner.size()) continue;
        num_shown++;
        owner = p;
      }
      if (num_shown == 1 && is_owner.size() > 1) is_owner[owner] = 1;
    }
    found.cost -= 2;
    found.unforeseen = std::count(is_owner.begin(), is_owner.end(), 1);
    return found;
  }

  std::vector<int32_t> sizes_;  // height and width of the outputs, and of the answer
  std::vector<Cell> target_;
  PieceFinder finder_;
  int64_t words_;
  std::vector<Piece> pieces_;
  int64_t count_ = 0;
  std::vector<Bits> good_, bad_, all_;
  std::vector<std::vector<Bits>> of_pairs_;  // the cells of each demonstration
};

}  // namespace jaxarc::search

// Pieces on the cells of the outputs, and how they are stacked, as in pieces.py.
//
// All cells of all outputs stand in one row of W words of bits; cell i is bit i / W of word i % W, so that each word
// holds cells from everywhere, and the first one tells of most pieces that they are wrong. Of each piece there are two
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

// Compare the first cells of a canvas with the outputs; return whether a cell but 0 is right.
inline bool compare_cells(const Cell* cells, const Cell* target, int64_t count, int64_t words, Bits* right, Bits* solid) {
  Bits useful = 0;
  for (int64_t w = 0; w < words; w++) {
    Bits equal = 0, colored = 0;
    for (int64_t i = w, bit = 0; i < count; i += words, bit++) {
      equal |= Bits{cells[i] == target[i]} << bit;
      colored |= Bits{cells[i] != 0} << bit;
    }
    right[w] = equal;
    solid[w] = colored;
    useful |= equal & colored;
  }
  return useful != 0;
}

// All pieces: word w of piece k stands at w * count + k, as most pieces are told by their first word.
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

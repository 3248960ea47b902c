// The flood fill: rows as words of bits, swept down and up until nothing changes.
#pragma once

#include "grid.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace jaxarc {

// Bit c is set where lane c of a mask is.
inline uint32_t bits_of(Row mask) {
#ifdef __AVX2__
  __m256i lanes;
  std::memcpy(&lanes, &mask, sizeof lanes);
  return static_cast<uint32_t>(_mm256_movemask_epi8(lanes));
#else
  // The product adds the lowest bit of byte i, shifted by 7 (7 - i) + 8 i, so that the bits meet in the highest byte.
  uint64_t parts[4];
  std::memcpy(parts, &mask, sizeof parts);
  uint32_t bits = 0;
  for (int i = 0; i < 4; i++) {
    const uint64_t lowest = parts[i] & 0x0101010101010101u;
    bits |= static_cast<uint32_t>((lowest * 0x0102040810204080u) >> 56) << (8 * i);
  }
  return bits;
#endif
}

// The mask of bits again: every lane gets the byte that holds its bit, and keeps that bit.
inline Row mask_of(uint32_t bits) {
  uint64_t parts[4];
  for (int i = 0; i < 4; i++) parts[i] = ((bits >> (8 * i)) & 0xff) * 0x0101010101010101u & 0x8040201008040201u;
  return load(parts) != 0;
}

// Spreads seeds over the runs of open cells that hold them: to higher bits by one carry, to lower bits by doubling.
//
// A seed that is added to its run carries to the run's end: the ones that the sum turns to 0, and the seed itself, are
// reached. With the run 01110 and the seed 00100, highest bit first:
//
//     to higher bits   01110 + 00100 = 10010, and 01110 & ~10010 = 01100
//     to lower bits    01100 | (01110 & 01100 >> 1) = 01110   the steps move by 1, 2, 4, 8, 16
inline uint32_t fill_runs(uint32_t seeds, uint32_t open) {
  uint32_t spread = seeds | (open & ~(open + seeds));
  uint32_t run = open;
  for (int step = 1; step < kLanes; step *= 2) {
    spread |= run & (spread >> step);
    run &= run >> step;
  }
  return spread;
}

// Recolors the 4-connected component of equal color around an active cell, within the active height x width.
//
// A sweep down gives each row what the row above reached, then fills the runs that it touches; a sweep up does the same
// from below. Sweeps stay between the first and the last row that were reached, and one beyond.
//
//     seed       down       up
//     # o o      # o x      # x x     o open, x reached, # closed
//     x # o  ->  x # x  ->  x # x
//     o o o      x x x      x x x
inline void flood_fill(Cell* grid, int color, int row, int column, int height, int width, Shape shape) {
  const Row active = columns(0, width - 1);
  const Row old = repeat(grid[row * shape.width + column]);
  uint32_t open[kLanes];
  uint32_t reached[kLanes] = {};
  for (int r = 0; r < height; r++) open[r] = bits_of((load(grid + r * shape.width) == old) & active);
  reached[row] = fill_runs(uint32_t{1} << column, open[row]);
  int first = row;
  int last = row;
  // Whether row `r` takes something from its neighbor.
  const auto take_from = [&](int r, int neighbor) {
    const uint32_t seeds = reached[neighbor] & open[r] & ~reached[r];
    if (seeds == 0) return false;
    reached[r] |= fill_runs(seeds, open[r]);
    return true;
  };
  bool is_spreading = true;
  while (is_spreading) {
    is_spreading = false;
    for (int r = first + 1; r < height && r <= last + 1; r++) {
      if (!take_from(r, r - 1)) continue;
      is_spreading = true;
      last = larger(last, r);
    }
    for (int r = last - 1; r >= 0 && r >= first - 1; r--) {
      if (!take_from(r, r + 1)) continue;
      is_spreading = true;
      first = smaller(first, r);
    }
  }
  change_rows(grid, shape.width, first, last,
              [&](int r, Row cells) { return blend(mask_of(reached[r]), repeat(color), cells); });
}

}  // namespace jaxarc

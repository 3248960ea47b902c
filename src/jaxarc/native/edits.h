// The operations: their ids, as jaxarc/constants.py has them, what each needs to apply, and what it does to a grid.
//
// Each edit works in place, on the rows that it changes. `grid` and `clipboard` may be read and written back unchanged
// up to kMargin bytes before and behind; see grid.h.
#pragma once

#include "grid.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace jaxarc {

enum Operation : int {
  kNoOperation = -1,  // leaves the canvas as it is
  kFill = 0,          // .. 9
  kFloodFill = 10,    // .. 19
  kMoveUp = 20,
  kMoveDown = 21,
  kMoveLeft = 22,
  kMoveRight = 23,
  kRotateClockwise = 24,
  kRotateCounterclockwise = 25,
  kFlipLeftRight = 26,
  kFlipUpDown = 27,
  kCopy = 28,
  kPaste = 29,
  kCut = 30,
  kClear = 31,
  kCopyInput = 32,
  kResize = 33,
  kSubmit = 34,
  kNextDemoPair = 35,
  kPreviousDemoPair = 36,
  kNextTestPair = 37,
  kPreviousTestPair = 38,
  kResetPair = 39,
  kFirstUnsolvedDemoPair = 40,
  kFirstUnsolvedTestPair = 41,
  kLastOperation = 41,
};

struct Offset {
  int down;
  int across;
};

inline bool is_fill(int operation) { return operation >= kFill && operation < kFloodFill; }
inline bool is_flood(int operation) { return operation >= kFloodFill && operation < kMoveUp; }
inline bool changes_pair(int operation) { return operation >= kNextDemoPair; }

// By how much a move shifts its cells; 0 and 0 for every other operation.
inline Offset move_offset(int operation) {
  return {(operation == kMoveDown) - (operation == kMoveUp), (operation == kMoveRight) - (operation == kMoveLeft)};
}

// Sets of operations, bit i for operation i.
inline constexpr uint64_t bits_from(int first, int last) { return (uint64_t{2} << last) - (uint64_t{1} << first); }
constexpr uint64_t kNeedsOneCell = bits_from(kFloodFill, kMoveUp - 1);
constexpr uint64_t kNeedsContent = bits_from(kPaste, kPaste);  // on the clipboard
constexpr uint64_t kNeedsCells = bits_from(kFill, kFloodFill - 1) | bits_from(kCopy, kCut) | bits_from(kResize, kResize);
constexpr uint64_t kKeepsGrid = bits_from(kCopy, kCopy) | bits_from(kSubmit, kSubmit);

inline bool is_in(uint64_t operations, int operation) { return (operations >> operation & 1) != 0; }

// Whether an operation can apply; one that cannot leaves the canvas as it was. Moves, turns and the rest always can.
inline bool can_apply(int operation, bool is_empty, bool is_single, bool holds_content) {
  if (operation < 0) return false;
  const uint64_t prevented =
      (is_empty ? kNeedsCells : 0) | (is_single ? 0 : kNeedsOneCell) | (holds_content ? 0 : kNeedsContent);
  return !is_in(prevented, operation);
}

// Fill, clear, and the second half of a cut.
inline void paint(Cell* grid, const Cells& cells, int color) {
  const Row painted = repeat(color);
  const Row in_box = cells.of_box();
  change_rows(grid, cells.stride, cells.box.top, cells.box.bottom,
              [&](int row, Row old) { return blend(cells.at(row, in_box), painted, old); });
}

// Moves the cells by one; vacated cells become 0, and what leaves the active height x width is lost.
//
// A row of the result takes what arrives from the row `down` above it, loaded `across` columns further left. A move
// right of the cells 5 6 of the row 5 6 7:
//
//     loaded one to the left   . 5 6        arrives   0 1 1        leaves   1 1 0        result   0 5 6
inline void move(Cell* grid, const Cells& cells, Offset offset, int height, int width) {
  const Row in_box = cells.of_box();
  const Row moved_box = cells.of_box(offset.across) & columns(0, width - 1);
  const int first = larger(cells.box.top + smaller(offset.down, 0), 0);
  const int last = smaller(cells.box.bottom + larger(offset.down, 0), height - 1);
  // As in change_rows, everything is loaded before the row above it is stored.
  Row above = load(grid + (first - 1) * cells.stride);
  Row old = load(grid + first * cells.stride);
  Row beside = load(grid + first * cells.stride - offset.across);
  for (int row = first; row <= last; row++) {
    Cell* const at = grid + row * cells.stride;
    const Row below = load(at + cells.stride);
    const Row below_beside = load(at + cells.stride - offset.across);
    const Row source = offset.down > 0 ? above : offset.down < 0 ? below : beside;
    const Row arrives = cells.at(row, moved_box, offset.down, offset.across);
    store(at, blend(arrives, source, old & ~cells.at(row, in_box)));
    above = old;
    old = below;
    beside = below_beside;
  }
}

// Mirrors the rows or the columns of a box.
inline void flip(Cell* grid, Box box, bool is_left_right, Shape shape) {
  if (is_left_right) {
    for (int row = box.top; row <= box.bottom; row++) {
      Cell* const at = grid + row * shape.width;
      for (int left = box.left, right = box.right; left < right; left++, right--) {
        const Cell cell = at[left];
        at[left] = at[right];
        at[right] = cell;
      }
    }
    return;
  }
  const Row inside = columns(box.left, box.right);
  for (int top = box.top, bottom = box.bottom; top < bottom; top++, bottom--) {
    Cell* const above = grid + top * shape.width;
    Cell* const below = grid + bottom * shape.width;
    const Row upper = load(above);
    const Row lower = load(below);
    store(above, blend(inside, lower, upper));
    store(below, blend(inside, upper, lower));
  }
}

// Turns the content of a box by 90 degrees about its top-left corner; old cells of the box that are not covered become
// 0, and what falls outside the active height x width is lost. Clockwise, a box of 2x3 on 3x3:
//
//     1 2 3      4 1 0     cell (r, c) of the box comes from row `bottom - c`, column r;
//     4 5 6  ->  5 2 0     counter-clockwise from row c, column `right - r`
//     0 0 0      6 3 0
inline void rotate(Cell* grid, Box box, bool is_clockwise, int height, int width, Shape shape) {
  const int rows = box.bottom - box.top + 1;
  const int width_of_box = box.right - box.left + 1;
  const Row in_box = columns(0, width_of_box - 1);
  Cell content[kMaxSide * kLanes];
  change_rows(grid + box.left, shape.width, box.top, box.bottom, [&](int row, Row old) {
    store(content + (row - box.top) * kLanes, old);
    return old & ~in_box;
  });
  const int covered_rows = smaller(width_of_box, height - box.top);
  const int covered_columns = smaller(rows, width - box.left);
  for (int row = 0; row < covered_rows; row++) {
    Cell* const at = grid + (box.top + row) * shape.width + box.left;
    const Cell* from = is_clockwise ? content + (rows - 1) * kLanes + row : content + width_of_box - 1 - row;
    const int step = is_clockwise ? -kLanes : kLanes;
    for (int column = 0; column < covered_columns; column++, from += step) at[column] = *from;
  }
}

// Puts the cells of the box on the clipboard, at its origin, and padding everywhere else.
//
// Behind the row that is stored there is the next one, which is stored afterwards or is padding anyway; only behind the
// last ones of the canvas there are bytes that must stay.
inline void copy(Cell* clipboard, const Cell* grid, const Cells& cells, int held_height, Shape shape) {
  const Box box = cells.box;
  const int rows = box.bottom - box.top + 1;
  const int length = shape.cells();
  const Row in_box = cells.of_box(-box.left);
  for (int row = 0; row < rows; row++) {
    const int at = row * shape.width;
    const Row chosen = cells.at(box.top + row, in_box, 0, -box.left);
    const Row content = blend(chosen, load(grid + box.top * shape.width + at + box.left), repeat(kPadding));
    const Row stays = at + kLanes <= length ? Row{} : columns(length - at, kLanes - 1);
    store(clipboard + at, blend(stays, load(clipboard + at), content));
  }
  if (held_height > rows) std::memset(clipboard + rows * shape.width, kPadding, (held_height - rows) * shape.width);
}

// Writes the held cells with the clipboard's origin at a corner, clipped to the active height x width.
inline void paste(Cell* grid, const Cell* clipboard, int top, int left, int held_height, int height, int width,
                  Shape shape) {
  const Row destination = columns(left, width - 1);
  const int last = smaller(top + held_height, height) - 1;
  change_rows(grid, shape.width, top, last, [&](int row, Row old) {
    const Row content = load(clipboard + (row - top) * shape.width - left);
    return blend(destination & (content > kPadding), content, old);
  });
}

// Makes the active area new_height x new_width: cells that join become 0, cells that leave become padding.
inline void resize(Cell* grid, int height, int new_height, int new_width, Shape shape) {
  const Row row_of_canvas = columns(0, shape.width - 1);
  const Row active = columns(0, new_width - 1);
  change_rows(grid, shape.width, 0, larger(height, new_height) - 1, [&](int row, Row old) {
    const Row colored = blend(old > 0, old, Row{});
    const Row inside = row < new_height ? blend(active, colored, repeat(kPadding)) : repeat(kPadding);
    return blend(row_of_canvas, inside, old);
  });
}

// Copies a stored grid, with the new color of each color where there are such.
inline void load_grid(Cell* grid, const Cell* stored, const Cell* colors, Shape shape) {
  const int cells = shape.cells();
  if (colors == nullptr) {
    std::memcpy(grid, stored, cells);
    return;
  }
  for (int i = 0; i < cells; i++) grid[i] = stored[i] > kPadding ? colors[stored[i]] : stored[i];
}

// The flood fill takes rows as words of bits, swept down and up until nothing changes. Bit c is set where lane c of a mask is.
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

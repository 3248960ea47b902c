// The edits of a grid but the flood fill: paint, move, turn, copy, paste, resize and load.
//
// Each one works in place, on the rows that it changes. `grid` and `clipboard` may be read and written back unchanged
// up to kMargin bytes before and behind; see grid.h.
#pragma once

#include "grid.h"
#include "operations.h"

namespace jaxarc {

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
  const int length = shape.height * shape.width;
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
  const int cells = shape.height * shape.width;
  if (colors == nullptr) {
    std::memcpy(grid, stored, cells);
    return;
  }
  for (int i = 0; i < cells; i++) grid[i] = stored[i] > kPadding ? colors[stored[i]] : stored[i];
}

}  // namespace jaxarc

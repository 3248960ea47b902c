// A flat grid as the kernels see it: rows of cells as vectors of 32, boxes, and sets of cells.
//
// A grid of H x W has its rows one behind the other, W bytes each, and W is at most 30. A vector that is loaded at the
// start of a row holds the row in its first W lanes and the beginning of the next row behind it. Kernels blend what
// they change into what they loaded, so the lanes behind a row are written back as they were. In 3x3, to fill column 1
// of row 0 with 7:
//
//     loaded   1 2 3 4 5 6 ..        columns(1, 1)   0 1 0 0 0 0 ..        stored   1 7 3 4 5 6 ..
#pragma once

#include <cstdint>
#include <cstring>

namespace jaxarc {

using Cell = int8_t;  // a color, 0..9, or padding

constexpr Cell kPadding = -1;
constexpr int kLanes = 32;    // cells of a vector; a row has at most 30
constexpr int kMaxSide = 30;  // rows or columns of the largest canvas
constexpr int kMargin = 64;   // bytes before and behind a grid that a kernel may read, and write back unchanged

typedef int8_t Row __attribute__((vector_size(kLanes)));  // cells, or a mask of them: -1 where chosen, 0 elsewhere

struct Shape {
  int height;
  int width;

  int cells() const { return height * width; }
};

// Inclusive bounds; empty when bottom < top or right < left.
struct Box {
  int top;
  int left;
  int bottom;
  int right;

  bool is_empty() const { return bottom < top || right < left; }
};

inline Row load(const void* cells) {
  Row row;
  std::memcpy(&row, cells, sizeof row);
  return row;
}

inline void store(Cell* cells, Row row) { std::memcpy(cells, &row, sizeof row); }

inline Row repeat(int value) { return Row{} + static_cast<Cell>(value); }

inline Row blend(Row mask, Row chosen, Row other) { return mask ? chosen : other; }

// The lanes first..last; none when last < first.
inline Row columns(int first, int last) {
  const Row lane = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  return (lane >= repeat(first)) & (lane <= repeat(last));
}

inline int smaller(int one, int other) { return one < other ? one : other; }
inline int larger(int one, int other) { return one > other ? one : other; }

// Limits a box to the top-left height x width; it may become empty.
inline Box clip(Box box, int height, int width) {
  return {larger(box.top, 0), larger(box.left, 0), smaller(box.bottom, height - 1), smaller(box.right, width - 1)};
}

// The cells that an operation uses: all of a box, or those of a mask within it.
struct Cells {
  Box box;              // not empty
  const uint8_t* mask;  // 0 or 1 for each cell of the canvas, of which only those in the box count; null: all count
  int stride;           // cells from one row to the next

  // The columns of the box after it moved across by so much.
  Row of_box(int across = 0) const { return columns(box.left + across, box.right + across); }

  // The cells of row `row` after all of them moved down and across by so much; lanes are columns, `in_box` those of the
  // box after it moved across.
  Row at(int row, Row in_box, int down = 0, int across = 0) const {
    const int from = row - down;
    if (from < box.top || from > box.bottom) return Row{};
    return mask == nullptr ? in_box : in_box & (load(mask + from * stride - across) != 0);
  }
};

// Replaces rows first..last of a grid by what `change(row, cells)` makes of each.
//
// The next row is loaded before the row is stored: a processor that loads bytes of which it has just stored some waits
// until they are in the cache, and the vectors of two rows overlap.
template <typename Change>
inline void change_rows(Cell* grid, int stride, int first, int last, Change change) {
  Row next = load(grid + first * stride);
  for (int row = first; row <= last; row++) {
    const Row cells = next;
    next = load(grid + (row + 1) * stride);
    store(grid + row * stride, change(row, cells));
  }
}

// Adds up 32 numbers, each at most 60.
inline int sum_of(Row numbers) {
  uint64_t parts[4];
  std::memcpy(parts, &numbers, sizeof parts);
  // Bytes of four parts add up without a carry; then pairs of bytes, and the four numbers of 16 bits by a product, whose
  // highest 16 bits are the sum of all: (a, b, c, d) * 0x0001000100010001 has a + b + c + d there.
  const uint64_t bytes = parts[0] + parts[1] + parts[2] + parts[3];
  const uint64_t pairs = (bytes & 0x00ff00ff00ff00ffu) + (bytes >> 8 & 0x00ff00ff00ff00ffu);
  return static_cast<int>(pairs * 0x0001000100010001u >> 48);
}

// Counts the cells of the first `length` that have the same color in both, padding left out. Both grids have `room`
// cells, the first ones of which are counted.
inline int count_matches(const Cell* grid, const Cell* target, int length, int64_t room) {
  if (room < kLanes) {
    int matches = 0;
    for (int i = 0; i < length; i++) matches += grid[i] == target[i] && target[i] > kPadding;
    return matches;
  }
  const auto found = [&](int i) {
    const Row wanted = load(target + i);
    return (load(grid + i) == wanted) & (wanted > kPadding);
  };
  if (length < kLanes) return sum_of(-(found(0) & columns(0, length - 1)));
  // Each lane counts down from 0 once for each of at most 29 vectors. The last vector ends at the last cell, and leaves
  // out the lanes that the one before has counted: of 40 cells it holds 8..39, and 24 lanes count already.
  Row counts = {};
  int i = 0;
  for (; i + kLanes <= length; i += kLanes) counts += found(i);
  if (i < length) counts += found(length - kLanes) & columns(kLanes - (length - i), kLanes - 1);
  return sum_of(-counts);
}

// Height and width of the active area, read off the first column and the first row.
inline Shape active_size(const Cell* grid, Shape shape) {
  Shape size = {0, 0};
  for (int row = 0; row < shape.height; row++) size.height += grid[row * shape.width] > kPadding;
  for (int column = 0; column < shape.width; column++) size.width += grid[column] > kPadding;
  return size;
}

}  // namespace jaxarc

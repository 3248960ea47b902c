// The edit of one step for each canvas of a batch, without any state.
//
// For each environment: the selection is resolved, the operation edits the rows of grid and clipboard that it changes,
// the sizes and the kept selection follow, and the matches with the target are counted. The results are those of
// execute_batch in jaxarc/envs/operations/execute.py, bit for bit.
#pragma once

#include "edits.h"
#include "flood.h"
#include "grid.h"
#include "operations.h"
#include "selection.h"

namespace jaxarc {

constexpr int kMaxCells = kMaxSide * kMaxSide;
constexpr int kColors = 10;
enum Size { kHeight, kWidth, kTargetHeight, kTargetWidth, kClipboardHeight, kClipboardWidth, kSizes };

// One environment's part of the arrays.
struct Canvas {
  Cell* grid;
  Cell* clipboard;
  Cell* target;
  int8_t* sizes;
};

// A pair that may be loaded, and the new color of each color; null where they stay.
struct Pair {
  const Cell* input;
  const Cell* output;
  const Cell* colors;
};

inline void set_size(int8_t* sizes, Size first, int height, int width) {
  sizes[first] = static_cast<int8_t>(height);
  sizes[first + 1] = static_cast<int8_t>(width);
}

inline void load_into(Cell* grid, int8_t* sizes, Size first, const Cell* stored, const Cell* colors, Shape shape) {
  load_grid(grid, stored, colors, shape);
  const Shape size = active_size(grid, shape);
  set_size(sizes, first, size.height, size.width);
}

// Applies an operation that can apply.
inline void apply(int operation, Canvas canvas, const Selection& use, const Pair& pair, Shape shape) {
  const Box box = use.cells.box;
  const int height = canvas.sizes[kHeight];
  const int width = canvas.sizes[kWidth];
  if (is_fill(operation)) return paint(canvas.grid, use.cells, operation - kFill);
  if (is_flood(operation)) {
    return flood_fill(canvas.grid, operation - kFloodFill, box.top, box.left, height, width, shape);
  }
  switch (operation) {
    case kMoveUp:
    case kMoveDown:
    case kMoveLeft:
    case kMoveRight:
      return move(canvas.grid, use.cells, move_offset(operation), height, width);
    case kRotateClockwise:
    case kRotateCounterclockwise:
      return rotate(canvas.grid, box, operation == kRotateClockwise, height, width, shape);
    case kFlipLeftRight:
    case kFlipUpDown:
      return flip(canvas.grid, box, operation == kFlipLeftRight, shape);
    case kCopy:
    case kCut:
      copy(canvas.clipboard, canvas.grid, use.cells, canvas.sizes[kClipboardHeight], shape);
      set_size(canvas.sizes, kClipboardHeight, box.bottom - box.top + 1, box.right - box.left + 1);
      if (operation == kCut) paint(canvas.grid, use.cells, 0);
      return;
    case kPaste:
      return paste(canvas.grid, canvas.clipboard, box.top, box.left, canvas.sizes[kClipboardHeight], height, width,
                   shape);
    case kClear:
      return paint(canvas.grid, use.cells, 0);
    case kCopyInput:
      return load_into(canvas.grid, canvas.sizes, kHeight, pair.input, pair.colors, shape);
    case kResize:
      resize(canvas.grid, height, box.bottom + 1, box.right + 1, shape);
      return set_size(canvas.sizes, kHeight, box.bottom + 1, box.right + 1);
    case kSubmit:
      return;
    default:  // a change of the pair
      load_into(canvas.grid, canvas.sizes, kHeight, pair.input, pair.colors, shape);
      load_into(canvas.target, canvas.sizes, kTargetHeight, pair.output, pair.colors, shape);
      std::memset(canvas.clipboard, kPadding, shape.height * shape.width);
      set_size(canvas.sizes, kClipboardHeight, 0, 0);
  }
}

// Room for the grids of an environment at the first or the last row of a batch, with margins around them.
struct Margins {
  Cell grid[kMaxCells + 2 * kMargin];
  Cell clipboard[kMaxCells + 2 * kMargin];
  uint8_t mask[kMaxCells + 2 * kMargin];
};

// The arrays of a batch. Exactly one of the two kinds of selection is there: boxes, or masks with words.
struct Batch {
  int64_t size;
  Shape shape;
  Canvas canvas;  // of the first environment
  int8_t* kept_boxes;
  uint32_t* kept_words;
  const int32_t* operations;
  const int32_t* boxes;
  const uint8_t* masks;
  const int32_t* rows;
  const Cell* colors;
  const Cell* inputs;
  const Cell* outputs;
  int64_t num_pairs;
  int32_t* matches;
};

// Edits one environment by an operation on a box, or on its mask, which may load a row of the pairs.
inline void edit_one(const Batch& batch, int64_t index, int operation, Box box, int64_t row, Margins& margins) {
  const Shape shape = batch.shape;
  const int cells = shape.height * shape.width;
  const int64_t start = index * cells;
  const Canvas whole = {batch.canvas.grid + start, batch.canvas.clipboard + start, batch.canvas.target + start,
                        batch.canvas.sizes + index * kSizes};
  Canvas canvas = whole;
  const uint8_t* mask = batch.masks == nullptr ? nullptr : batch.masks + start;
  // Kernels read beyond the grid, so the first and the last ones of the batch are edited in a place with margins.
  const bool is_at_an_end = start < kMargin || start + cells + kMargin > batch.size * cells;
  if (is_at_an_end) {
    canvas.grid = static_cast<Cell*>(std::memcpy(margins.grid + kMargin, whole.grid, cells));
    canvas.clipboard = static_cast<Cell*>(std::memcpy(margins.clipboard + kMargin, whole.clipboard, cells));
    if (mask != nullptr) mask = static_cast<uint8_t*>(std::memcpy(margins.mask + kMargin, mask, cells));
  }
  const int height = canvas.sizes[kHeight];
  const int width = canvas.sizes[kWidth];
  // A resize may select cells beyond the active area, as it makes that larger; any other operation may not.
  const int height_limit = operation == kResize ? shape.height : height;
  const int width_limit = operation == kResize ? shape.width : width;
  Words words;
  Box chosen;
  if (mask == nullptr) {
    chosen = clip(box, height_limit, width_limit);
  } else {
    words = pack(mask, shape);
    limit(words, height_limit, width_limit);
    chosen = bounding_box(words);
  }
  const Selection use = resolve(chosen, mask, height, width, shape);
  if (can_apply(operation, use.is_empty, use.is_single, canvas.sizes[kClipboardHeight] > 0)) {
    const int64_t pair = row < 0 ? 0 : row < batch.num_pairs ? row : batch.num_pairs - 1;
    const Cell* const colors = batch.colors == nullptr ? nullptr : batch.colors + index * kColors;
    apply(operation, canvas, use, {batch.inputs + pair * cells, batch.outputs + pair * cells, colors}, shape);
    // The kept selection is limited to the active area as it is now, after a resize or a load.
    const int new_height = canvas.sizes[kHeight];
    const int new_width = canvas.sizes[kWidth];
    if (mask == nullptr) {
      keep_box(batch.kept_boxes + 4 * index, chosen, operation, new_height, new_width);
    } else {
      keep_words(batch.kept_words + index * shape.width, words, operation, new_height, new_width, shape);
    }
    if (is_at_an_end) {
      std::memcpy(whole.grid, canvas.grid, cells);
      std::memcpy(whole.clipboard, canvas.clipboard, cells);
    }
  }
}

// Counts the cells that match; below the last row of either grid nothing does.
inline int count_active(const Cell* grid, const Cell* target, const int8_t* sizes, Shape shape) {
  return count_matches(grid, target, smaller(sizes[kHeight], sizes[kTargetHeight]) * shape.width);
}

// Counts the cells of the smallest box around both areas.
inline int count_union(const int8_t* sizes) {
  return larger(sizes[kHeight], sizes[kTargetHeight]) * larger(sizes[kWidth], sizes[kTargetWidth]);
}

inline void count_one(const Batch& batch, int64_t index) {
  const Shape shape = batch.shape;
  const int64_t start = index * shape.height * shape.width;
  const int8_t* const sizes = batch.canvas.sizes + index * kSizes;
  batch.matches[index] = count_active(batch.canvas.grid + start, batch.canvas.target + start, sizes, shape);
}

// Asks for the rows of an environment's grid and target that will be compared, so that they are there when its turn
// comes: a batch of 1,024 takes 3 MB, and each environment would wait for a cache further away.
inline void prefetch(const Batch& batch, int64_t index) {
  constexpr int kCacheLine = 64;
  const int width = batch.shape.width;
  const int64_t start = index * batch.shape.height * width;
  const int8_t* const sizes = batch.canvas.sizes + index * kSizes;
  const int length = smaller(sizes[kHeight], sizes[kTargetHeight]) * width;
  for (int i = 0; i < length; i += kCacheLine) {
    __builtin_prefetch(batch.canvas.grid + start + i, 1);
    __builtin_prefetch(batch.canvas.target + start + i);
  }
}

constexpr int kAhead = 2;  // environments

// Counts each environment after the next one is edited: what was just stored is not yet in the cache.
inline void edit_batch(const Batch& batch) {
  Margins margins;
  for (int64_t index = 0; index < batch.size; index++) {
    if (index + kAhead < batch.size) prefetch(batch, index + kAhead);
    Box box = {};
    if (batch.masks == nullptr) std::memcpy(&box, batch.boxes + 4 * index, sizeof box);
    edit_one(batch, index, batch.operations[index], box, batch.rows[index], margins);
    if (index > 0) count_one(batch, index - 1);
  }
  if (batch.size > 0) count_one(batch, batch.size - 1);
}

}  // namespace jaxarc

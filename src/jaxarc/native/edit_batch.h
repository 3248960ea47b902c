// The edit of one step for each canvas of a batch, without any state.
//
// For each environment: the selection is resolved, the operation edits the rows of grid and clipboard that it changes,
// the sizes and the kept selection follow, and the matches with the target are counted. The results are those of
// execute_batch in jaxarc/envs/operations/execute.py, bit for bit.
#pragma once

#include <algorithm>

#include "edits.h"
#include "grid.h"

namespace jaxarc {

typedef uint8_t Bytes __attribute__((vector_size(kLanes)));  // which may overflow, as cells may not

// A word for each column, whose bit r is row r; 0 behind the last column.
struct Words {
  uint32_t of[kLanes];
};

// The top-left height x width as words: 2x2 of 3x3 is 011 011 000.
inline void limit(Words& words, int height, int width) {
  const uint32_t rows = (uint32_t{1} << height) - 1;
  for (int column = 0; column < kLanes; column++) words.of[column] &= column < width ? rows : 0;
}

// Packs a mask. Eight rows make a byte for each column, from the last row to the first: what is there moves up by one
// bit, and the row's cells become the lowest. The rows 0 1 1, 0 1 0 and 1 0 0 of 3x3 give, lane by lane:
//
//     row 2: 1 0 0     row 1: 10 01 00     row 0: 100 011 001
inline Words pack(const uint8_t* mask, Shape shape) {
  uint8_t bytes[4][kLanes];
  for (int part = 0; part < 4; part++) {
    const int count = smaller(shape.height - 8 * part, 8);
    const uint8_t* at = mask + (8 * part + count - 1) * shape.width;
    Bytes byte = {};
#pragma GCC unroll 8
    for (int row = 0; row < 8; row++) {
      if (row >= count) break;
      byte = byte + byte + reinterpret_cast<Bytes>(load(at));
      at -= shape.width;
    }
    std::memcpy(bytes[part], &byte, sizeof byte);
  }
  Words words;
  for (int column = 0; column < kLanes; column++) {
    words.of[column] = bytes[0][column] | uint32_t{bytes[1][column]} << 8 | uint32_t{bytes[2][column]} << 16 |
                       uint32_t{bytes[3][column]} << 24;
  }
  return words;
}

// The smallest box around the cells. The union of all columns has a bit for each row in use, a second word one for each
// column in use; the lowest and the highest bit of the two are the bounds.
inline Box bounding_box(const Words& words) {
  uint32_t rows = 0;
  uint32_t used = 0;
  for (int column = 0; column < kLanes; column++) {
    rows |= words.of[column];
    used |= uint32_t{words.of[column] != 0} << column;
  }
  if (rows == 0) return {0, 0, -1, -1};
  return {__builtin_ctz(rows), __builtin_ctz(used), 31 - __builtin_clz(rows), 31 - __builtin_clz(used)};
}

// The cells that an operation uses: the chosen ones, or the whole active area where there are none.
inline Cells cells_of(Box chosen, const uint8_t* mask, int height, int width, Shape shape) {
  if (chosen.is_empty()) return {{0, 0, height - 1, width - 1}, nullptr, shape.width};
  return {chosen, mask, shape.width};
}

// Stores the box that the state keeps: moved along, within the new active area; every empty box is (0, 0, -1, -1).
inline void keep_box(int8_t* kept, Box chosen, int operation, int height, int width) {
  Box box = {0, 0, -1, -1};
  if (!changes_pair(operation) && !chosen.is_empty()) {
    const Offset offset = move_offset(operation);
    const Box moved = {chosen.top + offset.down, chosen.left + offset.across, chosen.bottom + offset.down,
                       chosen.right + offset.across};
    const Box clipped = clip(moved, height, width);
    if (!clipped.is_empty()) box = clipped;
  }
  kept[0] = static_cast<int8_t>(box.top);
  kept[1] = static_cast<int8_t>(box.left);
  kept[2] = static_cast<int8_t>(box.bottom);
  kept[3] = static_cast<int8_t>(box.right);
}

// Stores the columns of bits that the state keeps. A move up or down shifts the bits of each word, one to the side the
// words: in 3x3 the columns 110 010 000 moved down are 1100 100 000, of which row 3 is cut off.
inline void keep_words(uint32_t* kept, Words words, int operation, int height, int width, Shape shape) {
  const Offset offset = move_offset(operation);
  if (offset.across != 0) {
    uint32_t padded[kLanes + 2] = {};
    std::memcpy(padded + 1, words.of, sizeof words.of);
    std::memcpy(words.of, padded + 1 - offset.across, sizeof words.of);
  }
  if (offset.down > 0) {
    for (uint32_t& word : words.of) word <<= 1;
  }
  if (offset.down < 0) {
    for (uint32_t& word : words.of) word >>= 1;
  }
  if (changes_pair(operation)) words = {};
  limit(words, height, width);
  std::memcpy(kept, words.of, shape.width * sizeof(uint32_t));
}

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
inline void apply(int operation, Canvas canvas, const Cells& use, const Pair& pair, Shape shape) {
  const Box box = use.box;
  const int height = canvas.sizes[kHeight];
  const int width = canvas.sizes[kWidth];
  if (is_fill(operation)) return paint(canvas.grid, use, operation - kFill);
  if (is_flood(operation)) {
    return flood_fill(canvas.grid, operation - kFloodFill, box.top, box.left, height, width, shape);
  }
  switch (operation) {
    case kMoveUp:
    case kMoveDown:
    case kMoveLeft:
    case kMoveRight:
      return move(canvas.grid, use, move_offset(operation), height, width);
    case kRotateClockwise:
    case kRotateCounterclockwise:
      return rotate(canvas.grid, box, operation == kRotateClockwise, height, width, shape);
    case kFlipLeftRight:
    case kFlipUpDown:
      return flip(canvas.grid, box, operation == kFlipLeftRight, shape);
    case kCopy:
    case kCut:
      copy(canvas.clipboard, canvas.grid, use, canvas.sizes[kClipboardHeight], shape);
      set_size(canvas.sizes, kClipboardHeight, box.bottom - box.top + 1, box.right - box.left + 1);
      if (operation == kCut) paint(canvas.grid, use, 0);
      return;
    case kPaste:
      return paste(canvas.grid, canvas.clipboard, box.top, box.left, canvas.sizes[kClipboardHeight], height, width,
                   shape);
    case kClear:
      return paint(canvas.grid, use, 0);
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
      std::memset(canvas.clipboard, kPadding, shape.cells());
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

// What an operation comes to on a canvas, before anything changes.
struct Plan {
  int operation;  // or kNoOperation
  Box chosen;     // around the chosen cells
  int64_t row;    // of the pair that the operation may load; the nearest one that there is
  bool applies;
};

// The first and the last environments of a batch, whose margins are not those of other environments.
inline bool is_at_an_end(const Batch& batch, int64_t index) {
  const int64_t cells = batch.shape.cells();
  return index * cells < kMargin || (index + 1) * cells + kMargin > batch.size * cells;
}

// Plans an operation on a box, or on the mask of the environment, the words of which it fills in.
inline Plan plan_edit(const Batch& batch, int64_t index, int operation, Box box, int64_t row, Words& words,
                      Margins& margins) {
  const Shape shape = batch.shape;
  const int8_t* const sizes = batch.canvas.sizes + index * kSizes;
  // A resize may select cells beyond the active area, as it makes that larger; any other operation may not.
  const int height_limit = operation == kResize ? shape.height : sizes[kHeight];
  const int width_limit = operation == kResize ? shape.width : sizes[kWidth];
  Box chosen = {0, 0, -1, -1};
  if (batch.masks == nullptr) {
    chosen = clip(box, height_limit, width_limit);
  } else if (operation != kNoOperation) {
    const int cells = shape.cells();
    const uint8_t* mask = batch.masks + index * cells;
    if (is_at_an_end(batch, index)) mask = static_cast<uint8_t*>(std::memcpy(margins.mask + kMargin, mask, cells));
    words = pack(mask, shape);
    limit(words, height_limit, width_limit);
    chosen = bounding_box(words);
  }
  const bool is_single = chosen.top == chosen.bottom && chosen.left == chosen.right;
  return {operation, chosen, std::clamp<int64_t>(row, 0, batch.num_pairs - 1),
          can_apply(operation, chosen.is_empty(), is_single, sizes[kClipboardHeight] > 0)};
}

// Edits one environment by an operation that applies.
inline void edit_one(const Batch& batch, int64_t index, const Plan& plan, const Words& words, Margins& margins) {
  const Shape shape = batch.shape;
  const int cells = shape.cells();
  const int64_t start = index * cells;
  const int operation = plan.operation;
  const Canvas whole = {batch.canvas.grid + start, batch.canvas.clipboard + start, batch.canvas.target + start,
                        batch.canvas.sizes + index * kSizes};
  Canvas canvas = whole;
  const uint8_t* mask = batch.masks == nullptr ? nullptr : batch.masks + start;
  // Kernels read beyond the grid, so the first and the last ones of the batch are edited in a place with margins.
  const bool needs_margins = is_at_an_end(batch, index);
  if (needs_margins) {
    canvas.grid = static_cast<Cell*>(std::memcpy(margins.grid + kMargin, whole.grid, cells));
    canvas.clipboard = static_cast<Cell*>(std::memcpy(margins.clipboard + kMargin, whole.clipboard, cells));
    if (mask != nullptr) mask = static_cast<uint8_t*>(std::memcpy(margins.mask + kMargin, mask, cells));
  }
  const Cells use = cells_of(plan.chosen, mask, canvas.sizes[kHeight], canvas.sizes[kWidth], shape);
  const int64_t row = plan.row;
  const Cell* const colors = batch.colors == nullptr ? nullptr : batch.colors + index * kColors;
  apply(operation, canvas, use, {batch.inputs + row * cells, batch.outputs + row * cells, colors}, shape);
  // The kept selection is limited to the active area as it is now, after a resize or a load.
  const int new_height = canvas.sizes[kHeight];
  const int new_width = canvas.sizes[kWidth];
  if (mask == nullptr) {
    keep_box(batch.kept_boxes + 4 * index, plan.chosen, operation, new_height, new_width);
  } else {
    keep_words(batch.kept_words + index * shape.width, words, operation, new_height, new_width, shape);
  }
  if (needs_margins) {
    std::memcpy(whole.grid, canvas.grid, cells);
    std::memcpy(whole.clipboard, canvas.clipboard, cells);
  }
}

// Counts the cells that match; below the last row of either grid nothing does.
inline int count_of(const Batch& batch, int64_t index) {
  const int64_t cells = batch.shape.cells();
  const int64_t start = index * cells;
  const int8_t* const sizes = batch.canvas.sizes + index * kSizes;
  const int length = smaller(sizes[kHeight], sizes[kTargetHeight]) * batch.shape.width;
  return count_matches(batch.canvas.grid + start, batch.canvas.target + start, length, batch.size * cells - start);
}

// The matches over the cells of the smallest box around both areas.
inline float similarity_of(const Batch& batch, int64_t index) {
  const int8_t* const sizes = batch.canvas.sizes + index * kSizes;
  const int cells = larger(sizes[kHeight], sizes[kTargetHeight]) * larger(sizes[kWidth], sizes[kTargetWidth]);
  return static_cast<float>(count_of(batch, index)) / static_cast<float>(cells);
}

// Asks for cells that will be read, so that they are there by then.
inline void prefetch(const Cell* cells, int64_t count) {
  constexpr int kCacheLine = 64;
  for (int64_t i = 0; i < count; i += kCacheLine) __builtin_prefetch(cells + i);
}

// Asks for what a planned edit will read: a batch of 1,024 takes 3 MB, and each environment would wait for a cache
// further away.
inline void prefetch(const Batch& batch, int64_t index, const Plan& plan) {
  const int cells = batch.shape.cells();
  const int8_t* const sizes = batch.canvas.sizes + index * kSizes;
  prefetch(batch.canvas.grid + index * cells, sizes[kHeight] * batch.shape.width);
  prefetch(batch.canvas.target + index * cells, smaller(sizes[kHeight], sizes[kTargetHeight]) * batch.shape.width);
  if (plan.operation == kCopyInput) prefetch(batch.inputs + plan.row * cells, cells);
}

constexpr int kBlock = 16;  // environments that are planned before the first of them is edited

// What is planned for some environments.
struct Plans {
  Plan of[kBlock];
  Words words[kBlock];  // of masks
};

// Edits those environments of a block whose operation applies, and then calls `count(i)` where the grid may have
// changed: after the next one is edited, for what was just stored is not yet in the cache.
template <typename Count>
inline void edit_block(const Batch& batch, int64_t first, int count, const Plans& plans, Margins& margins,
                       Count count_one) {
  int applying[kBlock];
  int num_applying = 0;
  for (int i = 0; i < count; i++) {
    applying[num_applying] = i;
    num_applying += plans.of[i].applies;
  }
  int edited = -1;
  for (int k = 0; k < num_applying; k++) {
    const int i = applying[k];
    edit_one(batch, first + i, plans.of[i], plans.words[i], margins);
    if (edited >= 0) count_one(edited);
    edited = is_in(kKeepsGrid, plans.of[i].operation) ? -1 : i;
  }
  if (edited >= 0) count_one(edited);
}

inline void edit_batch(const Batch& batch) {
  Margins margins;
  Plans plans;
  for (int64_t first = 0; first < batch.size; first += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, batch.size - first));
    for (int i = 0; i < count; i++) {
      const int64_t index = first + i;
      Box box = {};
      if (batch.masks == nullptr) std::memcpy(&box, batch.boxes + 4 * index, sizeof box);
      plans.of[i] = plan_edit(batch, index, batch.operations[index], box, batch.rows[index], plans.words[i], margins);
    }
    edit_block(batch, first, count, plans, margins, [](int) {});
    for (int i = 0; i < count; i++) batch.matches[first + i] = count_of(batch, first + i);
  }
}

}  // namespace jaxarc

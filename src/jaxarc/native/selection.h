// The selection before an operation, as the operation uses it, and after it, as the state keeps it.
#pragma once

#include "grid.h"
#include "operations.h"

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

}  // namespace jaxarc

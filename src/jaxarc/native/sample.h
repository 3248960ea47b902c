// Random actions, one for each key: those of ActionSpace.sample in jaxarc/envs/spaces.py.
#pragma once

#include "grid.h"
#include "random_words.h"

namespace jaxarc {

// The legal operations.
struct Operations {
  const int32_t* ids;
  uint32_t count;
};

// Takes the lowest digit of a number in a mixed radix: of 47 with the bases 3, 4 and 5 the digits 2, 3 and 3.
inline int32_t take_digit(uint32_t* number, uint32_t base) {
  const uint32_t digit = *number % base;
  *number /= base;
  return static_cast<int32_t>(digit);
}

// One word gives the operation and a corner, a second one the other corner of a box; a point has none.
inline void draw_corners(Words2 key, Operations operations, Shape shape, int32_t* operation, int32_t* corners,
                         bool is_box) {
  uint32_t word = threefry(key, 0).first;
  *operation = operations.ids[take_digit(&word, operations.count)];
  corners[0] = take_digit(&word, shape.height);
  corners[1] = take_digit(&word, shape.width);
  if (!is_box) return;
  word = threefry(key, 1).first;
  corners[2] = take_digit(&word, shape.height);
  corners[3] = take_digit(&word, shape.width);
}

// Changes about half of the bits when one bit changes: lowbias32 (Wellons 2018).
inline uint32_t mix(uint32_t word) {
  word = (word ^ word >> 16) * 0x7FEB352Du;
  word = (word ^ word >> 15) * 0x846CA68Bu;
  return word ^ word >> 16;
}

// Draws a mask, of which a word for each column has bit r for row r; see fast_bits in jaxarc/prng.py.
//
// The words are cut into bytes of eight rows, 32 columns side by side, and each row shifts its bytes: one vector holds
// the row, and 32 - W cells behind it that the next row writes over. At the `end` of the room only the row is written.
inline void draw_mask(Words2 key, Operations operations, Shape shape, int32_t* operation, uint8_t* cells,
                      const uint8_t* end) {
  const uint32_t first = threefry(key, 0).first;
  const uint32_t second = threefry(key, 1).first;
  uint32_t word = threefry(key, 2).first;
  *operation = operations.ids[take_digit(&word, operations.count)];
  uint8_t bytes[4][kLanes];
  for (int column = 0; column < kLanes; column++) {
    const uint32_t rows = mix(mix(first + static_cast<uint32_t>(column) * 0x9E3779B9u) + second);
    for (int part = 0; part < 4; part++) bytes[part][column] = static_cast<uint8_t>(rows >> 8 * part);
  }
  for (int row = 0; row < shape.height; row++) {
    uint8_t mask[kLanes];
    for (int column = 0; column < kLanes; column++) mask[column] = bytes[row / 8][column] >> row % 8 & 1;
    uint8_t* const at = cells + row * shape.width;
    std::memcpy(at, mask, end - at < kLanes ? shape.width : kLanes);
  }
}

}  // namespace jaxarc

// Random actions, one for each key: those of ActionSpace.sample in jaxarc/envs/spaces.py.
#pragma once

#include <algorithm>

#include "grid.h"
#include "random_words.h"

namespace jaxarc {

// Divides words by a number as a product: with 64 binary digits of 1 / divisor, rounded up, the integer part of the
// product is the quotient for every word (Lemire et al. 2019).
class Divisor {
 public:
  explicit Divisor(uint32_t divisor) : divisor_(divisor), inverse_(~uint64_t{0} / divisor + 1) {}

  // Takes the lowest digit of a number in a mixed radix: of 47 with the bases 3, 4 and 5 the digits 2, 3 and 3.
  int32_t take_digit(uint32_t* number) const {
    if (divisor_ == 1) return 0;  // whose inverse has 65 digits
    const auto quotient = static_cast<uint32_t>(static_cast<unsigned __int128>(inverse_) * *number >> 64);
    const uint32_t digit = *number - quotient * divisor_;
    *number = quotient;
    return static_cast<int32_t>(digit);
  }

 private:
  uint32_t divisor_;
  uint64_t inverse_;
};

// The legal operations, and the canvas.
struct Choices {
  Choices(const int32_t* ids, int64_t count, Shape shape)
      : ids(ids), shape(shape), operations(static_cast<uint32_t>(count)), rows(shape.height), columns(shape.width) {}

  const int32_t* ids;
  Shape shape;
  Divisor operations;
  Divisor rows;
  Divisor columns;
};

// Actions of a batch.
struct Drawn {
  int32_t* operations;
  int32_t* corners[4];
};

// One word gives the operation and a corner, a second one the other corner of a box; a point has none.
inline void draw_corners(const uint32_t* keys, int64_t size, const Choices& choices, const Drawn& drawn, bool is_box) {
  for (int64_t first = 0; first < size; first += kKeys) {
    const int count = static_cast<int>(std::min<int64_t>(kKeys, size - first));
    uint32_t words[2][kKeys] = {};
    draw_words(keys + 2 * first, count, 0, words[0]);
    if (is_box) draw_words(keys + 2 * first, count, 1, words[1]);
    for (int i = 0; i < count; i++) {
      drawn.operations[first + i] = choices.ids[choices.operations.take_digit(&words[0][i])];
      for (int corner = 0; corner < (is_box ? 2 : 1); corner++) {
        drawn.corners[2 * corner][first + i] = choices.rows.take_digit(&words[corner][i]);
        drawn.corners[2 * corner + 1][first + i] = choices.columns.take_digit(&words[corner][i]);
      }
    }
  }
}

// Changes about half of the bits when one bit changes: lowbias32 (Wellons 2018).
inline uint32_t mix(uint32_t word) {
  word = (word ^ word >> 16) * 0x7FEB352Du;
  word = (word ^ word >> 15) * 0x846CA68Bu;
  return word ^ word >> 16;
}

// Draws masks, of which a word for each column has bit r for row r; see fast_bits in jaxarc/prng.py.
//
// The words are cut into bytes of eight rows, 32 columns side by side, and each row takes a bit of its bytes: one vector
// holds the row, and 32 - W cells behind it that the next row writes over. At the end of the room only the row is
// written.
inline void draw_mask(Words2 key, Shape shape, uint8_t* cells, const uint8_t* end) {
  uint8_t bytes[4][kLanes];
  for (int column = 0; column < kLanes; column++) {
    const uint32_t rows = mix(mix(key.first + static_cast<uint32_t>(column) * 0x9E3779B9u) + key.second);
    for (int part = 0; part < 4; part++) bytes[part][column] = static_cast<uint8_t>(rows >> 8 * part);
  }
  for (int row = 0; row < shape.height; row++) {
    const Row bit = repeat(1 << row % 8);
    const Row chosen = ((load(bytes[row / 8]) & bit) != 0) & repeat(1);
    uint8_t* const at = cells + row * shape.width;
    if (end - at >= kLanes) {
      std::memcpy(at, &chosen, sizeof chosen);
    } else {
      std::memcpy(at, &chosen, shape.width);
    }
  }
}

inline void draw_masks(const uint32_t* keys, int64_t size, const Choices& choices, int32_t* operations,
                       uint8_t* masks) {
  const int64_t cells = choices.shape.height * choices.shape.width;
  for (int64_t first = 0; first < size; first += kKeys) {
    const int count = static_cast<int>(std::min<int64_t>(kKeys, size - first));
    uint32_t words[3][kKeys];
    for (uint32_t counter = 0; counter < 3; counter++) draw_words(keys + 2 * first, count, counter, words[counter]);
    for (int i = 0; i < count; i++) {
      operations[first + i] = choices.ids[choices.operations.take_digit(&words[2][i])];
      draw_mask({words[0][i], words[1][i]}, choices.shape, masks + (first + i) * cells, masks + size * cells);
    }
  }
}

}  // namespace jaxarc

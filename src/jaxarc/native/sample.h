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

typedef uint16_t Pairs __attribute__((vector_size(kLanes)));  // of bytes

// Draws a mask, of which a word for each column has bit r for row r; see fast_bits in jaxarc/prng.py.
//
// The words are cut into bytes of eight rows, 32 columns side by side. Row r is bit r % 8 of its bytes: what a shift
// moves from one byte of a pair into the other is above the lowest bit. A vector holds the row, and 32 - W cells behind
// it that the next row writes over. Where the room `end` is too near for that, the mask is drawn elsewhere and copied.
inline void draw_mask(Words2 key, Shape shape, uint8_t* cells, const uint8_t* end) {
  uint8_t bytes[4][kLanes];
  for (int column = 0; column < kLanes; column++) {
    const uint32_t rows = mix(mix(key.first + static_cast<uint32_t>(column) * 0x9E3779B9u) + key.second);
    for (int part = 0; part < 4; part++) bytes[part][column] = static_cast<uint8_t>(rows >> 8 * part);
  }
  const int size = shape.height * shape.width;
  uint8_t elsewhere[kMaxSide * kMaxSide + kLanes];
  const bool has_room = end - cells >= size + kLanes;
  uint8_t* at = has_room ? cells : elsewhere;
  for (int part = 0; part < 4; part++) {
    const auto pairs = reinterpret_cast<Pairs>(load(bytes[part]));
    const int count = smaller(shape.height - 8 * part, 8);
#pragma GCC unroll 8
    for (int row = 0; row < 8; row++) {
      if (row >= count) break;
      const Pairs chosen = pairs >> row & 0x0101;
      std::memcpy(at, &chosen, sizeof chosen);
      at += shape.width;
    }
  }
  if (!has_room) std::memcpy(cells, elsewhere, size);
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

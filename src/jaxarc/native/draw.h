// Random words and numbers of a key, those of jaxarc/prng.py; and random actions, one for each key: those of
// ActionSpace.sample in jaxarc/envs/spaces.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "grid.h"

namespace jaxarc {

constexpr int kKeys = 16;  // that are encrypted side by side
typedef uint32_t WordsOfKeys __attribute__((vector_size(kKeys * sizeof(uint32_t))));

// Two words of a key, or of kKeys keys in lanes.
template <typename Word>
struct WordPair {
  Word first;
  Word second;
};
using Words2 = WordPair<uint32_t>;

// Encrypts the counter (0, counter) with Threefry-2x32, 20 rounds (Salmon et al. 2011): row `counter` of what
// split_words returns, and in its first word the draw `counter` of random_bits.
template <typename Word, typename Counter>
inline WordPair<Word> threefry(WordPair<Word> key, Counter counter) {
  constexpr int kTurns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Word keys[3] = {key.first, key.second, key.first ^ key.second ^ 0x1BD11BDAu};
  Word left = keys[0];
  Word right = counter + keys[1];
#pragma GCC unroll 5
  for (uint32_t group = 0; group < 5; group++) {
#pragma GCC unroll 4
    for (const int turn : kTurns[group % 2]) {
      left += right;
      right = left ^ (right << turn | right >> (32 - turn));
    }
    left += keys[(group + 1) % 3];
    right += keys[(group + 2) % 3] + (group + 1);
  }
  return {left, right};
}

// The first words that some keys, at most kKeys, draw for a counter.
inline void draw_words(const uint32_t* keys, int count, uint32_t counter, uint32_t* words) {
  uint32_t halves[2][kKeys] = {};
  for (int i = 0; i < count; i++) {
    halves[0][i] = keys[2 * i];
    halves[1][i] = keys[2 * i + 1];
  }
  WordPair<WordsOfKeys> side_by_side;
  std::memcpy(&side_by_side, halves, sizeof halves);
  const WordsOfKeys drawn = threefry(side_by_side, counter).first;
  std::memcpy(words, &drawn, sizeof drawn);
}

// The keys of counters: those of jax.random.fold_in, and for 0, 1, 2 .. of jax.random.split.
inline void fold_in(const uint32_t* key, const int32_t* counters, int64_t size, uint32_t* keys) {
  const WordsOfKeys none = {};
  const WordPair<WordsOfKeys> repeated = {none + key[0], none + key[1]};
  for (int64_t first = 0; first < size; first += kKeys) {
    const int64_t count = size - first < kKeys ? size - first : kKeys;
    WordsOfKeys counter = {};
    std::memcpy(&counter, counters + first, count * sizeof(uint32_t));
    const WordPair<WordsOfKeys> drawn = threefry(repeated, counter);
    uint32_t words[2][kKeys];
    std::memcpy(words, &drawn, sizeof words);
    for (int64_t i = 0; i < count; i++) {
      keys[2 * (first + i)] = words[0][i];
      keys[2 * (first + i) + 1] = words[1][i];
    }
  }
}

// A number in [0, 1), a multiple of 2^-24: 24 bits are as many as a float holds exactly.
inline float to_uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// A number in 0 .. count - 1, for counts up to 2^16: the upper 16 bits, as a fraction of 2^16, times the count.
inline int32_t to_randint(uint32_t word, int32_t count) {
  return static_cast<int32_t>((word >> 16) * static_cast<uint32_t>(count) >> 16);
}

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
  const int size = shape.cells();
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
  const int64_t cells = choices.shape.cells();
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

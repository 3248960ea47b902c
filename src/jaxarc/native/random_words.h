// Random words and numbers of a key, those of jaxarc/prng.py.
#pragma once

#include <cstdint>
#include <cstring>

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

}  // namespace jaxarc

// Random words and numbers of a key, those of jaxarc/prng.py.
#pragma once

#include <cstdint>

namespace jaxarc {

struct Words2 {
  uint32_t first;
  uint32_t second;
};

// Encrypts the counter (0, counter) with Threefry-2x32, 20 rounds (Salmon et al. 2011): row `counter` of what
// split_words returns, and in its first word the draw `counter` of random_bits.
inline Words2 threefry(Words2 key, uint32_t counter) {
  constexpr int kTurns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {key.first, key.second, key.first ^ key.second ^ 0x1BD11BDAu};
  uint32_t left = keys[0];
  uint32_t right = counter + keys[1];
  for (uint32_t group = 0; group < 5; group++) {
    for (const int turn : kTurns[group % 2]) {
      left += right;
      right = left ^ (right << turn | right >> (32 - turn));
    }
    left += keys[(group + 1) % 3];
    right += keys[(group + 2) % 3] + group + 1;
  }
  return {left, right};
}

// A number in [0, 1), a multiple of 2^-24: 24 bits are as many as a float holds exactly.
inline float to_uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// A number in 0 .. count - 1, for counts up to 2^16: the upper 16 bits, as a fraction of 2^16, times the count.
inline int32_t to_randint(uint32_t word, int32_t count) {
  return static_cast<int32_t>((word >> 16) * static_cast<uint32_t>(count) >> 16);
}

}  // namespace jaxarc

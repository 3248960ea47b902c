// The rows of a batch that need something: which they are, and putting what was made for them back; and a copy of all.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace jaxarc {

// Writes the numbers of the rows that need it, in ascending order, and then `size` up to the end; returns how many need
// it. For the needs 0 1 0 0 1 and room for seven numbers: 1 4 5 5 5 5 5, and 2. There is room for at least size + 1.
inline int32_t order_rows(const uint8_t* need, int64_t size, int32_t* order, int64_t room) {
  int64_t count = 0;
  for (int64_t row = 0; row < size; row++) {
    order[count] = static_cast<int32_t>(row);  // written over by the next one if this one does not need it
    count += need[row];
  }
  for (int64_t i = count; i < room; i++) order[i] = static_cast<int32_t>(size);
  return static_cast<int32_t>(count);
}

// Copies row i of `fresh` to row taken[i] of `rows`; a number that is no row's is left out.
inline void put_rows(uint8_t* rows, const uint8_t* fresh, int64_t row_bytes, int64_t size, const int32_t* taken,
                     int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (taken[i] < 0 || taken[i] >= size) continue;
    std::memcpy(rows + taken[i] * row_bytes, fresh + i * row_bytes, row_bytes);
  }
}

// Copies bytes around the caches, for arrays that would not stay there: a processor that stores in a cache first loads
// what it then overwrites.
inline void copy_around_caches(void* to, const void* from, int64_t count) {
  int64_t done = 0;
  auto* const bytes = static_cast<char*>(to);
  const auto* const read = static_cast<const char*>(from);
#ifdef __SSE2__
  constexpr int64_t kStored = sizeof(__m128i);
  if (reinterpret_cast<uintptr_t>(to) % kStored == 0) {
    for (; done + kStored <= count; done += kStored) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(bytes + done), _mm_loadu_si128(reinterpret_cast<const __m128i*>(read + done)));
    }
    _mm_sfence();  // what went around the caches is seen by other threads from here on
  }
#endif
  std::memcpy(bytes + done, read + done, count - done);
}

}  // namespace jaxarc

// A step of each environment of a batch, and where one ends the start of its next episode, in one pass over the grids.
//
// The results are those of step, reset_where and observe in jaxarc/wrappers/auto_reset.py, bit for bit. While a block is
// finished its grids are still in the cache.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "restart.h"
#include "step.h"

namespace jaxarc {

// What is told of the step, as it was before any restart.
struct Ended {
  float* similarities;
  int32_t* counts;
  Cell* grids;  // only of the episodes that ended; the others are those of the state
};

// Further facts of a step.
enum EndingFact { kTerminated = 16, kTruncated = 32 };

constexpr int64_t kBeyondCaches = 1 << 24;  // bytes of grids, of which none is still in a cache after all are written

// Copies cells around the caches where they would not stay there: a processor that stores in a cache loads before what it
// then overwrites.
inline void copy_cells(Cell* to, const Cell* from, int64_t count, bool around_caches) {
#ifdef __SSE2__
  constexpr int64_t kStored = sizeof(__m128i);
  if (around_caches && reinterpret_cast<uintptr_t>(to) % kStored == 0) {
    const int64_t whole = count - count % kStored;
    for (int64_t i = 0; i < whole; i += kStored) {
      const __m128i cells = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), cells);
    }
    std::memcpy(to + whole, from + whole, count - whole);
    return;
  }
#endif
  std::memcpy(to, from, count);
}

// Shows the grids as they are after the restarts.
inline void advance_batch(const Steps& steps, const Rules& rules, const Restart& restart, const Ended& ended,
                          Cell* shown) {
  const int64_t cells = restart.shape.height * restart.shape.width;
  const Cell* const grids = restart.canvas.grid;
  const bool around_caches = restart.size * cells >= kBeyondCaches;
  Next drawn[kBlock];
  int num_drawn = 0;
  int64_t waiting = 0;  // first environment of the block that is not finished
  int num_waiting = 0;
  const auto finish = [&] {
    for (int i = 0; i < num_drawn; i++) {
      const int64_t start = drawn[i].index * cells;
      std::memcpy(ended.grids + start, grids + start, cells);
      start_next(restart, *steps.tasks, drawn[i]);
    }
    copy_cells(shown + waiting * cells, grids + waiting * cells, num_waiting * cells, around_caches);
  };
  step_batch(steps, rules, [&](int64_t first, int count) {
    finish();  // the block before this one: the pairs of its next episodes are in the cache by now
    std::memcpy(ended.similarities + first, steps.similarities + first, count * sizeof(float));
    std::memcpy(ended.counts + first * kCounts, steps.counts + first * kCounts, count * kCounts * sizeof(int32_t));
    waiting = first;
    num_waiting = count;
    num_drawn = 0;
    for (int64_t index = first; index < first + count; index++) {
      const uint8_t* const endings = steps.endings + index * 2;
      if (!(endings[0] | endings[1])) continue;
      steps.facts[index] |= (endings[0] ? kTerminated : 0) | (endings[1] ? kTruncated : 0);
      drawn[num_drawn++] = ask_next(restart, *steps.tasks, index);
    }
  });
  finish();
#ifdef __SSE2__
  if (around_caches) _mm_sfence();  // what went around the caches is seen by other threads from here on
#endif
}

}  // namespace jaxarc

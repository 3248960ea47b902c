// A step of each environment of a batch, and where one ends the start of its next episode, in one pass over the grids.
//
// The results are those of step and reset_next in jaxarc/envs/environment.py, bit for bit. While a block is finished
// its grids are still in the cache.
#pragma once

#include "reset.h"
#include "step.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace jaxarc {

// Results of the step, as they were before any reset, and what the observations show after it.
struct Ended {
  float* similarities;
  int32_t* counts;
  Cell* next_grids;  // null: nobody reads them
  Cell* grids;       // only of the episodes that ended; the others are those of the state; null: nobody reads them
  bool goes_around_caches;  // where the grids that are read next are too many to stay there
};

constexpr int64_t kBeyondCaches = int64_t{1} << 24;  // bytes of grids, none of which is in a cache when all are written

// Copies cells around the caches, for grids that would not stay there: a processor that stores in a cache first loads
// what it then overwrites.
inline void copy_around_caches(Cell* to, const Cell* from, int64_t count) {
  int64_t done = 0;
#ifdef __SSE2__
  constexpr int64_t kStored = sizeof(__m128i);
  if (reinterpret_cast<uintptr_t>(to) % kStored == 0) {
    for (; done + kStored <= count; done += kStored) {
      const __m128i stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + done), stored);
    }
    _mm_sfence();  // what went around the caches is seen by other threads from here on
  }
#endif
  std::memcpy(to + done, from + done, count - done);
}

// Copies the grids of some environments for the observations.
inline void show(const Batch& batch, const Ended& ended, int64_t first, int64_t count) {
  if (ended.next_grids == nullptr) return;
  const int64_t cells = batch.shape.height * batch.shape.width;
  Cell* const to = ended.next_grids + first * cells;
  const Cell* const from = batch.canvas.grid + first * cells;
  if (ended.goes_around_caches) {
    copy_around_caches(to, from, count * cells);
  } else {
    std::memcpy(to, from, count * cells);
  }
}

// Further facts of a step.
enum EndingFact { kTerminated = 16, kTruncated = 32 };

inline void step_and_reset_batch(const Steps& steps, const Rules& rules, const Ended& ended) {
  const Batch& batch = steps.edit;
  const int64_t cells = batch.shape.height * batch.shape.width;
  Next drawn[kBlock];
  int num_drawn = 0;
  int64_t num_shown = 0;
  // The block before this one: the pairs of its next episodes are in the cache by now.
  const auto finish = [&](int64_t done) {
    for (int i = 0; i < num_drawn; i++) {
      const int64_t start = drawn[i].index * cells;
      if (ended.grids != nullptr) std::memcpy(ended.grids + start, batch.canvas.grid + start, cells);
      start_next(steps, *steps.tasks, drawn[i]);
    }
    num_drawn = 0;
    show(batch, ended, num_shown, done - num_shown);
    num_shown = done;
  };
  step_batch(steps, rules, [&](int64_t first, int count) {
    finish(first);
    std::memcpy(ended.similarities + first, steps.similarities + first, count * sizeof(float));
    std::memcpy(ended.counts + first * kCounts, steps.counts + first * kCounts, count * kCounts * sizeof(int32_t));
    for (int64_t index = first; index < first + count; index++) {
      const uint8_t* const endings = steps.endings + index * 2;
      if (!(endings[0] | endings[1])) continue;
      steps.facts[index] |= (endings[0] ? kTerminated : 0) | (endings[1] ? kTruncated : 0);
      drawn[num_drawn++] = ask_next(steps, *steps.tasks, index);
    }
  });
  finish(batch.size);
}

// The same for `size` environments from `first` on: a batch of their own, whose kernels touch no other environment.
inline void step_and_reset_part(Steps steps, const Rules& rules, Ended ended, int64_t first, int64_t size) {
  const auto skip = [first](auto*& array, int64_t of_each = 1) {
    if (array != nullptr) array += first * of_each;
  };
  Batch& batch = steps.edit;
  const int64_t cells = batch.shape.height * batch.shape.width;
  batch.size = size;
  for (Cell** grid : {&batch.canvas.grid, &batch.canvas.clipboard, &batch.canvas.target}) skip(*grid, cells);
  skip(batch.canvas.sizes, kSizes);
  skip(batch.kept_boxes, 4);
  skip(batch.kept_words, batch.shape.width);
  skip(batch.masks, cells);
  skip(steps.counts, kCounts);
  skip(steps.similarities);
  skip(steps.endings, 2);
  skip(steps.keys, 2);
  skip(steps.records, steps.capacity * steps.record_bytes);
  skip(steps.operations);
  for (const int32_t*& corner : steps.corners) skip(corner);
  skip(steps.facts);
  skip(steps.similarities_before);
  skip(ended.similarities);
  skip(ended.counts, kCounts);
  skip(ended.next_grids, cells);
  skip(ended.grids, cells);
  step_and_reset_batch(steps, rules, ended);
}

}  // namespace jaxarc

// The start of the next episode, in place, for the environments of a batch that need one: by itself, or in one pass over
// the grids with the step that ended the one before.
//
// Everything that an episode draws comes from the key that the state keeps for it. The results are those of step and
// reset_next in jaxarc/envs/environment.py, bit for bit.
#pragma once

#include <algorithm>

#include "draw.h"
#include "step.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace jaxarc {

enum Use : uint32_t { kForTask, kForPair, kForStart, kForState };  // rows of the words of a reset

// The first task whose cumulative weight is above a level: of the sums 1 1 4, task 0 above 0.8 and task 2 above 1.
inline int64_t first_above(const Tasks& tasks, float level) {
  return std::upper_bound(tasks.sums, tasks.sums + tasks.count, level) - tasks.sums;
}

inline int64_t choose_task(const Tasks& tasks, uint32_t word, int64_t previous) {
  const float* const end = tasks.sums + tasks.count;
  int64_t task;
  if (tasks.is_in_turn) {
    task = first_above(tasks, tasks.sums[std::clamp<int64_t>(previous, 0, tasks.count - 1)]);
    if (task == tasks.count) task = first_above(tasks, 0);
  } else {
    // The product may round up to the whole sum, past which no task is: then the last one of positive weight is drawn.
    const int64_t last = std::lower_bound(tasks.sums, end, end[-1]) - tasks.sums;
    task = std::min(first_above(tasks, to_uniform(word) * end[-1]), last);
  }
  return std::min(task, tasks.count - 1);
}

// The episode that an environment goes on with.
struct Next {
  int64_t index;
  int64_t task;
  int32_t pair;
  int64_t row;
};

inline Words2 key_of(const States& states, int64_t index) {
  return {states.keys[index * 2], states.keys[index * 2 + 1]};
}

// Draws the next episode, and asks for its pair.
inline Next ask_next(const States& states, const Tasks& tasks, int64_t index) {
  const int64_t cells = states.edit.shape.cells();
  const Words2 key = key_of(states, index);
  const int64_t task = choose_task(tasks, threefry(key, kForTask).first, states.counts[index * kCounts + kTaskIndex]);
  const Place place = place_in(tasks, task);
  int32_t pair = tasks.is_random_pair ? to_randint(threefry(key, kForPair).first, place.count) : 0;
  if (tasks.pair_index != nullptr) pair = larger(smaller(*tasks.pair_index, place.count - 1), 0);
  const int64_t row = std::clamp<int64_t>(place.first_row + pair, 0, tasks.num_pairs - 1);
  prefetch(tasks.inputs + row * cells, cells);
  prefetch(tasks.outputs + row * cells, cells);
  return {index, task, pair, row};
}

inline void start_next(const States& states, const Tasks& tasks, const Next& next) {
  const int64_t index = next.index;
  const Batch& batch = states.edit;
  const Shape shape = batch.shape;
  const int cells = shape.cells();
  const int64_t start = index * cells;
  int8_t* const sizes = batch.canvas.sizes + index * kSizes;
  Cell* const grid = batch.canvas.grid + start;
  Cell* const target = batch.canvas.target + start;
  load_into(grid, sizes, kHeight, tasks.inputs + next.row * cells, nullptr, shape);
  load_into(target, sizes, kTargetHeight, tasks.outputs + next.row * cells, nullptr, shape);
  std::memset(batch.canvas.clipboard + start, kPadding, cells);
  set_size(sizes, kClipboardHeight, 0, 0);
  if (batch.kept_boxes != nullptr) {
    keep_box(batch.kept_boxes + 4 * index, {0, 0, -1, -1}, kNoOperation, shape.height, shape.width);
  } else {
    std::memset(batch.kept_words + index * shape.width, 0, shape.width * sizeof(uint32_t));
  }
  const int32_t fresh[kCounts] = {0, 0, static_cast<int32_t>(next.task), next.pair, 0};
  std::memcpy(states.counts + index * kCounts, fresh, sizeof fresh);
  states.similarities[index] = similarity_of(batch, index);
  std::memset(states.endings + index * 2, 0, 2);
  const Words2 words = threefry(key_of(states, index), kForState);
  states.keys[index * 2] = words.first;
  states.keys[index * 2 + 1] = words.second;
  const int64_t record_bytes = states.capacity * states.record_bytes;
  std::memset(states.records + index * record_bytes, 0, record_bytes);
}

// Draws some episodes before it starts them, so that their pairs are there by then.
inline void reset_rows(const States& states, const Tasks& tasks, const uint8_t* need) {
  const int64_t size = states.edit.size;
  Next drawn[kBlock];
  int count = 0;
  for (int64_t index = 0; index < size; index++) {
    if (need[index] != 0) drawn[count++] = ask_next(states, tasks, index);
    if (count < kBlock && index + 1 < size) continue;
    for (int i = 0; i < count; i++) start_next(states, tasks, drawn[i]);
    count = 0;
  }
}

// Results of the step, as they were before any reset, and what the observations show after it.
struct Ended {
  float* similarities;
  int32_t* counts;
  Cell* next_grids;  // after the reset; null: nobody reads them
  Cell* grids;       // as the step left them; null: nobody reads them
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

// Copies the grids of some environments for the observations, where anybody reads them.
inline void show(Cell* grids, const Batch& batch, const Ended& ended, int64_t first, int64_t count) {
  if (grids == nullptr) return;
  const int64_t cells = batch.shape.cells();
  const Cell* const from = batch.canvas.grid + first * cells;
  if (ended.goes_around_caches) {
    copy_around_caches(grids + first * cells, from, count * cells);
  } else {
    std::memcpy(grids + first * cells, from, count * cells);
  }
}

// Further facts of a step.
enum EndingFact { kTerminated = 16, kTruncated = 32 };

inline void step_and_reset_batch(const Steps& steps, const Rules& rules, const Ended& ended) {
  const Batch& batch = steps.edit;
  Next drawn[kBlock];
  int num_drawn = 0;
  int64_t num_shown = 0;
  // The block before this one: the pairs of its next episodes are in the cache by now.
  const auto finish = [&](int64_t done) {
    show(ended.grids, batch, ended, num_shown, done - num_shown);
    for (int i = 0; i < num_drawn; i++) start_next(steps, *steps.tasks, drawn[i]);
    num_drawn = 0;
    show(ended.next_grids, batch, ended, num_shown, done - num_shown);
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
  const int64_t cells = batch.shape.cells();
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

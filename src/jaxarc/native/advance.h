// A step of each environment of a batch, and where one ends the start of its next episode, in one pass over the grids.
//
// The results are those of step and reset_where in jaxarc/wrappers/auto_reset.py, bit for bit. While a block is finished
// its grids are still in the cache.
#pragma once

#include "restart.h"
#include "step.h"

namespace jaxarc {

// Results of the step, as they were before any restart.
struct Ended {
  float* similarities;
  int32_t* counts;
  Cell* grids;  // only of the episodes that ended; the others are those of the state
};

// Further facts of a step.
enum EndingFact { kTerminated = 16, kTruncated = 32 };

inline void advance_batch(const Steps& steps, const Rules& rules, const Restart& restart, const Ended& ended) {
  const int64_t cells = restart.shape.height * restart.shape.width;
  Next drawn[kBlock];
  int num_drawn = 0;
  // The block before this one: the pairs of its next episodes are in the cache by now.
  const auto finish = [&] {
    for (int i = 0; i < num_drawn; i++) {
      const int64_t start = drawn[i].index * cells;
      std::memcpy(ended.grids + start, restart.canvas.grid + start, cells);
      start_next(restart, *steps.tasks, drawn[i]);
    }
    num_drawn = 0;
  };
  step_batch(steps, rules, [&](int64_t first, int count) {
    finish();
    std::memcpy(ended.similarities + first, steps.similarities + first, count * sizeof(float));
    std::memcpy(ended.counts + first * kCounts, steps.counts + first * kCounts, count * kCounts * sizeof(int32_t));
    for (int64_t index = first; index < first + count; index++) {
      const uint8_t* const endings = steps.endings + index * 2;
      if (!(endings[0] | endings[1])) continue;
      steps.facts[index] |= (endings[0] ? kTerminated : 0) | (endings[1] ? kTruncated : 0);
      drawn[num_drawn++] = ask_next(restart, *steps.tasks, index);
    }
  });
  finish();
}

}  // namespace jaxarc

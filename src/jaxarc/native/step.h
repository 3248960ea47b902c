// One step of each environment of a batch, in place: the action is checked, the canvas edited, the ending decided, the
// action recorded. The results are those of take_step in jaxarc/envs/transition.py, bit for bit; the reward, a sum of
// floats, is left to XLA, which gets facts.
#pragma once

#include "edit_batch.h"

namespace jaxarc {

enum Count { kStepCount, kSubmissionCount, kTaskIndex, kPairIndex, kSolvedPairs, kCounts };
enum Fact { kRunning = 1, kNewlySolved = 2, kWrongSubmission = 4, kInvalid = 8 };

// What the config fixes.
struct Rules {
  uint64_t legal;  // bit i: operation i
  bool clips;      // coordinates out of range are moved into it, and not invalid
  bool switches_pairs;
  bool scores_submissions;
  bool score_on_submit;
  bool hides_all;
  int64_t max_submissions;
  int64_t max_steps;
};

// The flags are bits, in the order of the fields.
inline Rules rules_of(int64_t legal, int64_t flags, int64_t max_submissions, int64_t max_steps) {
  const auto has = [&](int flag) { return (flags >> flag & 1) != 0; };
  return {static_cast<uint64_t>(legal), has(0), has(1), has(2), has(3), has(4), max_submissions, max_steps};
}

// The arrays of a batch. `edit` has all of them that an edit needs, but no operations, boxes, rows and matches.
struct Steps {
  Batch edit;
  int32_t* counts;
  float* similarities;
  uint8_t* endings;
  uint8_t* records;  // of actions, capacity x record_bytes for an environment
  int64_t capacity;  // 0 where there is no history
  int64_t record_bytes;
  const int32_t* operations;
  const int32_t* corners[4];  // row, column, row, column; without masks
  const int32_t* first_rows;
  const int32_t* pair_counts;
  const int32_t* num_open;  // pairs from here on are hidden; null: as rules.hides_all says
  const int8_t* orders;     // pair p is orders[p] rows further down; null: p rows
  int64_t order_length;
  int32_t* facts;
};

// What an action comes to, before anything changes.
struct Decision {
  int operation;  // or kNoOperation
  Box box;
  int32_t pair;
  int64_t row;
  bool is_invalid;
};

// `count` pairs as bits; 3 pairs are 111.
inline uint32_t all_pairs(int32_t count) { return static_cast<uint32_t>(count) < 32 ? (uint32_t{1} << count) - 1 : ~uint32_t{0}; }

// The pair that an operation leads to, and whether there is one; see choose_pair in jaxarc/envs/pairs.py.
inline bool choose_pair(int operation, uint32_t solved, int32_t count, int32_t* pair) {
  const bool is_next = operation == kNextDemoPair || operation == kNextTestPair;
  const bool is_previous = operation == kPreviousDemoPair || operation == kPreviousTestPair;
  const bool is_first = operation == kFirstUnsolvedDemoPair || operation == kFirstUnsolvedTestPair;
  if (!is_next && !is_previous && !is_first) return true;
  const uint32_t unsolved = all_pairs(count) & ~solved;
  if (is_first && unsolved != 0) {
    *pair = __builtin_ctz(unsolved);
    return true;
  }
  const int32_t neighbor = *pair + is_next - is_previous;
  *pair = neighbor < 0 ? count - 1 : neighbor >= count ? 0 : neighbor;
  return !is_first;
}

inline int clip_to(int32_t value, int high) { return larger(smaller(value, high), 0); }

inline Decision decide(const Steps& steps, const Rules& rules, int64_t index) {
  const Shape shape = steps.edit.shape;
  const int32_t* const counts = steps.counts + index * kCounts;
  const uint8_t* const endings = steps.endings + index * 2;
  const int32_t wanted = steps.operations[index];
  bool is_valid = wanted >= 0 && wanted <= kLastOperation && (rules.legal >> wanted & 1) != 0;
  Decision decision = {};
  if (steps.edit.masks == nullptr) {
    int inside[4];
    for (int i = 0; i < 4; i++) {
      const int32_t corner = steps.corners[i][index];
      inside[i] = clip_to(corner, (i % 2 == 0 ? shape.height : shape.width) - 1);
      is_valid = is_valid && (rules.clips || inside[i] == corner);
    }
    decision.box = {smaller(inside[0], inside[2]), smaller(inside[1], inside[3]), larger(inside[0], inside[2]),
                    larger(inside[1], inside[3])};
  }
  const bool is_done = endings[0] || endings[1];
  decision.is_invalid = !is_valid;
  decision.operation = is_valid && !is_done ? wanted : kNoOperation;
  decision.pair = counts[kPairIndex];
  // Where submits are not scored, 40 and 41 must not tell which pairs are solved.
  const uint32_t known = rules.scores_submissions ? static_cast<uint32_t>(counts[kSolvedPairs]) : 0;
  if (!choose_pair(decision.operation, known, steps.pair_counts[index], &decision.pair)) {
    decision.operation = kNoOperation;
  }
  int32_t further = decision.pair;
  if (steps.orders != nullptr && decision.pair < steps.order_length) {
    further = steps.orders[index * steps.order_length + larger(decision.pair, 0)];
  }
  decision.row = int64_t{steps.first_rows[index]} + further;
  return decision;
}

inline uint8_t to_byte(int32_t value) { return static_cast<uint8_t>(clip_to(value, 255)); }

// Writes the action over the oldest record: its selection, its operation, its pair, whether it was valid. A mask is
// stored in bytes of eight rows, each of all columns.
inline void record(const Steps& steps, int64_t index, int32_t step, int32_t pair, bool is_invalid) {
  if (steps.capacity == 0) return;
  const Shape shape = steps.edit.shape;
  const int64_t slot = (step % steps.capacity + steps.capacity) % steps.capacity;
  uint8_t* at = steps.records + (index * steps.capacity + slot) * steps.record_bytes;
  if (steps.edit.masks == nullptr) {
    const int64_t num_corners = steps.record_bytes - 3;  // 2 of a point, 4 of a box
    for (int64_t i = 0; i < num_corners; i++) *at++ = to_byte(steps.corners[i][index]);
  } else {
    const uint8_t* const mask = steps.edit.masks + index * shape.height * shape.width;
    for (int first = 0; first < shape.height; first += 8) {
      for (int column = 0; column < shape.width; column++) {
        uint8_t byte = 0;
        for (int row = smaller(first + 7, shape.height - 1); row >= first; row--) {
          byte = static_cast<uint8_t>(byte << 1 | mask[row * shape.width + column]);
        }
        *at++ = byte;
      }
    }
  }
  at[0] = to_byte(steps.operations[index]);
  at[1] = to_byte(pair);
  at[2] = !is_invalid;
}

// Follows from the edited canvas: similarity, counts, ending, facts.
inline void conclude(const Steps& steps, const Rules& rules, int64_t index, const Decision& decision) {
  const Shape shape = steps.edit.shape;
  const Canvas& canvas = steps.edit.canvas;
  const int64_t start = index * shape.height * shape.width;
  const int8_t* const sizes = canvas.sizes + index * kSizes;
  int32_t* const counts = steps.counts + index * kCounts;
  uint8_t* const endings = steps.endings + index * 2;
  const bool is_running = !endings[0] && !endings[1];
  const int matches = count_active(canvas.grid + start, canvas.target + start, sizes, shape);
  const int cells = count_union(sizes);
  steps.similarities[index] = static_cast<float>(matches) / static_cast<float>(cells);

  // A submit is right if every cell of the union matches. Solved pairs are bits; without switching, bit 0 is for all.
  const bool is_submit = decision.operation == kSubmit;
  const bool is_right = is_submit && matches == cells;
  const int32_t place = rules.switches_pairs ? decision.pair : 0;
  const uint32_t before = static_cast<uint32_t>(counts[kSolvedPairs]);
  const uint32_t solved = is_right && place >= 0 && place < 32 ? before | uint32_t{1} << place : before;
  const uint32_t every = rules.switches_pairs ? all_pairs(steps.pair_counts[index]) : 1;
  if (is_running) record(steps, index, counts[kStepCount], counts[kPairIndex], decision.is_invalid);
  counts[kStepCount] += is_running;
  counts[kSubmissionCount] += is_submit;
  counts[kPairIndex] = decision.pair;
  counts[kSolvedPairs] = static_cast<int32_t>(solved);
  // On a hidden pair an ending may tell that a submit was right only where the reward does.
  const bool is_hidden = steps.num_open == nullptr ? rules.hides_all : decision.pair >= steps.num_open[index];
  const bool is_last = is_right && solved == every && (!is_hidden || rules.score_on_submit);
  if (is_running) {
    endings[0] = is_submit && (is_last || counts[kSubmissionCount] >= rules.max_submissions);
    endings[1] = !endings[0] && counts[kStepCount] >= rules.max_steps;
  }
  steps.facts[index] = (is_running ? kRunning : 0) | (decision.is_invalid ? kInvalid : 0) |
                       (is_right && solved != before ? kNewlySolved : 0) |
                       (is_submit && !is_right ? kWrongSubmission : 0);
}

// Concludes each environment after the next one is edited: what was just stored is not yet in the cache.
inline void step_batch(const Steps& steps, const Rules& rules) {
  Margins margins;
  Decision previous = {};
  for (int64_t index = 0; index < steps.edit.size; index++) {
    if (index + kAhead < steps.edit.size) prefetch(steps.edit, index + kAhead);
    const Decision decision = decide(steps, rules, index);
    edit_one(steps.edit, index, decision.operation, decision.box, decision.row, margins);
    if (index > 0) conclude(steps, rules, index - 1, previous);
    previous = decision;
  }
  if (steps.edit.size > 0) conclude(steps, rules, steps.edit.size - 1, previous);
}

}  // namespace jaxarc

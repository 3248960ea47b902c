// One step of each environment of a batch, in place: the action is checked, the canvas edited, the ending decided, the
// action recorded. The results are those of step_by_rules in jaxarc/envs/step.py, bit for bit; the reward, a sum of
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

enum Mode { kTrain, kTest, kTrials };  // which pairs of a task are played

// All tasks, and how the next one is chosen.
struct Tasks {
  const Cell* inputs;
  const Cell* outputs;
  int64_t num_pairs;
  const int32_t* first_pair;
  const int32_t* num_train;
  const int32_t* num_test;
  const float* sums;  // cumulative weights, which never fall
  int64_t count;
  const int32_t* pair_index;  // the only one to play; null: as `is_random_pair` says
  Mode mode;
  bool is_in_turn;
  bool is_random_pair;  // or the first one
};

// The arrays of the states of a batch. `edit` has all of them that an edit needs, but no operations, boxes, rows and
// matches.
struct States {
  Batch edit;
  int32_t* counts;
  float* similarities;
  uint8_t* endings;
  uint32_t* keys;    // which a reset alone reads
  uint8_t* records;  // of actions, capacity x record_bytes for an environment
  int64_t capacity;  // 0 where there is no history
  int64_t record_bytes;
};

// A step of the states: actions, where their pairs are, and what it returns.
struct Steps : States {
  const int32_t* operations;
  const int32_t* corners[4];  // row, column, row, column; without masks
  const Tasks* tasks;         // where the pairs of a state are found; null: as the next three say
  const int32_t* first_rows;
  const int32_t* pair_counts;
  const int32_t* num_open;  // pairs from here on are hidden; null: as rules.hides_all says
  const int8_t* orders;     // pair p is orders[p] rows further down; null: p rows
  int64_t order_length;
  int32_t* facts;
  float* similarities_before;  // of the step; null: nobody asks
};

// The pairs that an episode may play: rows from `first_row` on, of which those from `num_open` on are hidden.
struct Place {
  int32_t first_row;
  int32_t count;
  int32_t num_open;
};

// As pairs_in_play in jaxarc/envs/pairs.py.
inline Place place_in(const Tasks& tasks, int64_t task) {
  const int32_t num_train = tasks.num_train[task];
  const int32_t num_test = tasks.num_test[task];
  const int32_t first = tasks.first_pair[task];
  switch (tasks.mode) {
    case kTrain:
      return {first, num_train, INT32_MAX};
    case kTest:
      return {first + num_train, num_test, INT32_MIN};
    default:
      return {first, num_train + num_test, num_train};
  }
}

inline Place place_of(const Steps& steps, const Rules& rules, int64_t index) {
  if (steps.tasks != nullptr) {
    // As JAX reads an array: below 0 from the end, and beyond the last one the last.
    const int64_t task = steps.counts[index * kCounts + kTaskIndex];
    const int64_t count = steps.tasks->count;
    return place_in(*steps.tasks, std::clamp<int64_t>(task < 0 ? task + count : task, 0, count - 1));
  }
  const int32_t count = steps.pair_counts[index];
  const int32_t num_open = steps.num_open != nullptr ? steps.num_open[index] : rules.hides_all ? INT32_MIN : INT32_MAX;
  return {steps.first_rows[index], count, num_open};
}

// What follows from an action before anything changes, besides the plan of the edit.
struct Decision {
  Place place;
  int32_t pair;
  bool is_invalid;
};

// `count` pairs as bits; 3 pairs are 111.
inline uint32_t all_pairs(int32_t count) { return static_cast<uint32_t>(count) < 32 ? (uint32_t{1} << count) - 1 : ~uint32_t{0}; }

// The pair that an operation leads to, and whether there is one; see choose_pair in jaxarc/envs/pairs.py.
inline bool choose_pair(int operation, uint32_t solved, int32_t count, int32_t* pair) {
  if (operation < kNextDemoPair || operation == kResetPair) return true;
  const bool is_next = operation == kNextDemoPair || operation == kNextTestPair;
  const bool is_first = operation == kFirstUnsolvedDemoPair || operation == kFirstUnsolvedTestPair;
  const uint32_t unsolved = all_pairs(count) & ~solved;
  if (is_first && unsolved != 0) {
    *pair = __builtin_ctz(unsolved);
    return true;
  }
  const int32_t neighbor = is_first ? *pair : is_next ? *pair + 1 : *pair - 1;
  *pair = neighbor < 0 ? count - 1 : neighbor >= count ? 0 : neighbor;
  return !is_first;
}

inline int clip_to(int32_t value, int high) { return larger(smaller(value, high), 0); }

// The boxes of a block: the corners in range and in order, and whether they were in range. The loops are over arrays
// side by side, of which a processor takes several numbers at once.
struct Boxes {
  int32_t low[2][kBlock];  // top, left
  int32_t high[2][kBlock];
  int32_t is_outside[kBlock];
};

inline Boxes order_corners(const Steps& steps, int64_t first, int count) {
  Boxes boxes;
  std::fill_n(boxes.is_outside, kBlock, 0);
  for (int axis = 0; axis < 2; axis++) {
    const int last = (axis == 0 ? steps.edit.shape.height : steps.edit.shape.width) - 1;
    const int32_t* const one = steps.corners[axis] + first;
    const int32_t* const other = steps.corners[axis + 2] + first;
    for (int i = 0; i < count; i++) {
      const int32_t start = clip_to(one[i], last);
      const int32_t end = clip_to(other[i], last);
      boxes.low[axis][i] = smaller(start, end);
      boxes.high[axis][i] = larger(start, end);
      boxes.is_outside[i] |= (start ^ one[i]) | (end ^ other[i]);
    }
  }
  return boxes;
}

inline Decision decide(const Steps& steps, const Rules& rules, int64_t index, Box box, bool is_outside, Plan& plan,
                       Words& words, Margins& margins) {
  const int32_t* const counts = steps.counts + index * kCounts;
  const uint8_t* const endings = steps.endings + index * 2;
  const int32_t wanted = steps.operations[index];
  const bool is_known = static_cast<uint32_t>(wanted) <= kLastOperation;
  const bool is_valid = is_known && is_in(rules.legal, wanted) && (rules.clips || !is_outside);
  const bool is_done = endings[0] | endings[1];
  int operation = is_valid && !is_done ? wanted : kNoOperation;
  Decision decision = {place_of(steps, rules, index), counts[kPairIndex], !is_valid};
  if (steps.similarities_before != nullptr) steps.similarities_before[index] = steps.similarities[index];
  // Where submits are not scored, 40 and 41 must not tell which pairs are solved.
  const uint32_t known = rules.scores_submissions ? static_cast<uint32_t>(counts[kSolvedPairs]) : 0;
  if (!choose_pair(operation, known, decision.place.count, &decision.pair)) operation = kNoOperation;
  int32_t further = decision.pair;
  if (steps.orders != nullptr && decision.pair < steps.order_length) {
    further = steps.orders[index * steps.order_length + larger(decision.pair, 0)];
  }
  plan = plan_edit(steps.edit, index, operation, box, int64_t{decision.place.first_row} + further, words, margins);
  return decision;
}

inline uint8_t to_byte(int32_t value) { return static_cast<uint8_t>(clip_to(value, 255)); }

// Writes the action over the oldest record: its selection, its operation, its pair, whether it was valid. Coordinates
// that are clipped are those that were used. A mask is stored in bytes of eight rows, each of all columns.
inline void record(const Steps& steps, const Rules& rules, int64_t index, int32_t step, int32_t pair, bool is_invalid) {
  if (steps.capacity == 0) return;
  const Shape shape = steps.edit.shape;
  const int64_t slot = (step % steps.capacity + steps.capacity) % steps.capacity;
  uint8_t* at = steps.records + (index * steps.capacity + slot) * steps.record_bytes;
  if (steps.edit.masks == nullptr) {
    const int64_t num_corners = steps.record_bytes - 3;  // 2 of a point, 4 of a box
    for (int64_t i = 0; i < num_corners; i++) {
      const int last = rules.clips ? (i % 2 == 0 ? shape.height : shape.width) - 1 : 255;
      *at++ = static_cast<uint8_t>(clip_to(steps.corners[i][index], last));
    }
  } else {
    const uint8_t* const mask = steps.edit.masks + index * shape.cells();
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

// Follows from the edited canvas, whose similarity is known: counts, ending, facts.
inline void conclude(const Steps& steps, const Rules& rules, int64_t index, int operation, const Decision& decision) {
  int32_t* const counts = steps.counts + index * kCounts;
  uint8_t* const endings = steps.endings + index * 2;
  const bool is_running = !(endings[0] | endings[1]);
  int32_t facts = (is_running ? kRunning : 0) | (decision.is_invalid ? kInvalid : 0);
  if (is_running) record(steps, rules, index, counts[kStepCount], counts[kPairIndex], decision.is_invalid);
  counts[kStepCount] += is_running;
  counts[kPairIndex] = decision.pair;
  bool terminates = false;
  if (operation == kSubmit) {
    // A submit is right if every cell of the union matches. Solved pairs are bits; without switching, bit 0 is for all.
    const bool is_right = steps.similarities[index] == 1;
    const int32_t place = rules.switches_pairs ? decision.pair : 0;
    const uint32_t before = static_cast<uint32_t>(counts[kSolvedPairs]);
    const uint32_t solved = is_right && place >= 0 && place < 32 ? before | uint32_t{1} << place : before;
    const uint32_t every = rules.switches_pairs ? all_pairs(decision.place.count) : 1;
    counts[kSubmissionCount]++;
    counts[kSolvedPairs] = static_cast<int32_t>(solved);
    // On a hidden pair an ending may tell that a submit was right only where the reward does.
    const bool is_hidden = decision.pair >= decision.place.num_open;
    const bool is_last = is_right && solved == every && (!is_hidden || rules.score_on_submit);
    terminates = is_last || counts[kSubmissionCount] >= rules.max_submissions;
    facts |= (is_right && solved != before ? kNewlySolved : 0) | (is_right ? 0 : kWrongSubmission);
  }
  steps.facts[index] = facts;
  if (!is_running) return;
  endings[0] = terminates;
  endings[1] = !terminates && counts[kStepCount] >= rules.max_steps;
}

// Plans a block of environments, and asks for what the edits will read.
inline void plan_block(const Steps& steps, const Rules& rules, int64_t first, Plans& plans, Decision* decisions,
                       Margins& margins) {
  const int count = static_cast<int>(std::clamp<int64_t>(steps.edit.size - first, 0, kBlock));
  Boxes boxes = {};
  if (steps.edit.masks == nullptr) boxes = order_corners(steps, first, count);
  for (int i = 0; i < count; i++) {
    const Box box = {boxes.low[0][i], boxes.low[1][i], boxes.high[0][i], boxes.high[1][i]};
    decisions[i] =
        decide(steps, rules, first + i, box, boxes.is_outside[i] != 0, plans.of[i], plans.words[i], margins);
    if (plans.of[i].applies) prefetch(steps.edit, first + i, plans.of[i]);
  }
}

// A state's similarity is that of its grids, so it is counted only where the grids may have changed. Each block is
// planned before the one ahead of it is edited, which gives the caches time. Calls `after(first, count)` for each block.
template <typename After>
inline void step_batch(const Steps& steps, const Rules& rules, After after) {
  Margins margins;
  Plans plans[2];
  Decision decisions[2][kBlock];
  const Batch& batch = steps.edit;
  plan_block(steps, rules, 0, plans[0], decisions[0], margins);
  int now = 0;
  for (int64_t first = 0; first < batch.size; first += kBlock) {
    plan_block(steps, rules, first + kBlock, plans[1 - now], decisions[1 - now], margins);
    const int count = static_cast<int>(std::min<int64_t>(kBlock, batch.size - first));
    edit_block(batch, first, count, plans[now], margins,
               [&](int i) { steps.similarities[first + i] = similarity_of(batch, first + i); });
    for (int i = 0; i < count; i++) {
      conclude(steps, rules, first + i, plans[now].of[i].operation, decisions[now][i]);
    }
    after(first, count);
    now = 1 - now;
  }
}

}  // namespace jaxarc

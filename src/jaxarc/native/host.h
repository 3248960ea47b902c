// One environment whose arrays the host keeps: its step, and the start of its next episode, without XLA.
#pragma once

#include "reset.h"

namespace jaxarc {

// What jaxarc/native/host.py fills in, field by field; an array that is not there is null. The flags are the bits of
// Rules, in its order; the arrays from first_pair on are those of Tasks, and only a reset reads them.
struct HostEpisode {
  Cell* grid;
  Cell* clipboard;
  Cell* target;
  int8_t* kept_boxes;
  uint32_t* kept_words;
  int8_t* sizes;
  int32_t* counts;
  float* similarity;
  uint8_t* endings;
  uint32_t* key;
  uint8_t* records;
  const uint8_t* mask;  // of the action; null: its corners
  const Cell* inputs;
  const Cell* outputs;
  const int8_t* order;
  const Cell* colors;
  const int32_t* first_pair;
  const int32_t* num_train;
  const int32_t* num_test;
  const float* sums;
  const int32_t* pair_index;
  int64_t height;
  int64_t width;
  int64_t capacity;
  int64_t record_bytes;
  int64_t num_pairs;
  int64_t order_length;
  int64_t legal;
  int64_t flags;
  int64_t max_submissions;
  int64_t max_steps;
  int64_t num_tasks;
  int64_t mode;
  int64_t is_in_turn;
  int64_t is_random_pair;
  int32_t operation;
  int32_t corners[4];
  int32_t first_row;
  int32_t pair_count;
  int32_t num_open;  // of trials
  int32_t facts;     // of the step
};

inline void point_at_states(const HostEpisode& episode, States& states) {
  Batch& batch = states.edit;
  batch.size = 1;
  batch.shape = {static_cast<int>(episode.height), static_cast<int>(episode.width)};
  batch.canvas = {episode.grid, episode.clipboard, episode.target, episode.sizes};
  batch.kept_boxes = episode.kept_boxes;
  batch.kept_words = episode.kept_words;
  batch.masks = episode.mask;
  batch.colors = episode.colors;
  batch.inputs = episode.inputs;
  batch.outputs = episode.outputs;
  batch.num_pairs = episode.num_pairs;
  states.counts = episode.counts;
  states.similarities = episode.similarity;
  states.endings = episode.endings;
  states.keys = episode.key;
  states.records = episode.records;
  states.capacity = episode.capacity;
  states.record_bytes = episode.record_bytes;
}

inline void host_step(HostEpisode& episode) {
  Steps steps = {};
  point_at_states(episode, steps);
  steps.operations = &episode.operation;
  for (int i = 0; i < 4; i++) steps.corners[i] = episode.corners + i;
  steps.first_rows = &episode.first_row;
  steps.pair_counts = &episode.pair_count;
  steps.num_open = episode.mode == kTrials ? &episode.num_open : nullptr;
  steps.orders = episode.order;
  steps.order_length = episode.order_length;
  steps.facts = &episode.facts;
  const Rules rules = rules_of(episode.legal, episode.flags, episode.max_submissions, episode.max_steps);
  step_batch(steps, rules, [](int64_t, int) {});
}

inline void host_reset(HostEpisode& episode) {
  constexpr uint8_t kNeeded = 1;
  States states = {};
  point_at_states(episode, states);
  const Tasks tasks = {episode.inputs,
                       episode.outputs,
                       episode.num_pairs,
                       episode.first_pair,
                       episode.num_train,
                       episode.num_test,
                       episode.sums,
                       episode.num_tasks,
                       episode.pair_index,
                       static_cast<Mode>(episode.mode),
                       episode.is_in_turn != 0,
                       episode.is_random_pair != 0};
  reset_rows(states, tasks, &kNeeded);
  const Place place = place_in(tasks, episode.counts[kTaskIndex]);
  episode.first_row = place.first_row;
  episode.pair_count = place.count;
  episode.num_open = place.num_open;
}

}  // namespace jaxarc

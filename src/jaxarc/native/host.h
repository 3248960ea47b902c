// One environment whose arrays the host keeps: its step with the reward, and the start of its next episode, without XLA.
#pragma once

#include "restart.h"

namespace jaxarc {

// How XLA rounds a product and what is added to it on a machine: apart; together; together even where a choice by data
// stands between the two.
enum Rounding { kApart, kTogether, kTogetherPastChoices };

// What jaxarc/native/host.py fills in, field by field; an array that is not there is null. The flags are the bits of
// Rules, in its order; the arrays from first_pair on are those of Tasks, and only a restart reads them.
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
  int64_t rounding;  // of rewards
  int32_t operation;
  int32_t corners[4];
  int32_t first_row;
  int32_t pair_count;
  int32_t num_open;  // of trials
  int32_t facts;     // of the step
  float gamma;
  float similarity_weight;
  float step_penalty;
  float success_bonus;
  float unsolved_submission_penalty;
  float invalid_action_penalty;
  float reward;  // of the step
};

inline Rules host_rules(const HostEpisode& episode) {
  return rules_of(episode.legal, episode.flags, episode.max_submissions, episode.max_steps);
}

inline float multiply_add(float factor, float value, float term, bool is_together) {
  return is_together ? __builtin_fmaf(factor, value, term) : factor * value + term;
}

// The reward of a step that was taken: compute_reward in jaxarc/envs/transition.py, and the bits that XLA gives. It drops
// a term that is always 0, and may round a product together with the first term that is left. Which Rounding a machine
// has, jaxarc/adapters/host_episodes.py finds out.
inline void host_reward(HostEpisode& episode, float before) {
  const Rules rules = host_rules(episode);
  const bool may_hide = episode.mode == kTrials;
  const bool is_hidden = may_hide ? episode.counts[kPairIndex] >= episode.num_open : rules.hides_all;
  const bool is_scored = !is_hidden || rules.score_on_submit;
  const bool scores = may_hide || is_scored;
  const auto had = [&](Fact fact) { return (episode.facts & fact) != 0; };
  const struct {
    bool happened;
    float value;
  } terms[] = {{true, episode.step_penalty},
               {had(kNewlySolved) && is_scored, scores ? episode.success_bonus : 0},
               {had(kWrongSubmission) && is_scored, scores ? episode.unsolved_submission_penalty : 0},
               {had(kInvalid), episode.invalid_action_penalty}};
  const bool is_together = episode.rounding != kApart;
  const float weight = episode.similarity_weight;
  const float shaping = multiply_add(episode.gamma, *episode.similarity, -before, is_together);
  // A product that waits for a term.
  bool is_product = !is_hidden && (!may_hide || episode.rounding == kTogetherPastChoices);
  float reward = is_hidden ? 0 : weight * shaping;
  for (const auto& term : terms) {
    if (term.value == 0) continue;
    const float value = term.happened ? term.value : 0;
    reward = is_product ? multiply_add(weight, shaping, value, is_together) : reward + value;
    is_product = false;
  }
  episode.reward = (episode.facts & kRunning) != 0 ? reward : 0;
}

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
  const float before = *episode.similarity;
  step_batch(steps, host_rules(episode), [](int64_t, int) {});
  host_reward(episode, before);
}

inline void host_restart(HostEpisode& episode) {
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
  restart_rows(states, tasks, &kNeeded);
  const Place place = place_in(tasks, episode.counts[kTaskIndex]);
  episode.first_row = place.first_row;
  episode.pair_count = place.count;
  episode.num_open = place.num_open;
}

}  // namespace jaxarc

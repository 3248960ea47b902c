// What the library exports: handlers of XLA's foreign function interface, and functions for hosts that have the arrays.
//
// XLA lets a result take the place of an argument where nobody reads the argument afterwards, as in a scan. What an
// operation leaves alone is then not touched at all. Each handler takes its arrays in the order in which its caller in
// jaxarc/envs names them.
#include "advance.h"
#include "call.h"
#include "edit_batch.h"
#include "host.h"
#include "restart.h"
#include "sample.h"
#include "step.h"
#include "threads.h"

namespace jaxarc {

using Fault = const char*;  // why a call is refused; null: it is not

constexpr Fault kWrongShape = "a canvas has at most 30 rows and columns, and a grid all of its cells";

// The numbers that begin every call on grids.
Shape take_shape(Call& call) {
  const auto height = static_cast<int>(call.number());
  const auto width = static_cast<int>(call.number());
  return {height, width};
}

bool fits(const Call& call, Shape shape) {
  return shape.height <= kMaxSide && shape.width <= kMaxSide && call.length(1) == shape.height * shape.width;
}

// The arrays of canvases, in place.
void change_canvases(Call& call, Shape shape, bool has_masks, Batch& batch) {
  batch.size = call.length(0);
  batch.shape = shape;
  batch.canvas.grid = call.change<Cell>();
  batch.canvas.clipboard = call.change<Cell>();
  batch.canvas.target = call.change<Cell>();
  batch.kept_words = call.change_if<uint32_t>(has_masks);
  batch.kept_boxes = call.change_if<int8_t>(!has_masks);
  batch.canvas.sizes = call.change<int8_t>();
}

void take_pairs(Call& call, Batch& batch) {
  batch.num_pairs = call.length(0);
  batch.inputs = call.take<Cell>();
  batch.outputs = call.take<Cell>();
}

Fault edit(Call& call) {
  const Shape shape = take_shape(call);
  const bool has_masks = call.flag();
  const bool has_colors = call.flag();
  if (!fits(call, shape)) return kWrongShape;
  Batch batch = {};
  change_canvases(call, shape, has_masks, batch);
  batch.operations = call.take<int32_t>();
  batch.masks = call.take_if<uint8_t>(has_masks);
  batch.boxes = call.take_if<int32_t>(!has_masks);
  batch.rows = call.take<int32_t>();
  batch.colors = call.take_if<Cell>(has_colors);
  take_pairs(call, batch);
  batch.matches = call.give<int32_t>();
  edit_batch(batch);
  return nullptr;
}

enum Format { kPoint, kBox, kMask };

// Which of the arrays of a state and an action are there.
struct Form {
  Shape shape;
  Format format;
  bool has_records;
};

Form take_form(Call& call) {
  const Shape shape = take_shape(call);
  const auto format = static_cast<Format>(call.number());
  return {shape, format, call.flag()};
}

Rules take_rules(Call& call) {
  const int64_t legal = call.number();
  const int64_t flags = call.number();
  const int64_t max_submissions = call.number();
  return rules_of(legal, flags, max_submissions, call.number());
}

// The arrays of states; a step leaves their keys alone.
void change_states(Call& call, const Form& form, States& states, bool has_keys = true) {
  change_canvases(call, form.shape, form.format == kMask, states.edit);
  states.counts = call.change<int32_t>();
  states.similarities = call.change<float>();
  states.endings = call.change<uint8_t>();
  states.keys = call.change_if<uint32_t>(has_keys);
  if (form.has_records) {
    states.capacity = call.length(1);
    states.record_bytes = call.length(2);
    states.records = call.change<uint8_t>();
  }
}

void take_actions(Call& call, const Form& form, Steps& steps) {
  steps.operations = call.take<int32_t>();
  if (form.format == kMask) {
    steps.edit.masks = call.take<uint8_t>();
    return;
  }
  for (int corner = 0; corner < 4; corner++) {
    steps.corners[corner] = form.format == kPoint && corner > 1 ? steps.corners[corner - 2] : call.take<int32_t>();
  }
}

Fault step(Call& call) {
  const Form form = take_form(call);
  const bool has_order = call.flag();
  const bool has_colors = call.flag();
  const bool has_open = call.flag();
  const Rules rules = take_rules(call);
  if (!fits(call, form.shape)) return kWrongShape;
  Steps steps = {};
  change_states(call, form, steps, false);
  take_actions(call, form, steps);
  steps.first_rows = call.take<int32_t>();
  steps.pair_counts = call.take<int32_t>();
  if (has_order) steps.order_length = call.length(1);
  steps.orders = call.take_if<int8_t>(has_order);
  steps.edit.colors = call.take_if<Cell>(has_colors);
  steps.num_open = call.take_if<int32_t>(has_open);
  take_pairs(call, steps.edit);
  steps.facts = call.give<int32_t>();
  step_batch(steps, rules, [](int64_t, int) {});
  return nullptr;
}

// The arrays of EnvParams, and the cumulative weights.
Tasks take_tasks(Call& call) {
  Tasks tasks = {};
  tasks.mode = static_cast<Mode>(call.number());
  tasks.is_in_turn = call.flag();
  tasks.is_random_pair = call.flag();
  const bool has_pair = call.flag();
  tasks.num_pairs = call.length(0);
  tasks.inputs = call.take<Cell>();
  tasks.outputs = call.take<Cell>();
  tasks.count = call.length(0);
  tasks.first_pair = call.take<int32_t>();
  tasks.num_train = call.take<int32_t>();
  tasks.num_test = call.take<int32_t>();
  call.take<int32_t>();  // the tasks' ids
  call.take<float>();    // the weights
  tasks.pair_index = call.take_if<int32_t>(has_pair);
  tasks.sums = call.take<float>();
  return tasks;
}

Fault restart(Call& call) {
  const Form form = take_form(call);
  if (!fits(call, form.shape)) return kWrongShape;
  States states = {};
  change_states(call, form, states);
  const auto* const need = call.take<uint8_t>();
  restart_rows(states, take_tasks(call), need);
  return nullptr;
}

// Environments from which on several threads step a batch, and those that one of them takes at a time.
constexpr int64_t kThreadedBatch = 4096;
constexpr int64_t kPart = 1024;

Fault advance(Call& call) {
  const Form form = take_form(call);
  const Rules rules = take_rules(call);
  if (!fits(call, form.shape)) return kWrongShape;
  Steps steps = {};
  change_states(call, form, steps);
  take_actions(call, form, steps);
  const Tasks tasks = take_tasks(call);
  steps.tasks = &tasks;
  steps.edit.inputs = tasks.inputs;
  steps.edit.outputs = tasks.outputs;
  steps.edit.num_pairs = tasks.num_pairs;
  steps.facts = call.give<int32_t>();
  steps.similarities_before = call.give<float>();
  Ended ended = {};
  ended.similarities = call.give<float>();
  ended.counts = call.give<int32_t>();
  ended.next_grids = call.give_if_left<Cell>();
  ended.grids = call.give_if_left<Cell>();
  const int64_t size = steps.edit.size;
  ended.goes_around_caches = size * form.shape.height * form.shape.width >= kBeyondCaches;
  if (size < kThreadedBatch) {
    advance_batch(steps, rules, ended);
  } else {
    do_parts(call.frame(), (size + kPart - 1) / kPart, [&](int64_t part) {
      advance_part(steps, rules, ended, part * kPart, std::min(kPart, size - part * kPart));
    });
  }
  return nullptr;
}

// Behind the number with which they begin; see spaces.py.
Choices take_choices(Call& call, Shape shape) {
  const int64_t count = call.length(0) - 1;
  return Choices(call.take<int32_t>() + 1, count, shape);
}

// Draws an action for each key.
Fault sample_corners(Call& call) {
  const Shape shape = take_shape(call);
  const bool is_box = call.flag();
  const int64_t size = call.length(0);
  const auto* const keys = call.take<uint32_t>();
  const Choices choices = take_choices(call, shape);
  Drawn drawn = {};
  drawn.operations = call.give<int32_t>();
  for (int corner = 0; corner < (is_box ? 4 : 2); corner++) drawn.corners[corner] = call.give<int32_t>();
  draw_corners(keys, size, choices, drawn, is_box);
  return nullptr;
}

Fault sample_masks(Call& call) {
  const Shape shape = take_shape(call);
  if (shape.height > kMaxSide || shape.width > kMaxSide) return kWrongShape;
  const int64_t size = call.length(0);
  const auto* const keys = call.take<uint32_t>();
  const Choices choices = take_choices(call, shape);
  auto* const operations = call.give<int32_t>();
  draw_masks(keys, size, choices, operations, call.give<uint8_t>());
  return nullptr;
}

Fault fold_in(Call& call) {
  const auto* const key = call.take<uint32_t>();
  const int64_t size = call.length(0);
  const auto* const counters = call.take<int32_t>();
  fold_in(key, counters, size, call.give<uint32_t>());
  return nullptr;
}

}  // namespace jaxarc

#define JAXARC_HANDLER(name) \
  XLA_FFI_Error* jaxarc_##name(XLA_FFI_CallFrame* frame) { return jaxarc::handle<jaxarc::name>(frame); }

extern "C" {
JAXARC_HANDLER(edit)
JAXARC_HANDLER(step)
JAXARC_HANDLER(restart)
JAXARC_HANDLER(advance)
JAXARC_HANDLER(sample_corners)
JAXARC_HANDLER(sample_masks)
JAXARC_HANDLER(fold_in)

void jaxarc_host_step(jaxarc::HostEpisode* episode) { jaxarc::host_step(*episode); }
void jaxarc_host_restart(jaxarc::HostEpisode* episode) { jaxarc::host_restart(*episode); }
void jaxarc_host_reward(jaxarc::HostEpisode* episode, float before) { jaxarc::host_reward(*episode, before); }
}

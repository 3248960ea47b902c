// What the library exports: handlers of XLA's foreign function interface, two of them for hosts that have the arrays too.
//
// XLA lets a result take the place of an argument where nobody reads the argument afterwards, as in a scan. What an
// operation leaves alone is then not touched at all. Each handler takes its arrays in the order in which its caller in
// jaxarc/envs names them.
#include "call.h"
#include "draw.h"
#include "edit_batch.h"
#include "reset.h"
#include "step.h"

namespace jaxarc {

using Fault = const char*;  // why a call is refused; null: it is not

constexpr Fault kWrongShape = "a canvas has 1 to 30 rows and columns, and there is a task";

// The numbers that begin every call on grids.
Shape take_shape(Call& call) {
  const auto height = static_cast<int>(call.number());
  const auto width = static_cast<int>(call.number());
  return {height, width};
}

bool is_canvas(Shape shape) {
  return shape.height >= 1 && shape.height <= kMaxSide && shape.width >= 1 && shape.width <= kMaxSide;
}

// The arrays of canvases, in place.
void change_canvases(Call& call, Shape shape, bool has_masks, Batch& batch) {
  const int64_t size = call.length(0);
  const int64_t cells = size * shape.cells();
  batch.size = size;
  batch.shape = shape;
  batch.canvas.grid = call.change<Cell>(cells);
  batch.canvas.clipboard = call.change<Cell>(cells);
  batch.canvas.target = call.change<Cell>(cells);
  batch.kept_words = call.change_if<uint32_t>(has_masks, size * shape.width);
  batch.kept_boxes = call.change_if<int8_t>(!has_masks, size * 4);
  batch.canvas.sizes = call.change<int8_t>(size * kSizes);
}

void take_pairs(Call& call, Batch& batch) {
  const int64_t cells = batch.shape.cells();
  batch.num_pairs = call.length(0);
  batch.inputs = call.take<Cell>(batch.num_pairs * cells);
  batch.outputs = call.take<Cell>(batch.num_pairs * cells);
}

Fault edit(Call& call) {
  const Shape shape = take_shape(call);
  const bool has_masks = call.flag();
  const bool has_colors = call.flag();
  Batch batch = {};
  change_canvases(call, shape, has_masks, batch);
  const int64_t size = batch.size;
  batch.operations = call.take<int32_t>(size);
  if (has_masks) {
    batch.masks = call.take_bools(size * shape.cells());
  } else {
    batch.boxes = call.take<int32_t>(size * 4);
  }
  batch.rows = call.take<int32_t>(size);
  batch.colors = call.take_if<Cell>(has_colors, size * kColors);
  take_pairs(call, batch);
  batch.matches = call.give<int32_t>(size);
  if (const Fault fault = call.fault()) return fault;
  if (!is_canvas(shape) || batch.num_pairs < 1) return kWrongShape;
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

// Of the record of an action: its selection, and three numbers.
int64_t record_bytes_of(const Form& form) {
  if (form.format != kMask) return 3 + (form.format == kBox ? 4 : 2);
  return 3 + (form.shape.height + 7) / 8 * form.shape.width;
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
  const int64_t size = states.edit.size;
  states.counts = call.change<int32_t>(size * kCounts);
  states.similarities = call.change<float>(size);
  states.endings = reinterpret_cast<uint8_t*>(call.change<bool>(size * 2));
  states.keys = call.change_if<uint32_t>(has_keys, size * 2);
  if (form.has_records) {
    states.capacity = call.length(1);
    states.record_bytes = record_bytes_of(form);
    states.records = call.change<uint8_t>(size * states.capacity * states.record_bytes);
  }
}

void take_actions(Call& call, const Form& form, Steps& steps) {
  const int64_t size = steps.edit.size;
  steps.operations = call.take<int32_t>(size);
  if (form.format == kMask) {
    steps.edit.masks = call.take_bools(size * form.shape.cells());
    return;
  }
  for (int corner = 0; corner < 4; corner++) {
    const bool is_first = form.format == kPoint && corner > 1;  // of a point, whose corners are one cell
    steps.corners[corner] = is_first ? steps.corners[corner - 2] : call.take<int32_t>(size);
  }
}

Fault step(Call& call) {
  const Form form = take_form(call);
  const bool has_order = call.flag();
  const bool has_colors = call.flag();
  const bool has_open = call.flag();
  const Rules rules = take_rules(call);
  Steps steps = {};
  change_states(call, form, steps, false);
  take_actions(call, form, steps);
  const int64_t size = steps.edit.size;
  steps.first_rows = call.take<int32_t>(size);
  steps.pair_counts = call.take<int32_t>(size);
  if (has_order) steps.order_length = call.length(1);
  steps.orders = call.take_if<int8_t>(has_order, size * steps.order_length);
  steps.edit.colors = call.take_if<Cell>(has_colors, size * kColors);
  steps.num_open = call.take_if<int32_t>(has_open, size);
  take_pairs(call, steps.edit);
  steps.facts = call.give<int32_t>(size);
  if (const Fault fault = call.fault()) return fault;
  if (!is_canvas(form.shape) || steps.edit.num_pairs < 1) return kWrongShape;
  step_batch(steps, rules, [](int64_t, int) {});
  return nullptr;
}

// The arrays of EnvParams, and the cumulative weights.
Tasks take_tasks(Call& call, Shape shape) {
  Tasks tasks = {};
  tasks.mode = static_cast<Mode>(call.number());
  tasks.is_in_turn = call.flag();
  tasks.is_random_pair = call.flag();
  const bool has_pair = call.flag();
  tasks.num_pairs = call.length(0);
  tasks.inputs = call.take<Cell>(tasks.num_pairs * shape.cells());
  tasks.outputs = call.take<Cell>(tasks.num_pairs * shape.cells());
  tasks.count = call.length(0);
  tasks.first_pair = call.take<int32_t>(tasks.count);
  tasks.num_train = call.take<int32_t>(tasks.count);
  tasks.num_test = call.take<int32_t>(tasks.count);
  call.take<int32_t>(tasks.count);  // the tasks' ids
  call.take<float>(tasks.count);    // the weights
  tasks.pair_index = call.take_if<int32_t>(has_pair, 1);
  tasks.sums = call.take<float>(tasks.count);
  return tasks;
}

bool can_play(const Tasks& tasks, Shape shape) { return is_canvas(shape) && tasks.num_pairs >= 1 && tasks.count >= 1; }

Fault reset(Call& call) {
  const Form form = take_form(call);
  States states = {};
  change_states(call, form, states);
  const auto* const need = call.take_bools(states.edit.size);
  const Tasks tasks = take_tasks(call, form.shape);
  if (const Fault fault = call.fault()) return fault;
  if (!can_play(tasks, form.shape)) return kWrongShape;
  reset_rows(states, tasks, need);
  return nullptr;
}

// Environments from which on several threads step a batch, and those that one of them takes at a time.
constexpr int64_t kThreadedBatch = 4096;
constexpr int64_t kPart = 1024;

Fault step_and_reset(Call& call) {
  const Form form = take_form(call);
  const Rules rules = take_rules(call);
  Steps steps = {};
  change_states(call, form, steps);
  take_actions(call, form, steps);
  const Tasks tasks = take_tasks(call, form.shape);
  steps.tasks = &tasks;
  steps.edit.inputs = tasks.inputs;
  steps.edit.outputs = tasks.outputs;
  steps.edit.num_pairs = tasks.num_pairs;
  const int64_t size = steps.edit.size;
  const int64_t cells = size * form.shape.cells();
  steps.facts = call.give<int32_t>(size);
  steps.similarities_before = call.give<float>(size);
  Ended ended = {};
  ended.similarities = call.give<float>(size);
  ended.counts = call.give<int32_t>(size * kCounts);
  ended.next_grids = call.give_if_left<Cell>(cells);
  ended.grids = call.give_if_left<Cell>(cells);
  if (const Fault fault = call.fault()) return fault;
  if (!can_play(tasks, form.shape)) return kWrongShape;
  ended.goes_around_caches = cells >= kBeyondCaches;
  if (size < kThreadedBatch) {
    step_and_reset_batch(steps, rules, ended);
  } else {
    do_parts(call.frame(), (size + kPart - 1) / kPart, [&](int64_t part) {
      step_and_reset_part(steps, rules, ended, part * kPart, std::min(kPart, size - part * kPart));
    });
  }
  return nullptr;
}

// Ids of operations, behind the number with which they begin; see spaces.py.
struct Ids {
  const int32_t* array;
  int64_t length;
};

Ids take_ids(Call& call) {
  const int64_t length = call.length(0);
  return {call.take<int32_t>(length), length};
}

bool can_choose(const Ids& ids, Shape shape) { return is_canvas(shape) && ids.length >= 2; }

Choices choices_of(const Ids& ids, Shape shape) { return Choices(ids.array + 1, ids.length - 1, shape); }

// Draws an action for each key.
Fault sample_corners(Call& call) {
  const Shape shape = take_shape(call);
  const bool is_box = call.flag();
  const int64_t size = call.length(0);
  const auto* const keys = call.take<uint32_t>(size * 2);
  const Ids ids = take_ids(call);
  Drawn drawn = {};
  drawn.operations = call.give<int32_t>(size);
  for (int corner = 0; corner < (is_box ? 4 : 2); corner++) drawn.corners[corner] = call.give<int32_t>(size);
  if (const Fault fault = call.fault()) return fault;
  if (!can_choose(ids, shape)) return kWrongShape;
  draw_corners(keys, size, choices_of(ids, shape), drawn, is_box);
  return nullptr;
}

Fault sample_masks(Call& call) {
  const Shape shape = take_shape(call);
  const int64_t size = call.length(0);
  const auto* const keys = call.take<uint32_t>(size * 2);
  const Ids ids = take_ids(call);
  call.take<bool>(1);  // of the type of the cells
  auto* const operations = call.give<int32_t>(size);
  auto* const cells = reinterpret_cast<uint8_t*>(call.give<bool>(size * shape.cells()));
  if (const Fault fault = call.fault()) return fault;
  if (!can_choose(ids, shape)) return kWrongShape;
  draw_masks(keys, size, choices_of(ids, shape), operations, cells);
  return nullptr;
}

Fault fold_in(Call& call) {
  const auto* const key = call.take<uint32_t>(2);
  const int64_t size = call.length(0);
  const auto* const counters = call.take<int32_t>(size);
  auto* const keys = call.give<uint32_t>(size * 2);
  if (const Fault fault = call.fault()) return fault;
  fold_in(key, counters, size, keys);
  return nullptr;
}

}  // namespace jaxarc

#define JAXARC_HANDLER(name) \
  XLA_FFI_Error* jaxarc_##name(XLA_FFI_CallFrame* frame) { return jaxarc::handle<jaxarc::name>(frame); }

extern "C" {
JAXARC_HANDLER(edit)
JAXARC_HANDLER(step)
JAXARC_HANDLER(reset)
JAXARC_HANDLER(step_and_reset)
JAXARC_HANDLER(sample_corners)
JAXARC_HANDLER(sample_masks)
JAXARC_HANDLER(fold_in)

const char* jaxarc_host_step(const jaxarc::HostCall* call) { return jaxarc::handle<jaxarc::step>(*call); }
const char* jaxarc_host_reset(const jaxarc::HostCall* call) { return jaxarc::handle<jaxarc::reset>(*call); }
}

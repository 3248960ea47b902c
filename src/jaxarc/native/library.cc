// What the library exports: handlers of XLA's foreign function interface, and functions for hosts that have the arrays.
//
// XLA lets a result take the place of an argument where nobody reads the argument afterwards, as in a scan. What an
// operation leaves alone is then not touched at all.
#include "edit_batch.h"
#include "host.h"
#include "restart.h"
#include "rows.h"
#include "sample.h"
#include "step.h"
#include "xla/ffi/api/ffi.h"

namespace jaxarc {

namespace ffi = xla::ffi;

using Grids = ffi::Buffer<ffi::S8, 2>;     // [B, HW], and other rows of small numbers
using Numbers = ffi::Buffer<ffi::S32, 1>;  // [B]
using Number = ffi::Buffer<ffi::S32, 0>;
using Counts = ffi::Buffer<ffi::S32, 2>;
using Floats = ffi::Buffer<ffi::F32, 1>;
using Flags = ffi::Buffer<ffi::PRED, 2>;
using Keys = ffi::Buffer<ffi::U32, 2>;  // [B, 2]
using Records = ffi::Buffer<ffi::U8, 3>;  // [B, capacity, bytes]
constexpr char kHeightName[] = "height";
constexpr char kWidthName[] = "width";
constexpr char kModeName[] = "mode";
constexpr char kInTurnName[] = "is_in_turn";
constexpr char kRandomPairName[] = "is_random_pair";
constexpr char kIsBoxName[] = "is_box";
constexpr char kLegalName[] = "legal";
constexpr char kFlagsName[] = "flags";
constexpr char kMaxSubmissionsName[] = "max_submissions";
constexpr char kMaxStepsName[] = "max_steps";

// Returns the result's data, which begins as a copy of the argument's unless XLA gave both one place.
template <typename T, typename Argument, typename Result>
T* begin_as(const Argument& argument, Result& result) {
  void* const data = result->untyped_data();
  if (data != argument.untyped_data()) std::memcpy(data, argument.untyped_data(), argument.size_bytes());
  return static_cast<T*>(data);
}

template <typename T, typename Argument>
const T* data_of(const Argument& argument) {
  return static_cast<const T*>(argument.untyped_data());
}

template <typename T, typename Argument>
const T* data_or_null(const Argument& argument) {
  return argument.element_count() == 0 ? nullptr : data_of<T>(argument);
}

bool fits(const Grids& grid, int64_t height, int64_t width) {
  return height <= kMaxSide && width <= kMaxSide && grid.dimensions()[1] == height * width;
}

ffi::Error wrong_shape() {
  return ffi::Error::InvalidArgument("a canvas has at most 30 rows and columns, and a grid all of its cells");
}

// The arrays of canvases, in place.
Canvas begin_canvas(Grids grid, ffi::Result<Grids> new_grid, Grids clipboard, ffi::Result<Grids> new_clipboard,
                    Grids target, ffi::Result<Grids> new_target, Grids sizes, ffi::Result<Grids> new_sizes) {
  return {begin_as<Cell>(grid, new_grid), begin_as<Cell>(clipboard, new_clipboard), begin_as<Cell>(target, new_target),
          begin_as<int8_t>(sizes, new_sizes)};
}

// The names are those of Canvas, CheckedAction and PairTable in jaxarc/envs.
ffi::Error edit(Grids grid, Grids clipboard, Grids target, ffi::AnyBuffer selection, Grids sizes, Numbers operation,
                ffi::AnyBuffer selected, Numbers row, Grids colors, Grids inputs, Grids outputs,
                ffi::Result<Grids> new_grid, ffi::Result<Grids> new_clipboard, ffi::Result<Grids> new_target,
                ffi::Result<ffi::AnyBuffer> new_selection, ffi::Result<Grids> new_sizes, ffi::Result<Numbers> matches,
                ffi::Attr<int64_t, kHeightName> height, ffi::Attr<int64_t, kWidthName> width) {
  if (!fits(grid, *height, *width)) return wrong_shape();
  const bool has_masks = selected.element_type() == ffi::PRED;
  Batch batch = {};
  batch.size = grid.dimensions()[0];
  batch.shape = {static_cast<int>(*height), static_cast<int>(*width)};
  batch.canvas = begin_canvas(grid, new_grid, clipboard, new_clipboard, target, new_target, sizes, new_sizes);
  if (has_masks) {
    batch.kept_words = begin_as<uint32_t>(selection, new_selection);
    batch.masks = data_of<uint8_t>(selected);
  } else {
    batch.kept_boxes = begin_as<int8_t>(selection, new_selection);
    batch.boxes = data_of<int32_t>(selected);
  }
  batch.operations = data_of<int32_t>(operation);
  batch.rows = data_of<int32_t>(row);
  batch.colors = data_or_null<Cell>(colors);
  batch.inputs = data_of<Cell>(inputs);
  batch.outputs = data_of<Cell>(outputs);
  batch.num_pairs = inputs.dimensions()[0];
  batch.matches = matches->typed_data();
  edit_batch(batch);
  return ffi::Error::Success();
}

// The names are those of ArcEnvState and TaskBuffer; what is not there has no element.
ffi::Error restart(Grids grid, Grids clipboard, Grids target, ffi::AnyBuffer selection, Grids sizes, Counts counts,
                   Floats similarities, Flags endings, Keys keys, Records records,
                   ffi::Buffer<ffi::PRED, 1> need, Grids inputs, Grids outputs, Numbers first_pair, Numbers num_train,
                   Numbers num_test, Numbers, Floats, ffi::AnyBuffer pair_index, Floats sums,
                   ffi::Result<Grids> new_grid,
                   ffi::Result<Grids> new_clipboard, ffi::Result<Grids> new_target,
                   ffi::Result<ffi::AnyBuffer> new_selection, ffi::Result<Grids> new_sizes,
                   ffi::Result<Counts> new_counts, ffi::Result<Floats> new_similarities,
                   ffi::Result<Flags> new_endings, ffi::Result<Keys> new_keys,
                   ffi::Result<Records> new_records, ffi::Attr<int64_t, kHeightName> height,
                   ffi::Attr<int64_t, kWidthName> width, ffi::Attr<int64_t, kModeName> mode,
                   ffi::Attr<int64_t, kInTurnName> is_in_turn, ffi::Attr<int64_t, kRandomPairName> is_random_pair) {
  if (!fits(grid, *height, *width)) return wrong_shape();
  Restart batch = {};
  batch.size = grid.dimensions()[0];
  batch.shape = {static_cast<int>(*height), static_cast<int>(*width)};
  batch.canvas = begin_canvas(grid, new_grid, clipboard, new_clipboard, target, new_target, sizes, new_sizes);
  if (selection.element_type() == ffi::U32) {
    batch.kept_words = begin_as<uint32_t>(selection, new_selection);
  } else {
    batch.kept_boxes = begin_as<int8_t>(selection, new_selection);
  }
  batch.counts = begin_as<int32_t>(counts, new_counts);
  batch.similarities = begin_as<float>(similarities, new_similarities);
  batch.endings = begin_as<uint8_t>(endings, new_endings);
  batch.keys = begin_as<uint32_t>(keys, new_keys);
  batch.records = begin_as<uint8_t>(records, new_records);
  batch.record_bytes = records.dimensions()[1] * records.dimensions()[2];
  batch.need = data_of<uint8_t>(need);
  Tasks tasks = {};
  tasks.inputs = data_of<Cell>(inputs);
  tasks.outputs = data_of<Cell>(outputs);
  tasks.num_pairs = inputs.dimensions()[0];
  tasks.first_pair = data_of<int32_t>(first_pair);
  tasks.num_train = data_of<int32_t>(num_train);
  tasks.num_test = data_of<int32_t>(num_test);
  tasks.sums = data_of<float>(sums);
  tasks.count = sums.dimensions()[0];
  tasks.pair_index = data_or_null<int32_t>(pair_index);
  tasks.mode = static_cast<Mode>(*mode);
  tasks.is_in_turn = *is_in_turn != 0;
  tasks.is_random_pair = *is_random_pair != 0;
  restart_rows(batch, tasks);
  return ffi::Error::Success();
}

// The names are those of ArcEnvState, the actions and PairSource; what is not there has no element.
ffi::Error step(Grids grid, Grids clipboard, Grids target, ffi::AnyBuffer selection, Grids sizes, Counts counts,
                Floats similarities, Flags endings, Records records, Numbers operation, ffi::AnyBuffer selected,
                Numbers first_column, Numbers last_row, Numbers last_column, Numbers first_row, Numbers pair_count,
                Grids orders, Grids colors, Numbers num_open, Grids inputs, Grids outputs,
                ffi::Result<Grids> new_grid, ffi::Result<Grids> new_clipboard, ffi::Result<Grids> new_target,
                ffi::Result<ffi::AnyBuffer> new_selection, ffi::Result<Grids> new_sizes,
                ffi::Result<Counts> new_counts, ffi::Result<Floats> new_similarities, ffi::Result<Flags> new_endings,
                ffi::Result<Records> new_records, ffi::Result<Numbers> facts, ffi::Attr<int64_t, kHeightName> height,
                ffi::Attr<int64_t, kWidthName> width, ffi::Attr<int64_t, kLegalName> legal,
                ffi::Attr<int64_t, kFlagsName> flags, ffi::Attr<int64_t, kMaxSubmissionsName> max_submissions,
                ffi::Attr<int64_t, kMaxStepsName> max_steps) {
  if (!fits(grid, *height, *width)) return wrong_shape();
  Steps steps = {};
  Batch& batch = steps.edit;
  batch.size = grid.dimensions()[0];
  batch.shape = {static_cast<int>(*height), static_cast<int>(*width)};
  batch.canvas = begin_canvas(grid, new_grid, clipboard, new_clipboard, target, new_target, sizes, new_sizes);
  if (selected.element_type() == ffi::PRED) {
    batch.kept_words = begin_as<uint32_t>(selection, new_selection);
    batch.masks = data_of<uint8_t>(selected);
  } else {
    batch.kept_boxes = begin_as<int8_t>(selection, new_selection);
    const int32_t* const corners[] = {data_of<int32_t>(selected), data_of<int32_t>(first_column),
                                      data_of<int32_t>(last_row), data_of<int32_t>(last_column)};
    std::copy(corners, corners + 4, steps.corners);
  }
  batch.colors = data_or_null<Cell>(colors);
  batch.inputs = data_of<Cell>(inputs);
  batch.outputs = data_of<Cell>(outputs);
  batch.num_pairs = inputs.dimensions()[0];
  steps.counts = begin_as<int32_t>(counts, new_counts);
  steps.similarities = begin_as<float>(similarities, new_similarities);
  steps.endings = begin_as<uint8_t>(endings, new_endings);
  steps.records = begin_as<uint8_t>(records, new_records);
  steps.capacity = records.dimensions()[1];
  steps.record_bytes = records.dimensions()[2];
  steps.operations = data_of<int32_t>(operation);
  steps.first_rows = data_of<int32_t>(first_row);
  steps.pair_counts = data_of<int32_t>(pair_count);
  steps.orders = data_or_null<int8_t>(orders);
  steps.order_length = orders.dimensions()[1];
  steps.num_open = data_or_null<int32_t>(num_open);
  steps.facts = facts->typed_data();
  step_batch(steps, rules_of(*legal, *flags, *max_submissions, *max_steps));
  return ffi::Error::Success();
}

// Draws an action for each key; of a point the last two coordinates are 0.
ffi::Error sample_corners(Numbers, Keys keys, Numbers operations, ffi::Result<Numbers> operation,
                          ffi::Result<Numbers> top, ffi::Result<Numbers> left, ffi::Result<Numbers> bottom,
                          ffi::Result<Numbers> right, ffi::Attr<int64_t, kHeightName> height,
                          ffi::Attr<int64_t, kWidthName> width, ffi::Attr<int64_t, kIsBoxName> is_box) {
  const Choices choices(operations.typed_data(), operations.element_count(),
                        {static_cast<int>(*height), static_cast<int>(*width)});
  draw_corners(keys.typed_data(), keys.dimensions()[0], choices,
               {operation->typed_data(), {top->typed_data(), left->typed_data(), bottom->typed_data(), right->typed_data()}},
               *is_box != 0);
  return ffi::Error::Success();
}

ffi::Error sample_masks(Numbers, Flags, Keys keys, Numbers operations,
                        ffi::Result<Numbers> operation, ffi::Result<Flags> masks,
                        ffi::Attr<int64_t, kHeightName> height, ffi::Attr<int64_t, kWidthName> width) {
  if (*height > kMaxSide || *width > kMaxSide || masks->dimensions()[1] != *height * *width) return wrong_shape();
  const Choices choices(operations.typed_data(), operations.element_count(),
                        {static_cast<int>(*height), static_cast<int>(*width)});
  draw_masks(keys.typed_data(), keys.dimensions()[0], choices, operation->typed_data(),
             static_cast<uint8_t*>(masks->untyped_data()));
  return ffi::Error::Success();
}

// Numbers the rows that need something; see order_rows.
ffi::Error order(Numbers, Number, ffi::Buffer<ffi::PRED, 1> need, ffi::Result<Numbers> rows,
                 ffi::Result<Number> total) {
  if (rows->element_count() <= need.element_count()) {
    return ffi::Error::InvalidArgument("the order has room for more numbers than there are rows");
  }
  *total->typed_data() = order_rows(data_of<uint8_t>(need), need.element_count(), rows->typed_data(),
                                    rows->element_count());
  return ffi::Error::Success();
}

// Puts rows back into n arrays: the arguments are the n arrays, n arrays of fresh rows, and where each row belongs.
ffi::Error put(ffi::RemainingArgs arguments, ffi::RemainingRets results) {
  const size_t num_arrays = results.size();
  const auto taken = arguments.get<Numbers>(2 * num_arrays);
  if (taken.has_error()) return taken.error();
  for (size_t i = 0; i < num_arrays; i++) {
    const auto old = arguments.get<ffi::AnyBuffer>(i);
    const auto fresh = arguments.get<ffi::AnyBuffer>(num_arrays + i);
    auto result = results.get<ffi::AnyBuffer>(i);
    if (old.has_error()) return old.error();
    if (fresh.has_error()) return fresh.error();
    if (result.has_error()) return result.error();
    const int64_t size = old->dimensions()[0];
    const int64_t row_bytes = size == 0 ? 0 : old->size_bytes() / size;
    put_rows(begin_as<uint8_t>(*old, *result), data_of<uint8_t>(*fresh), row_bytes, size, taken->typed_data(),
             taken->element_count());
  }
  return ffi::Error::Success();
}

}  // namespace jaxarc

XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxarc_edit, jaxarc::edit);
XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxarc_step, jaxarc::step);
XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxarc_restart, jaxarc::restart);
XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxarc_sample_corners, jaxarc::sample_corners);
XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxarc_sample_masks, jaxarc::sample_masks);
XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxarc_order, jaxarc::order);
XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxarc_put, jaxarc::put, xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets());

extern "C" {
void jaxarc_host_step(jaxarc::HostEpisode* episode) { jaxarc::host_step(*episode); }
void jaxarc_host_restart(jaxarc::HostEpisode* episode) { jaxarc::host_restart(*episode); }
void jaxarc_host_reward(jaxarc::HostEpisode* episode, float before) { jaxarc::host_reward(*episode, before); }
}

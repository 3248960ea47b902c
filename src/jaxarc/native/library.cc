// What the library exports: handlers of XLA's foreign function interface.
//
// XLA lets a result take the place of an argument where nobody reads the argument afterwards, as in a scan. What an
// operation leaves alone is then not touched at all.
#include "edit_batch.h"
#include "rows.h"
#include "xla/ffi/api/ffi.h"

namespace jaxarc {

namespace ffi = xla::ffi;

using Grids = ffi::Buffer<ffi::S8, 2>;     // [B, HW], and other rows of small numbers
using Numbers = ffi::Buffer<ffi::S32, 1>;  // [B]
using Number = ffi::Buffer<ffi::S32, 0>;
constexpr char kHeightName[] = "height";
constexpr char kWidthName[] = "width";

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

// The names are those of Canvas, CheckedAction and PairTable in jaxarc/envs.
ffi::Error edit(Grids grid, Grids clipboard, Grids target, ffi::AnyBuffer selection, Grids sizes, Numbers operation,
                ffi::AnyBuffer selected, Numbers row, Grids colors, Grids inputs, Grids outputs,
                ffi::Result<Grids> new_grid, ffi::Result<Grids> new_clipboard, ffi::Result<Grids> new_target,
                ffi::Result<ffi::AnyBuffer> new_selection, ffi::Result<Grids> new_sizes, ffi::Result<Numbers> matches,
                ffi::Attr<int64_t, kHeightName> height, ffi::Attr<int64_t, kWidthName> width) {
  if (*height > kMaxSide || *width > kMaxSide || grid.dimensions()[1] != *height * *width) {
    return ffi::Error::InvalidArgument("a canvas has at most 30 rows and columns, and a grid all of its cells");
  }
  const bool has_masks = selected.element_type() == ffi::PRED;
  Batch batch = {};
  batch.size = grid.dimensions()[0];
  batch.shape = {static_cast<int>(*height), static_cast<int>(*width)};
  batch.canvas.grid = begin_as<Cell>(grid, new_grid);
  batch.canvas.clipboard = begin_as<Cell>(clipboard, new_clipboard);
  batch.canvas.target = begin_as<Cell>(target, new_target);
  batch.canvas.sizes = begin_as<int8_t>(sizes, new_sizes);
  if (has_masks) {
    batch.kept_words = begin_as<uint32_t>(selection, new_selection);
    batch.masks = data_of<uint8_t>(selected);
  } else {
    batch.kept_boxes = begin_as<int8_t>(selection, new_selection);
    batch.boxes = data_of<int32_t>(selected);
  }
  batch.operations = data_of<int32_t>(operation);
  batch.rows = data_of<int32_t>(row);
  batch.colors = colors.element_count() == 0 ? nullptr : data_of<Cell>(colors);
  batch.inputs = data_of<Cell>(inputs);
  batch.outputs = data_of<Cell>(outputs);
  batch.num_pairs = inputs.dimensions()[0];
  batch.matches = matches->typed_data();
  edit_batch(batch);
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
XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxarc_order, jaxarc::order);
XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxarc_put, jaxarc::put, xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets());

// What the library exports: handlers of XLA's foreign function interface.
//
// XLA lets a result take the place of an argument where nobody reads the argument afterwards, as in a scan. What an
// operation leaves alone is then not touched at all.
#include "edit_batch.h"
#include "xla/ffi/api/ffi.h"

namespace jaxarc {

namespace ffi = xla::ffi;

using Grids = ffi::Buffer<ffi::S8, 2>;      // [B, HW], and other rows of small numbers
using Numbers = ffi::Buffer<ffi::S32, 1>;   // [B]
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

}  // namespace jaxarc

XLA_FFI_DEFINE_HANDLER_SYMBOL(jaxarc_edit, jaxarc::edit);

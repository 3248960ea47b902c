// Calls of every handler as XLA makes them, right ones and wrong ones, for the sanitizers: `make sanitize`.
//
// A wrong call has one array of another type, of one element more or less, or none, or one number too few. It has to be
// refused before any byte is read: an array has exactly the bytes that it says it has.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "library.cc"

namespace {

struct Array {
  XLA_FFI_DataType type;
  std::vector<int64_t> dims;
  int free_axis = -1;  // along which any length is right
};

struct Case {
  const char* name;
  XLA_FFI_Error* (*handler)(XLA_FFI_CallFrame*);
  std::vector<int64_t> numbers;
  std::vector<Array> arguments;
  std::vector<Array> results;
  size_t num_optional = 0;  // of the results
};

constexpr auto kS8 = XLA_FFI_DataType_S8, kU8 = XLA_FFI_DataType_U8, kBool = XLA_FFI_DataType_PRED,
               kS32 = XLA_FFI_DataType_S32, kU32 = XLA_FFI_DataType_U32, kF32 = XLA_FFI_DataType_F32,
               kS64 = XLA_FFI_DataType_S64, kF16 = XLA_FFI_DataType_F16;

int64_t bytes_of(XLA_FFI_DataType type) {
  if (type == kS64) return 8;
  if (type == kF16) return 2;
  return type == kS8 || type == kU8 || type == kBool ? 1 : 4;
}

XLA_FFI_Error* refuse(XLA_FFI_Error_Create_Args* args) {
  static int refused;
  if (std::strlen(args->message) < 10) std::abort();
  return reinterpret_cast<XLA_FFI_Error*>(&refused);
}

// Ones in all arrays: canvases of one cell, the operation 1, the task or pair 1 or the nearest.
std::unique_ptr<char[]> ones(const Array& array) {
  int64_t count = 1;
  for (const int64_t length : array.dims) count *= length;
  const int64_t size = bytes_of(array.type);
  std::unique_ptr<char[]> bytes(new char[count * size]());
  const float one = 1;
  for (int64_t i = 0; i < count; i++) {
    if (array.type == kF32) std::memcpy(bytes.get() + 4 * i, &one, 4);
    else bytes[i * size] = 1;
  }
  return bytes;
}

bool is_refused(const Case& of) {
  std::vector<std::unique_ptr<char[]>> held;
  std::vector<XLA_FFI_Buffer> buffers;
  std::vector<void*> pointers;
  std::vector<std::vector<int64_t>> dims;
  buffers.reserve(of.arguments.size() + of.results.size());
  dims.reserve(buffers.capacity());
  for (const auto* arrays : {&of.arguments, &of.results}) {
    for (const Array& array : *arrays) {
      held.push_back(ones(array));
      dims.push_back(array.dims);
      buffers.push_back({sizeof(XLA_FFI_Buffer), nullptr, array.type, held.back().get(),
                         static_cast<int64_t>(array.dims.size()), dims.back().data()});
      pointers.push_back(&buffers.back());
    }
  }
  std::vector<int64_t> numbers = of.numbers;
  XLA_FFI_Array array = {XLA_FFI_DataType_S64, numbers.size(), numbers.data()};
  void* attributes[] = {&array};
  XLA_FFI_Api api = {};
  api.XLA_FFI_Error_Create = refuse;
  XLA_FFI_CallFrame frame = {};
  frame.api = &api;
  frame.args.size = of.arguments.size();
  frame.args.args = pointers.data();
  frame.rets.size = of.results.size();
  frame.rets.rets = pointers.data() + of.arguments.size();
  frame.attrs.size = 1;
  frame.attrs.attrs = attributes;
  return of.handler(&frame) != nullptr;
}

int num_calls = 0;

void require(const Case& of, bool wants_refusal, const char* what, size_t index) {
  num_calls++;
  if (is_refused(of) == wants_refusal) return;
  std::fprintf(stderr, "%s %s, %s %zu\n", of.name, wants_refusal ? "runs" : "is refused", what, index);
  std::exit(1);
}

void try_wrong_ones(const Case& right) {
  require(right, false, "as it is", 0);
  for (size_t count = 0; count < right.numbers.size(); count++) {
    Case wrong = right;
    wrong.numbers.resize(count);
    require(wrong, true, "numbers", count);
  }
  for (const auto arrays : {&Case::arguments, &Case::results}) {
    for (size_t i = 0; i < (right.*arrays).size(); i++) {
      for (const auto type : {kS8, kU8, kBool, kS32, kU32, kF32, kS64, kF16}) {
        Case wrong = right;
        (wrong.*arrays)[i].type = type;
        require(wrong, type != (right.*arrays)[i].type, "type of array", i);
      }
      const bool is_optional = arrays == &Case::results && i + right.num_optional >= (right.*arrays).size();
      Case wrong = right;
      (wrong.*arrays).erase((wrong.*arrays).begin() + static_cast<int64_t>(i));
      require(wrong, !is_optional, "without array", i);
      wrong = right;
      (wrong.*arrays).insert((wrong.*arrays).begin() + static_cast<int64_t>(i), (right.*arrays)[i]);
      require(wrong, true, "twice array", i);
      for (size_t axis = 0; axis < (right.*arrays)[i].dims.size(); axis++) {
        for (const int change : {-1, 1}) {
          wrong = right;
          (wrong.*arrays)[i].dims[axis] += change;
          require(wrong, static_cast<int>(axis) != (right.*arrays)[i].free_axis, "length of array", i);
        }
      }
    }
  }
}

}  // namespace

int main() {
  constexpr int64_t kBatch = 3, kHeight = 9, kWidth = 7, kCells = kHeight * kWidth, kPairs = 5, kTasks = 2, kSlots = 4;
  constexpr int64_t kLegal = (int64_t{1} << 42) - 1;
  const Array grids = {kS8, {kBatch, kCells}}, sizes = {kS8, {kBatch, 6}}, counts = {kS32, {kBatch, 5}};
  const Array number = {kS32, {kBatch}}, share = {kF32, {kBatch}}, endings = {kBool, {kBatch, 2}};
  const Array keys = {kU32, {kBatch, 2}}, masks = {kBool, {kBatch, kHeight, kWidth}}, pairs = {kS8, {kPairs, kCells}};
  const Array colors = {kS8, {kBatch, 10}}, of_task = {kS32, {kTasks}}, weights = {kF32, {kTasks}};
  const auto join = [](std::initializer_list<std::vector<Array>> parts) {
    std::vector<Array> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  for (const int64_t format : {0, 1, 2}) {
    const bool is_mask = format == 2;
    const Array kept = is_mask ? Array{kU32, {kBatch, kWidth}} : Array{kS8, {kBatch, 4}};
    const int64_t record = 3 + (is_mask ? 2 * kWidth : format == 1 ? 4 : 2);
    const Array records = {kU8, {kBatch, kSlots, record}};
    const std::vector<Array> canvas = {grids, grids, grids, kept, sizes};
    const std::vector<Array> action = is_mask       ? std::vector<Array>{number, masks}
                                      : format == 1 ? std::vector<Array>(5, number)
                                                    : std::vector<Array>(3, number);
    const std::vector<Array> tasks = {pairs, pairs, of_task, of_task, of_task, of_task, weights, {kS32, {}}, weights};
    if (format > 0) {
      const Array selection = is_mask ? Array{kBool, {kBatch, kCells}} : Array{kS32, {kBatch, 4}};
      try_wrong_ones({"edit", jaxarc_edit, {kHeight, kWidth, is_mask, 1},
                      join({canvas, {number, selection, number, colors, pairs, pairs}}), join({canvas, {number}})});
    }
    const std::vector<Array> kept_key = join({canvas, {counts, share, endings, records}});
    try_wrong_ones({"step", jaxarc_step, {kHeight, kWidth, format, 1, 1, 1, 1, kLegal, 2, 3, 100},
                    join({kept_key, action, {number, number, {kS8, {kBatch, kSlots}, 1}, colors, number, pairs, pairs}}),
                    join({kept_key, {number}})});
    const std::vector<Array> state = join({canvas, {counts, share, endings, keys, records}});
    try_wrong_ones({"reset", jaxarc_reset, {kHeight, kWidth, format, 1, 0, 0, 1, 1},
                    join({state, {{kBool, {kBatch}}}, tasks}), state});
    try_wrong_ones({"step_and_reset", jaxarc_step_and_reset, {kHeight, kWidth, format, 1, kLegal, 2, 3, 100, 0, 0, 1, 1},
                    join({state, action, tasks}), join({state, {number, share, share, counts, grids, grids}}), 2});
  }
  const Array ids = {kS32, {4}, 0};
  for (const bool is_box : {false, true}) {
    try_wrong_ones({"sample_corners", jaxarc_sample_corners, {kHeight, kWidth, is_box}, {keys, ids},
                    std::vector<Array>(is_box ? 5 : 3, number)});
  }
  try_wrong_ones({"sample_masks", jaxarc_sample_masks, {kHeight, kWidth}, {keys, ids, {kBool, {1, 1}}},
                  {number, {kBool, {kBatch, kCells}}}});
  try_wrong_ones({"fold_in", jaxarc_fold_in, {}, {{kU32, {1, 2}}, number}, {keys}});
  std::printf("%d calls\n", num_calls);
}

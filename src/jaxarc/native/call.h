// A call of XLA's foreign function interface, read in order: the next argument, the next result, the next number.
//
// Every array is compared with the type and the number of elements that its kernel reads, so a kernel never runs on
// others, from any caller. The bindings of ffi.h, which look too, take 0.3 microseconds for the twenty arrays of
// a step. A large call is done in parts, on the threads that XLA computes with.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "xla/ffi/api/c_api.h"
#include "xla/ffi/api/ffi.h"

namespace jaxarc {

// XLA's name of a type; uint8_t is also what holds a bool.
template <typename T>
constexpr XLA_FFI_DataType kTypeOf = XLA_FFI_DataType_INVALID;
template <>
constexpr XLA_FFI_DataType kTypeOf<int8_t> = XLA_FFI_DataType_S8;
template <>
constexpr XLA_FFI_DataType kTypeOf<uint8_t> = XLA_FFI_DataType_U8;
template <>
constexpr XLA_FFI_DataType kTypeOf<bool> = XLA_FFI_DataType_PRED;
template <>
constexpr XLA_FFI_DataType kTypeOf<int32_t> = XLA_FFI_DataType_S32;
template <>
constexpr XLA_FFI_DataType kTypeOf<uint32_t> = XLA_FFI_DataType_U32;
template <>
constexpr XLA_FFI_DataType kTypeOf<float> = XLA_FFI_DataType_F32;

class Call {
 public:
  explicit Call(const XLA_FFI_CallFrame& frame) : frame_(frame) {
    // One attribute, an array of numbers.
    if (frame.attrs.size != 1) return;
    const auto* const numbers = static_cast<XLA_FFI_Array*>(frame.attrs.attrs[0]);
    number_ = static_cast<const int64_t*>(numbers->data);
    numbers_left_ = static_cast<int64_t>(numbers->size);
  }

  int64_t number() {
    if (numbers_left_-- > 0) return *number_++;
    refuse("a number is missing");
    return 1;
  }
  bool flag() { return number() != 0; }

  // Length of the next argument along an axis.
  int64_t length(int axis) {
    const XLA_FFI_Buffer* const next = buffer(frame_.args.args, frame_.args.size, argument_);
    if (next != nullptr && axis < next->rank) return next->dims[axis];
    refuse("an argument lacks an axis");
    return 1;
  }

  // The next argument, which has so many elements; without them there is nothing to read.
  template <typename T>
  const T* take(int64_t count) {
    return static_cast<const T*>(checked(kTypeOf<T>, count, frame_.args.args, frame_.args.size, argument_++));
  }

  // What is not always there is announced by a number.
  template <typename T>
  const T* take_if(bool is_there, int64_t count) {
    return is_there ? take<T>(count) : nullptr;
  }

  // Bools are read as bytes, 0 or 1.
  const uint8_t* take_bools(int64_t count) { return reinterpret_cast<const uint8_t*>(take<bool>(count)); }

  template <typename T>
  T* give(int64_t count) {
    return static_cast<T*>(checked(kTypeOf<T>, count, frame_.rets.rets, frame_.rets.size, result_++));
  }

  // Results at the end that nobody reads are not there.
  template <typename T>
  T* give_if_left(int64_t count) {
    return result_ < frame_.rets.size ? give<T>(count) : nullptr;
  }

  // The next result begins as a copy of the next argument, unless XLA gave both one place.
  template <typename T>
  T* change(int64_t count) {
    const T* const old = take<T>(count);
    T* const data = give<T>(count);
    if (data != old && old != nullptr && data != nullptr) std::memcpy(data, old, count * sizeof(T));
    return data;
  }

  template <typename T>
  T* change_if(bool is_there, int64_t count) {
    return is_there ? change<T>(count) : nullptr;
  }

  // Why the call is refused, null if it is not; when all arrays are taken.
  const char* fault() {
    if (argument_ != frame_.args.size || result_ != frame_.rets.size) refuse("another number of arrays is taken");
    return is_refused_ ? message_ : nullptr;
  }

  const XLA_FFI_CallFrame& frame() const { return frame_; }

 private:
  static const XLA_FFI_Buffer* buffer(void** buffers, int64_t count, int64_t index) {
    return index < count ? static_cast<XLA_FFI_Buffer*>(buffers[index]) : nullptr;
  }

  void refuse(const char* why) {
    if (!is_refused_) std::snprintf(message_, sizeof message_, "%s: %d arguments, %d results", why,
                                    static_cast<int>(frame_.args.size), static_cast<int>(frame_.rets.size));
    is_refused_ = true;
  }

  // Bytes of the array of an argument or a result, or null.
  void* checked(XLA_FFI_DataType type, int64_t count, void** buffers, int64_t num_buffers, int64_t index) {
    const XLA_FFI_Buffer* const found = buffer(buffers, num_buffers, index);
    if (found == nullptr) {
      refuse("an array is missing");
      return nullptr;
    }
    int64_t has = 1;
    for (int64_t axis = 0; axis < found->rank; axis++) has *= found->dims[axis];
    if (found->dtype == type && has == count) return found->data;
    if (!is_refused_) {
      std::snprintf(message_, sizeof message_,
                    "%s %d has %lld elements of XLA's type %d where the kernel reads %lld of type %d",
                    buffers == frame_.args.args ? "argument" : "result", static_cast<int>(index),
                    static_cast<long long>(has), found->dtype, static_cast<long long>(count), type);
    }
    is_refused_ = true;
    return nullptr;
  }

  const XLA_FFI_CallFrame& frame_;
  const int64_t* number_ = nullptr;
  int64_t numbers_left_ = 0;
  int64_t argument_ = 0;
  int64_t result_ = 0;
  bool is_refused_ = false;
  char message_[160];
};

// Handles a call by `work`, which returns null or why it refuses.
template <const char* (*work)(Call&)>
XLA_FFI_Error* handle(XLA_FFI_CallFrame* frame) {
  // Before its first call XLA asks a handler for the version of the interface; the bindings know the answer.
  static xla::ffi::Ffi* const described = xla::ffi::Ffi::Bind().To([] { return xla::ffi::Error::Success(); }).release();
  if (frame->extension_start != nullptr) return described->Call(frame);
  Call call(*frame);
  const char* const fault = work(call);
  if (fault == nullptr) return nullptr;
  XLA_FFI_Error_Create_Args error = {};
  error.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  error.message = fault;
  error.errc = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  return frame->api->XLA_FFI_Error_Create(&error);
}

// A call by a host that has the arrays, as jaxarc/native/host.py makes it: what a frame of XLA has.
struct HostCall {
  void** arguments;  // to XLA_FFI_Buffer
  int64_t num_arguments;
  void** results;
  int64_t num_results;
  int64_t* numbers;
  int64_t num_numbers;
};

// Returns null, or why the call is refused, which the next one on this thread writes over.
template <const char* (*work)(Call&)>
const char* handle(const HostCall& by_host) {
  XLA_FFI_Array numbers = {XLA_FFI_DataType_S64, static_cast<size_t>(by_host.num_numbers), by_host.numbers};
  void* attribute = &numbers;
  XLA_FFI_CallFrame frame = {};
  frame.args.size = by_host.num_arguments;
  frame.args.args = by_host.arguments;
  frame.rets.size = by_host.num_results;
  frame.rets.rets = by_host.results;
  frame.attrs.size = 1;
  frame.attrs.attrs = &attribute;
  Call call(frame);
  const char* const fault = work(call);
  if (fault == nullptr) return nullptr;
  static thread_local char message[160];
  std::snprintf(message, sizeof message, "%s", fault);
  return message;
}

// Parts that threads take until none is left.
struct Parts {
  std::function<void(int64_t)> work;
  int64_t count;
  std::atomic<int64_t> num_taken{0};
  std::atomic<int64_t> num_done{0};

  void take() {
    for (int64_t part = num_taken++; part < count; part = num_taken++) {
      work(part);
      num_done++;
    }
  }
};

inline bool is_done(const XLA_FFI_Api& api, XLA_FFI_Error* error) {
  if (error == nullptr) return true;
  XLA_FFI_Error_Destroy_Args args = {XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, nullptr, error};
  api.XLA_FFI_Error_Destroy(&args);
  return false;
}

inline int64_t num_threads(const XLA_FFI_CallFrame& frame) {
  int64_t count = 1;
  XLA_FFI_ThreadPool_NumThreads_Args args = {XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE, nullptr, frame.ctx, &count};
  return is_done(*frame.api, frame.api->XLA_FFI_ThreadPool_NumThreads(&args)) ? count : 1;
}

// Lets another thread take parts, soon, late or never.
inline void ask_for_help(const XLA_FFI_CallFrame& frame, const std::shared_ptr<Parts>& parts) {
  const auto help = [](void* data) {
    const std::unique_ptr<std::shared_ptr<Parts>> held(static_cast<std::shared_ptr<Parts>*>(data));
    (*held)->take();
  };
  auto held = std::make_unique<std::shared_ptr<Parts>>(parts);
  XLA_FFI_ThreadPool_Schedule_Args args = {XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE, nullptr, frame.ctx, help,
                                           held.get()};
  if (is_done(*frame.api, frame.api->XLA_FFI_ThreadPool_Schedule(&args))) held.release();
}

// Does the parts 0 .. count - 1. The caller takes parts too, and so waits only for those that others have begun.
inline void do_parts(const XLA_FFI_CallFrame& frame, int64_t count, std::function<void(int64_t)> work) {
  const auto parts = std::make_shared<Parts>();
  parts->work = std::move(work);
  parts->count = count;
  const int64_t num_helpers = std::min(num_threads(frame), count) - 1;
  for (int64_t i = 0; i < num_helpers; i++) ask_for_help(frame, parts);
  parts->take();
  while (parts->num_done < count) std::this_thread::yield();
}

}  // namespace jaxarc

// A call of XLA's foreign function interface, read in order: the next argument, the next result, the next number.
//
// The types and shapes are those that jaxarc/native/call.py and its callers lower, so they are not looked at again: the
// bindings of ffi.h, which look, take 0.3 microseconds for the twenty arrays of a step.
#pragma once

#include <cstdint>
#include <cstring>

#include "xla/ffi/api/c_api.h"
#include "xla/ffi/api/ffi.h"

namespace jaxarc {

class Call {
 public:
  explicit Call(const XLA_FFI_CallFrame& frame) : frame_(frame) {
    // One attribute, an array of numbers.
    if (frame.attrs.size == 1) number_ = static_cast<const int64_t*>(static_cast<XLA_FFI_Array*>(frame.attrs.attrs[0])->data);
  }

  int64_t number() { return *number_++; }
  bool flag() { return number() != 0; }

  // Length of the next argument along an axis.
  int64_t length(int axis) const { return next().dims[axis]; }

  template <typename T>
  const T* take() {
    const auto* const data = static_cast<const T*>(next().data);
    argument_++;
    return data;
  }

  // What is not always there is announced by a number.
  template <typename T>
  const T* take_if(bool is_there) {
    return is_there ? take<T>() : nullptr;
  }

  template <typename T>
  T* give() {
    return static_cast<T*>(static_cast<XLA_FFI_Buffer*>(frame_.rets.rets[result_++])->data);
  }

  // Results at the end that nobody reads are not there.
  template <typename T>
  T* give_if_left() {
    return result_ < frame_.rets.size ? give<T>() : nullptr;
  }

  // The next result begins as a copy of the next argument, unless XLA gave both one place.
  template <typename T>
  T* change() {
    const XLA_FFI_Buffer& argument = next();
    const T* const old = take<T>();
    T* const data = give<T>();
    if (data == old) return data;
    int64_t count = 1;
    for (int64_t axis = 0; axis < argument.rank; axis++) count *= argument.dims[axis];
    std::memcpy(data, old, count * sizeof(T));
    return data;
  }

  template <typename T>
  T* change_if(bool is_there) {
    return is_there ? change<T>() : nullptr;
  }

  const XLA_FFI_CallFrame& frame() const { return frame_; }

 private:
  const XLA_FFI_Buffer& next() const { return *static_cast<XLA_FFI_Buffer*>(frame_.args.args[argument_]); }

  const XLA_FFI_CallFrame& frame_;
  const int64_t* number_ = nullptr;
  int64_t argument_ = 0;
  int64_t result_ = 0;
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

}  // namespace jaxarc

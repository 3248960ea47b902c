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
  int64_t length(int axis) const { return buffer(argument_).dims[axis]; }

  // An argument by its index.
  const XLA_FFI_Buffer& buffer(int64_t index) const { return *static_cast<XLA_FFI_Buffer*>(frame_.args.args[index]); }

  template <typename T>
  const T* take() {
    return static_cast<const T*>(buffer(argument_++).data);
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
    return result_ < num_results() ? give<T>() : nullptr;
  }

  // The next result begins as a copy of the next argument, of so many bytes, unless XLA gave both one place.
  uint8_t* change_bytes(int64_t size) {
    const auto* const old = take<uint8_t>();
    auto* const data = give<uint8_t>();
    if (data != old) std::memcpy(data, old, size);
    return data;
  }

  template <typename T>
  T* change() {
    const XLA_FFI_Buffer& argument = buffer(argument_);
    int64_t count = 1;
    for (int64_t axis = 0; axis < argument.rank; axis++) count *= argument.dims[axis];
    return reinterpret_cast<T*>(change_bytes(count * static_cast<int64_t>(sizeof(T))));
  }

  template <typename T>
  T* change_if(bool is_there) {
    return is_there ? change<T>() : nullptr;
  }

  int64_t num_results() const { return frame_.rets.size; }

 private:
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

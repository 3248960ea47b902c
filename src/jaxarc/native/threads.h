// The parts of a large call, on the threads that XLA computes with.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "xla/ffi/api/c_api.h"

namespace jaxarc {

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

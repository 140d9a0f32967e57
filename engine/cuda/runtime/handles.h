// Owners of CUDA objects. A destructor never throws: at shutdown or after a lost context the object no longer exists.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "engine/cuda/runtime/check.h"

namespace ws::cuda {

template <typename T, auto Destroy>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T value) : value_(value) {}
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, T{})) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Handle() {
    if (value_ && Destroy(value_) != cudaSuccess) cudaGetLastError();
  }
  T get() const { return value_; }
  operator T() const { return value_; }
  explicit operator bool() const { return value_ != T{}; }
  T* out() { return &value_; }

 private:
  T value_{};
};

using Stream = Handle<cudaStream_t, cudaStreamDestroy>;
using Event = Handle<cudaEvent_t, cudaEventDestroy>;
using Graph = Handle<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Handle<cudaGraphExec_t, cudaGraphExecDestroy>;
using MemPool = Handle<cudaMemPool_t, cudaMemPoolDestroy>;

inline Stream make_stream() {
  Stream stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(stream.out(), cudaStreamNonBlocking));
  return stream;
}

// Kernels of this stream get free multiprocessors first.
inline Stream make_urgent_stream() {
  int least = 0, most = 0;
  CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &most));
  Stream stream;
  CUDA_CHECK(cudaStreamCreateWithPriority(stream.out(), cudaStreamNonBlocking, most));
  return stream;
}

inline Event make_event() {
  Event event;
  CUDA_CHECK(cudaEventCreateWithFlags(event.out(), cudaEventDisableTiming));
  return event;
}

// Makes an event that can be used to measure the time to another event.
inline Event make_timed_event() {
  Event event;
  CUDA_CHECK(cudaEventCreate(event.out()));
  return event;
}

// Memory that outlives a step: allocated once, directly from the driver.
template <typename T, auto Release>
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    data_ = std::move(other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  T* data() const { return static_cast<T*>(data_.get()); }
  size_t size() const { return size_; }  // elements
  size_t bytes() const { return size_ * sizeof(T); }
  explicit operator bool() const { return static_cast<bool>(data_); }
  T& operator[](size_t i) const { return data()[i]; }

  static Block device(size_t elements) {
    Block block;
    if (elements) CUDA_CHECK(cudaMalloc(block.data_.out(), elements * sizeof(T)));
    block.size_ = elements;
    return block;
  }
  // Sets every byte before it returns. Our streams do not wait for the default stream, which runs the memset.
  static Block filled(size_t elements, int byte = 0) {
    Block block = device(elements);
    if (!block) return block;
    CUDA_CHECK(cudaMemset(block.data_.get(), byte, block.bytes()));
    CUDA_CHECK(cudaStreamSynchronize(nullptr));
    return block;
  }
  static Block pinned(size_t elements) {
    Block block;
    if (elements) CUDA_CHECK(cudaHostAlloc(block.data_.out(), elements * sizeof(T), cudaHostAllocDefault));
    block.size_ = elements;
    return block;
  }

 private:
  Handle<void*, Release> data_;
  size_t size_ = 0;
};
template <typename T>
using DeviceBlock = Block<T, cudaFree>;
template <typename T>
using PinnedBlock = Block<T, cudaFreeHost>;

}  // namespace ws::cuda

#include "profiling/collectors/known_pools.h"

#include <cuda_runtime_api.h>
#include <cupti.h>

namespace ws::prof {

namespace {

PoolSize size_of(cudaMemPool_t pool) {
  PoolSize size;
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &size.reserved);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &size.used);
  return size;
}

PoolSize in_graphs(int device) {
  PoolSize size;
  cudaDeviceGetGraphMemAttribute(device, cudaGraphMemAttrReservedMemCurrent, &size.reserved);
  cudaDeviceGetGraphMemAttribute(device, cudaGraphMemAttrUsedMemCurrent, &size.used);
  return size;
}

}  // namespace

void KnownPools::allocated_from(CUmemoryPool pool, CUcontext context) {
  uint32_t device = last_device_.load(std::memory_order_relaxed);
  if (context != last_context_.load(std::memory_order_relaxed)) {
    if (cuptiGetDeviceId(context, &device) != CUPTI_SUCCESS || device >= 64) return;
    last_device_.store(device, std::memory_order_relaxed);
    last_context_.store(context, std::memory_order_relaxed);
  }
  const uint64_t bit = uint64_t{1} << device;
  for (auto* mask : {&devices_, pool ? &devices_ : &by_device_})
    if (!(mask->load(std::memory_order_relaxed) & bit)) mask->fetch_or(bit, std::memory_order_relaxed);
  if (!pool) return;
  for (const auto& known : pools_)
    if (known.load(std::memory_order_relaxed) == pool) return;
  for (auto& place : pools_) {
    CUmemoryPool none = nullptr;
    if (place.compare_exchange_strong(none, pool) || none == pool) return;
  }
}

void KnownPools::about_to_be_destroyed(CUmemoryPool pool) {
  const std::lock_guard lock(asking_);
  for (auto& known : pools_) {
    CUmemoryPool same = pool;
    known.compare_exchange_strong(same, nullptr);
  }
}

void KnownPools::forget() {
  for (auto& known : pools_) known.store(nullptr, std::memory_order_relaxed);
  devices_ = by_device_ = 0;
}

std::vector<PoolAnswer> KnownPools::ask() {
  const std::lock_guard lock(asking_);
  std::vector<PoolAnswer> answers;
  const auto add = [&answers](uint64_t name, PoolSize size) {
    for (const PoolAnswer& known : answers)
      if (known.pool == name) return;
    answers.push_back({name, size});
  };
  for (const auto& known : pools_)
    if (const CUmemoryPool pool = known.load(std::memory_order_relaxed)) {
      add(reinterpret_cast<uintptr_t>(pool), size_of(pool));
    }
  for (int device = 0; device < 64; ++device) {
    const uint64_t bit = uint64_t{1} << device;
    cudaMemPool_t pool = nullptr;
    if ((by_device_ & bit) && cudaDeviceGetMemPool(&pool, device) == cudaSuccess)
      add(reinterpret_cast<uintptr_t>(pool), size_of(pool));
    if (devices_ & bit) add(static_cast<uint64_t>(device) + 1, in_graphs(device));  // no handle is so small
  }
  cudaGetLastError();
  return answers;
}

}  // namespace ws::prof

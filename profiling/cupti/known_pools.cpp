#include "profiling/cupti/known_pools.h"

#include <chrono>
#include <optional>

#include "profiling/cupti/late_calls.h"

namespace ws::prof {

namespace {

uint64_t pool_name(cudaMemPool_t pool) { return reinterpret_cast<uintptr_t>(pool); }

// Returns nullopt if the pool is about to be destroyed.
std::optional<PoolSize> size_of(cudaMemPool_t pool, PoolQuestions& questions) {
  PoolSize size;
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &size.reserved);
  if (!questions.may_go_on()) return std::nullopt;
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
  // Limit of the wait: a longer query may itself wait for work that the program starts only after this call.
  constexpr std::chrono::seconds kPatience{5};
  for (auto& known : pools_) {
    CUmemoryPool same = pool;
    known.compare_exchange_strong(same, nullptr);
  }
  questions_.leave(pool_name(pool), kPatience);
}

void KnownPools::destroyed(CUmemoryPool pool) { questions_.left(pool_name(pool)); }

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
  const auto ask_size = [&](cudaMemPool_t pool) {
    if (const auto size = size_of(pool, questions_)) add(pool_name(pool), *size);
  };
  for (const auto& known : pools_) {
    const CUmemoryPool pool = known.load(std::memory_order_relaxed);
    if (!pool || !questions_.begin(pool_name(pool))) continue;
    if (known.load(std::memory_order_relaxed) == pool) ask_size(pool);  // true unless it was destroyed just before
    questions_.end();
  }
  for (int device = 0; device < 64; ++device) {
    const uint64_t bit = uint64_t{1} << device;
    if (by_device_ & bit) {
      cudaMemPool_t pool = nullptr;
      questions_.begin_unknown();
      const bool found = cudaDeviceGetMemPool(&pool, device) == cudaSuccess;
      if (questions_.known_as(pool_name(pool)) && found) ask_size(pool);
      questions_.end();
    }
    if (devices_ & bit) add(static_cast<uint64_t>(device) + 1, in_graphs(device));  // smaller than any handle
  }
  cudaGetLastError();
  return answers;
}

}  // namespace ws::prof

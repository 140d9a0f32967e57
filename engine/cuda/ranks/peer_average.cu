// Each rank sums one part of the elements over all ranks, and writes the sums into the memory of all ranks. So each
// element crosses the link twice, once in each direction, and every rank gets the same bits.
#include <cuda/atomic>
#include <cuda_pipeline.h>

#include <algorithm>
#include <utility>

#include "engine/cuda/ranks/peer_average.h"
#include "engine/cuda/runtime/check.h"

namespace ws::cuda {
namespace {

// Vectors that a thread has in flight: a read over the link takes over 1 µs. They arrive in shared memory, where a thread
// reads only what it has fetched itself. With more ranks a block has fewer threads, and its ring stays as large.
constexpr int kInFlight = 12, kVectorsOfRing = 1024 * kInFlight;
constexpr int kRingBytes = kVectorsOfRing * static_cast<int>(sizeof(float4));
int threads_for(int ranks) { return 1024 / ranks / 32 * 32; }

// A task is a run of vectors of one gradient; a block takes every gridDim.x-th task.
struct Work {
  Peer peer;
  float share;
  int gradients, vectors_of_task;
  float* data[kMostPeerGradients];
  int64_t elements[kMostPeerGradients];
  int first_task[kMostPeerGradients + 1];
};

struct Span {
  int64_t first, end;
};
// The vectors of four elements that a rank sums. The last rank also sums up to three elements that fill no vector.
__host__ __device__ Span part_of(int64_t elements, const Peer& peer) {
  const int64_t vectors = elements / 4;
  return {vectors * peer.rank / peer.ranks, vectors * (peer.rank + 1) / peer.ranks};
}

using Number = ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_system>;

// Waits until another rank has written the number. Returns false if the ranks have stopped.
__device__ bool wait_for(uint32_t& number, uint32_t wanted, const volatile int* stop) {
  for (unsigned tries = 1;; ++tries) {
    if (static_cast<int>(Number(number).load(::cuda::memory_order_acquire) - wanted) >= 0) return true;
    if (tries % 1024 == 0 && *stop != 0) return false;
  }
}

__device__ void add_scaled(float4& sum, float share, float4 v) {
  sum.x += share * v.x, sum.y += share * v.y, sum.z += share * v.z, sum.w += share * v.w;
}

// `messages`: what this block has received, by rank.
__device__ void average_task(const Work& work, const PeerMessage* messages, int task) {
  extern __shared__ float4 ring[];
  int g = 0;
  while (task >= work.first_task[g + 1]) ++g;
  const Peer& peer = work.peer;
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const Span part = part_of(work.elements[g], peer);
  const int64_t first = part.first + static_cast<int64_t>(task - work.first_task[g]) * work.vectors_of_task;
  const int count = static_cast<int>(min(static_cast<int64_t>(work.vectors_of_task), part.end - first));
  const auto vector = [&](int rank, int i) { return reinterpret_cast<float4*>(messages[rank].gradients[g]) + first + i; };
  const auto slot = [&](int rank, int number) { return ring + (number % kInFlight * peer.ranks + rank) * threads + thread; };
  const auto fetch = [&](int number) {
    if (const int i = number * threads + thread; i < count)
      for (int rank = 0; rank < peer.ranks; ++rank)
        __pipeline_memcpy_async(slot(rank, number), vector(rank, i), sizeof(float4));
    __pipeline_commit();
  };
  for (int number = 0; number < kInFlight - 1; ++number) fetch(number);
  for (int number = 0, i = thread; i < count; ++number, i += threads) {
    fetch(number + kInFlight - 1);
    asm volatile("cp.async.wait_group %0;" ::"n"(kInFlight - 1) : "memory");  // __pipeline_wait_prior knows 8 at most
    float4 sum{};
    for (int rank = 0; rank < peer.ranks; ++rank) add_scaled(sum, messages[rank].share, *slot(rank, number));
    for (int rank = 0; rank < peer.ranks; ++rank) *vector(rank, i) = sum;
  }
}

// The elements after the last whole vector of each gradient, a thread for each.
__device__ void average_remainders(const Work& work, const PeerMessage* messages) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  if (g >= work.gradients) return;
  const int64_t element = work.elements[g] / 4 * 4 + threadIdx.x % 4;
  if (element >= work.elements[g]) return;
  float sum = 0;
  for (int rank = 0; rank < work.peer.ranks; ++rank)
    sum += messages[rank].share * static_cast<const volatile float*>(messages[rank].gradients[g])[element];
  for (int rank = 0; rank < work.peer.ranks; ++rank) messages[rank].gradients[g][element] = sum;
}

__global__ __launch_bounds__(512, 1) void peer_all_reduce(Work work) {
  __shared__ PeerMessage messages[kMostPeers];
  const Peer& peer = work.peer;
  const int rank = static_cast<int>(threadIdx.x);  // of the threads that speak with one rank each
  PeerMailbox& own = *peer.mailboxes[peer.rank];
  const uint32_t number = own.averages[blockIdx.x] + 1;
  bool goes_on = true;
  if (rank < peer.ranks) {
    PeerMessage& outgoing = peer.mailboxes[rank]->messages[blockIdx.x][peer.rank];
    for (int g = 0; g < work.gradients; ++g) outgoing.gradients[g] = work.data[g];
    outgoing.share = work.share;
    Number(outgoing.ready).store(number, ::cuda::memory_order_release);
    PeerMessage& incoming = own.messages[blockIdx.x][rank];
    goes_on = wait_for(incoming.ready, number, peer.stop);
    for (int g = 0; g < work.gradients; ++g) messages[rank].gradients[g] = incoming.gradients[g];
    messages[rank].share = incoming.share;
  }
  if (!__syncthreads_and(goes_on)) return;
  const int tasks = work.first_task[work.gradients];
  for (int task = static_cast<int>(blockIdx.x); task < tasks; task += static_cast<int>(gridDim.x))
    average_task(work, messages, task);
  if (blockIdx.x == 0 && peer.rank == peer.ranks - 1) average_remainders(work, messages);
  __syncthreads();
  // A gradient has all its sums when every block of every rank has written: this kernel ends after that.
  if (rank < peer.ranks) {
    Number(peer.mailboxes[rank]->messages[blockIdx.x][peer.rank].written).store(number, ::cuda::memory_order_release);
    wait_for(own.messages[blockIdx.x][rank].written, number, peer.stop);
  }
  if (threadIdx.x == 0) own.averages[blockIdx.x] = number;
}

void launch_average(const Work& work, int blocks, int threads, cudaStream_t stream, cudaEvent_t begun) {
  cudaLaunchAttribute when_begun{};
  when_begun.id = cudaLaunchAttributeLaunchCompletionEvent;
  when_begun.val.launchCompletionEvent.event = begun;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = kRingBytes;
  config.stream = stream;
  config.attrs = &when_begun;
  config.numAttrs = begun ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelEx(&config, peer_all_reduce, work));
}

}  // namespace

int peer_average_shared_bytes() { return kRingBytes + static_cast<int>(sizeof(PeerMessage)) * kMostPeers; }

void prepare_peer_average() {
  CUDA_CHECK(cudaFuncSetAttribute(peer_all_reduce, cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes));
}

void average_with_peers(const Peer& peer, cudaStream_t stream, float share, std::span<const Gradient> gradients,
                        int blocks, cudaEvent_t begun) {
  for (; !gradients.empty(); gradients = gradients.subspan(std::min<size_t>(gradients.size(), kMostPeerGradients))) {
    const auto these = gradients.first(std::min<size_t>(gradients.size(), kMostPeerGradients));
    Work work{};
    work.peer = peer;
    work.share = share;
    work.gradients = static_cast<int>(these.size());
    // The number of blocks must be the same on all ranks, and so must not depend on this rank's part.
    const int threads = threads_for(peer.ranks);
    int64_t vectors = 0;
    for (const Gradient& g : these) vectors += static_cast<int64_t>(g.count) / 4 / peer.ranks + 1;
    const int grid = static_cast<int>(std::clamp<int64_t>(vectors / threads, 1, std::min(blocks, kMostPeerBlocks)));
    work.vectors_of_task = static_cast<int>(vectors / (2 * grid * threads) + 1) * threads;
    for (int g = 0; g < work.gradients; ++g) {
      const Gradient& gradient = these[static_cast<size_t>(g)];
      work.data[g] = gradient.data;
      work.elements[g] = static_cast<int64_t>(gradient.count);
      const Span part = part_of(work.elements[g], peer);
      const auto tasks = (part.end - part.first + work.vectors_of_task - 1) / work.vectors_of_task;
      work.first_task[g + 1] = work.first_task[g] + static_cast<int>(tasks);
    }
    launch_average(work, grid, threads, stream, std::exchange(begun, nullptr));
  }
}

}  // namespace ws::cuda

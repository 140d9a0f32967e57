#include "engine/cuda/ranks/link_peak.h"

#include <algorithm>
#include <barrier>
#include <exception>
#include <mutex>
#include <thread>

#include "engine/cuda/ranks/nccl_ranks.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handles.h"

namespace ws::cuda {
namespace {

constexpr size_t kSmallest = 4096, kLargest = size_t{256} << 20, kNextSize = 4;  // bytes
constexpr int kRounds = 5;

// One rank's GPU, stream and message.
class Member {
 public:
  Member(RankLink& link, size_t bytes) : link_(link) {
    CUDA_CHECK(cudaSetDevice(link.device()));
    stream_ = make_stream();
    begin_ = make_timed_event();
    end_ = make_timed_event();
    message_ = DeviceBlock<float>::filled(bytes / sizeof(float), 0);
  }
  // The calling thread must use the GPU of the rank.
  double seconds(size_t bytes, int calls, double share, std::barrier<>& all) {
    const Gradient message{message_.data(), bytes / sizeof(float)};
    link_.average(stream_, share, {&message, 1});
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    all.arrive_and_wait();
    link_.average(stream_, share, {&message, 1});  // after it, all ranks are there
    CUDA_CHECK(cudaEventRecord(begin_, stream_));
    for (int i = 0; i < calls; ++i) link_.average(stream_, share, {&message, 1});
    CUDA_CHECK(cudaEventRecord(end_, stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin_, end_));
    return static_cast<double>(ms) * 1e-3 / calls;
  }
  int device() const { return link_.device(); }

 private:
  RankLink& link_;
  Stream stream_;
  Event begin_, end_;
  DeviceBlock<float> message_;
};

// The best of some rounds; a round is as slow as its slowest rank. If a rank fails, all ranks end and the failure is
// thrown.
double best_seconds(std::vector<Member>& members, RankGroup& group, size_t bytes, int calls) {
  const auto ranks = static_cast<std::ptrdiff_t>(members.size());
  const double share = 1.0 / static_cast<double>(ranks);
  std::barrier all(ranks);
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<double> slowest(kRounds, 0);
  {
    std::vector<std::jthread> threads;
    for (Member& member : members)
      threads.emplace_back([&] {
        try {
          CUDA_CHECK(cudaSetDevice(member.device()));
          for (double& slow : slowest) {
            const double s = member.seconds(bytes, calls, share, all);
            const std::lock_guard lock(mutex);
            slow = std::max(slow, s);
          }
        } catch (const std::exception& problem) {
          {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
          }
          group.abandon(problem.what());
          all.arrive_and_drop();
        }
      });
  }
  if (failure) std::rethrow_exception(failure);
  return *std::ranges::min_element(slowest);
}

// Leaves the calling thread with the GPU that it had.
class KeptDevice {
 public:
  KeptDevice() { CUDA_CHECK(cudaGetDevice(&device_)); }
  ~KeptDevice() { cudaSetDevice(device_); }
  KeptDevice(const KeptDevice&) = delete;
  KeptDevice& operator=(const KeptDevice&) = delete;

 private:
  int device_ = 0;
};

// Bytes of the largest message that leaves most of each GPU's memory free.
size_t largest_message(int ranks) {
  size_t largest = kLargest;
  for (int device = 0; device < ranks; ++device) {
    size_t free = 0, total = 0;
    CUDA_CHECK(cudaSetDevice(device));
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    largest = std::min(largest, free / 8);
  }
  return largest;
}

// So many that a round takes some milliseconds: then the host's launches do not count.
int calls_for(size_t bytes) {
  constexpr double kRoundSeconds = 5e-3, kShortest = 10e-6, kUsualRate = 1e11;  // seconds, bytes per second
  const double one = kShortest + static_cast<double>(bytes) / kUsualRate;
  return std::clamp(static_cast<int>(kRoundSeconds / one), 3, 500);
}

}  // namespace

std::vector<BusRate> measure_bus_rates(int ranks, const std::atomic<bool>& cancel) {
  const KeptDevice kept;
  const Ranks connected = make_nccl_ranks(ranks, false);
  const size_t largest = largest_message(ranks);
  std::vector<Member> members;
  members.reserve(connected.links.size());
  for (const auto& link : connected.links) members.emplace_back(*link, largest);
  std::vector<BusRate> measured;
  for (size_t bytes = kSmallest; bytes <= largest && !cancel; bytes *= kNextSize) {
    const double seconds = best_seconds(members, *connected.group, bytes, calls_for(bytes));
    measured.push_back({ranks, static_cast<double>(bytes),
                        all_reduce_bus_factor(ranks) * static_cast<double>(bytes) / seconds * 1e-9});
  }
  return measured;
}

}  // namespace ws::cuda

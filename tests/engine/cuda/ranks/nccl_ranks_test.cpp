// One rank a process, connected by NCCL: here threads stand for processes and a library of ours for NCCL.
#include "engine/cuda/ranks/nccl_ranks.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>

#include "engine/cuda/ranks/nccl.h"
#include "engine/cuda/ranks/peer_ranks.h"
#include "profiling/base/failure.h"
#include "tests/support/failure_text.h"

namespace {
int g_peer_access = 0, g_shared_bytes = 0;  // of the made GPUs
}

// There is no GPU. These definitions come before the CUDA runtime's.
extern "C" {
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) { *value = g_peer_access; return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { *value = g_shared_bytes; return cudaSuccess; }
}

namespace ws::cuda {
namespace {

struct Part {
  double share;
  std::vector<float> values;
};

// Each rank averages its part, and the ranks leave together. Returns the values of each rank.
std::vector<std::vector<float>> averaged(std::vector<Part> parts) {
  const std::string id = make_nccl_id();
  const int ranks = static_cast<int>(parts.size());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Part& mine = parts[static_cast<size_t>(rank)];
      const ProcessRank process = make_nccl_rank(id, rank, ranks, rank % 2, false);
      const auto link = process.connect();
      EXPECT_EQ(link->device(), rank % 2);
      const Gradient gradient{mine.values.data(), mine.values.size()};
      link->average(nullptr, mine.share, {&gradient, 1});
      link->average(nullptr, mine.share, {&gradient, 1});
    });
  threads.clear();
  std::vector<std::vector<float>> results;
  for (Part& part : parts) results.push_back(part.values);
  return results;
}

std::string problem_of(const std::function<void()>& work) { return test::failure_text(work, "none"); }

TEST(Nccl, IsMissingTooOldOrAnotherLibrary) {
  EXPECT_EQ(problem_of([] { open_nccl("libnccl.so.none"); }),
            "NCCL (libnccl.so.none) was not found, and training on several GPUs needs it: install libnccl2, or name its "
            "folder in LD_LIBRARY_PATH.");
  EXPECT_EQ(problem_of([] { open_nccl("libm.so.6"); }), "NCCL has no function ncclGetVersion: install NCCL 2.11 or newer.");
  setenv("FAKE_NCCL_VERSION", "20804", 1);
  EXPECT_EQ(problem_of([] { open_nccl("libnccl.so.2"); }),
            "NCCL 2.8.4 is too old: training on several GPUs needs 2.11 or newer.");
  unsetenv("FAKE_NCCL_VERSION");
  EXPECT_EQ(problem_of([] { open_nccl("libnccl.so.2"); }), "none");
}

TEST(PeerRanks, NeedPeerAccessAndSharedMemory) {
  EXPECT_FALSE(peers_have_nvlink(2));
  EXPECT_EQ(problem_of([] { make_peer_ranks(2); }), "peer: these GPUs cannot map each other's memory; choose nccl.");
  g_peer_access = 1, g_shared_bytes = 100 << 10;
  EXPECT_FALSE(peers_have_nvlink(2)) << "auto takes NCCL";
  EXPECT_EQ(problem_of([] { make_peer_ranks(2); }), "peer: these GPUs have too little shared memory; choose nccl.");
  g_shared_bytes = 227 << 10;
  EXPECT_TRUE(peers_have_nvlink(2));
  EXPECT_EQ(problem_of([] { make_peer_ranks(9); }), "peer: at most 8 GPUs map each other's memory; choose nccl.");
}

TEST(NcclProcessRanks, AverageByTheirShares) {
  for (const auto& values : averaged({{0.5, {2, 4}}, {0.5, {4, 8}}})) EXPECT_EQ(values, (std::vector<float>{3, 6}));
  for (const auto& values : averaged({{0.5, {2}}, {0.25, {4}}, {0.25, {8}}})) EXPECT_EQ(values, std::vector<float>{4});
}

TEST(NcclProcessRanks, EndWhileOneOfThemDoesNotCome) {
  const ProcessRank process = make_nccl_rank(make_nccl_id(), 0, 2, 0, false);
  auto waiting = std::async(std::launch::async, [&] { process.connect(); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  process.group->abandon("Rank 1 is gone.");
  try {
    waiting.get();
    FAIL() << "connected to nobody";
  } catch (const Failure& problem) {
    EXPECT_STREQ(problem.what(), "Rank 1 is gone.");
  }
}

TEST(NcclProcessRanks, SayWhatNcclRefuses) {
  const std::string id = make_nccl_id();
  try {
    make_nccl_rank(id, 2, 2, 0, false).connect();
    FAIL() << "there is no rank 2";
  } catch (const CallFailure& problem) {
    EXPECT_EQ(problem.call, "ncclCommInitRank");
  }
}

TEST(NcclProcessRanks, RefuseToAverageOnceTheyAreAbandoned) {
  const std::string id = make_nccl_id();
  const ProcessRank processes[] = {make_nccl_rank(id, 0, 2, 0, false), make_nccl_rank(id, 1, 2, 1, false)};
  std::unique_ptr<RankLink> links[2];
  {
    const std::jthread other([&] { links[1] = processes[1].connect(); });
    links[0] = processes[0].connect();
  }
  for (const ProcessRank& process : processes) process.group->abandon("Rank 1 is gone.");
  float value = 1;
  const Gradient gradient{&value, 1};
  try {
    links[0]->average(nullptr, 0.5, {&gradient, 1});
    FAIL() << "averaged with nobody";
  } catch (const Failure& problem) {
    EXPECT_STREQ(problem.what(), "Rank 1 is gone.");
  }
}

}  // namespace
}  // namespace ws::cuda

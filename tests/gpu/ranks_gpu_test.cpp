// Several GPUs train what one GPU trains.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "engine/cuda/ranks/link_peak.h"
#include "engine/cuda/ranks/nccl_ranks.h"
#include "engine/cuda/ranks/peer_average.h"
#include "engine/cuda/ranks/peer_ranks.h"
#include "engine/cuda/runtime/handles.h"
#include "engine/executor/ranked_executor.h"
#include "engine/train/trainer.h"
#include "tests/gpu/executor_support.h"

#define NEEDS_GPUS(count) \
  if (ws::device_info().gpus < (count)) GTEST_SKIP() << "needs " << (count) << " GPUs, here are " << ws::device_info().gpus

namespace ws::test {
namespace {

Training training_of(int ranks, int64_t batch = 64) {
  Training t;
  t.spec.model.hidden = {40, 24};
  t.spec.train.optimizer = Optimizer::Momentum;
  t.spec.exec.device = Device::Cuda;
  t.spec.exec.gpus = ranks;
  t.batch = t.spec.train.batch = batch;
  t.epochs = 3;
  t.data = random_data(5 * batch + 10, 28, 10, true);
  return t;
}

Outcome train(const Training& t) {
  const auto executor = make_executor(t.spec);
  return train_on(*executor, t);
}

TEST(RanksGpu, TrainAsOneHoweverTheyAverageAndLaunch) {
  NEEDS_GPUS(2);
  const Outcome oracle = train_on_oracle(training_of(1));
  for (const Launch launch : {Launch::Eager, Launch::Graph})
    for (const Comm comm : {Comm::Bucket, Comm::Layers, Comm::Overlap})
      for (const Fusion fusion : {Fusion::Off, Fusion::Epilogue})
        for (const CommBy by : {CommBy::Nccl, CommBy::Peer}) {
          Training t = training_of(2);
          t.spec.exec.launch = launch, t.spec.exec.comm = comm, t.spec.exec.comm_by = by, t.spec.exec.fusion = fusion;
          t.spec.exec.graph_steps = 4;
          SCOPED_TRACE(label(t.spec.exec) + " " + std::string(to_string(comm)) + " " + std::string(to_string(by)));
          const Outcome got = train(t);
          EXPECT_LT(distance(got, oracle, t), tolerance(Precision::Fp32));
          expect_same_losses(got, oracle, tolerance(Precision::Fp32));
          EXPECT_TRUE(same_bits(got, train(t))) << "two runs differ";
        }
}

// The first layer's transfer is long, and the output layer's gradients are made beside it: their transfer need not wait.
TEST(RanksGpu, AShortTransferRunsBesideALongOne) {
  NEEDS_GPUS(2);
  Training t = training_of(2);
  t.spec.model.hidden = {1200};
  t.spec.exec.comm = Comm::Overlap, t.spec.exec.comm_by = CommBy::Peer;
  t.spec.exec.graph_steps = 4;
  t.data = random_data(330, 1000, 10, true);
  Training alone = t;
  alone.spec.exec.gpus = 1;
  const Outcome oracle = train_on_oracle(alone);
  for (const Launch launch : {Launch::Eager, Launch::Graph}) {
    t.spec.exec.launch = launch;
    const Outcome got = train(t);
    EXPECT_LT(distance(got, oracle, t), tolerance(Precision::Fp32));
    EXPECT_TRUE(same_bits(got, train(t))) << "two runs differ";
  }
}

// Two ranks on one GPU, each with its stream: the kernels meet as on two GPUs.
TEST(PeerAverage, SumsSharesOfGradientsOfEverySize) {
  NEEDS_GPU();
  const std::vector<size_t> sizes{1, 3, 10, 4096, 100'352, 1'000'003};
  cuda::prepare_peer_average();
  for (const int blocks : {1, 4, 8}) {
    std::vector<cuda::DeviceBlock<cuda::PeerMailbox>> boxes;
    std::vector<cuda::Stream> streams;
    std::vector<std::vector<cuda::DeviceBlock<float>>> data(2);
    const auto host = [](size_t i, int rank) { return static_cast<float>(i % 1000) + 0.25f * static_cast<float>(rank + 1); };
    cuda::Peer peers[2];
    const auto stop = cuda::PinnedBlock<int>::pinned(1);
    stop[0] = 0;
    for (int rank = 0; rank < 2; ++rank) {
      boxes.push_back(cuda::DeviceBlock<cuda::PeerMailbox>::filled(1));
      streams.push_back(cuda::make_stream());
      for (const size_t size : sizes) {
        std::vector<float> values(size);
        for (size_t i = 0; i < size; ++i) values[i] = host(i, rank);
        data[static_cast<size_t>(rank)].push_back(cuda::DeviceBlock<float>::device(size));
        CUDA_CHECK(cudaMemcpy(data[static_cast<size_t>(rank)].back().data(), values.data(), size * 4, cudaMemcpyDefault));
      }
    }
    for (int rank = 0; rank < 2; ++rank)
      peers[rank] = {rank, 2, {boxes[0].data(), boxes[1].data()}, stop.data()};
    for (int times = 0; times < 3; ++times)
      for (size_t rank = 0; rank < 2; ++rank) {
        std::vector<cuda::Gradient> gradients;
        for (size_t g = 0; g < sizes.size(); ++g) gradients.push_back({data[rank][g].data(), sizes[g]});
        cuda::average_with_peers(peers[rank], streams[rank], rank == 0 ? 0.75f : 0.25f, gradients, blocks, nullptr);
      }
    CUDA_CHECK(cudaDeviceSynchronize());
    for (size_t g = 0; g < sizes.size(); ++g) {
      std::vector<float> got[2];
      for (size_t rank = 0; rank < 2; ++rank) {
        got[rank].resize(sizes[g]);
        CUDA_CHECK(cudaMemcpy(got[rank].data(), data[rank][g].data(), sizes[g] * 4, cudaMemcpyDefault));
      }
      for (size_t i = 0; i < sizes[g]; ++i)
        ASSERT_EQ(got[0][i], 0.75f * host(i, 0) + 0.25f * host(i, 1)) << sizes[g] << " elements, element " << i;
      EXPECT_EQ(got[0], got[1]);
    }
  }
}

TEST(RanksGpu, AreAsNearToTheOracleAsOneGpuInEveryPrecision) {
  NEEDS_GPUS(2);
  const Outcome oracle = train_on_oracle(training_of(1));
  for (const Precision precision : {Precision::Tf32, Precision::Bf16, Precision::Fp16}) {
    Training t = training_of(1);
    t.spec.exec.precision = precision;
    const double alone = distance(train(t), oracle, t);
    t.spec.exec.gpus = 2;
    EXPECT_LT(distance(train(t), oracle, t), 1.3 * alone + 1e-3) << to_string(precision);
  }
}

TEST(RanksGpu, ShareOddBatchesAndWholeSets) {
  NEEDS_GPUS(2);
  for (const int64_t batch : {33, 335}) {
    Training t = training_of(1, batch);
    t.data = random_data(335, 28, 10, true);
    const Outcome oracle = train_on_oracle(t);
    t.spec.exec.gpus = 2;
    for (const Loader loader : {Loader::Resident, Loader::Pinned, Loader::Pageable}) {
      t.spec.exec.loader = loader;
      const Outcome got = train(t);
      EXPECT_LT(distance(got, oracle, t), tolerance(Precision::Fp32)) << batch << " " << to_string(loader);
    }
  }
}

TEST(RanksGpu, EveryWaitWorks) {
  NEEDS_GPUS(2);
  const Outcome oracle = train_on_oracle(training_of(1));
  for (const SyncPolicy sync : {SyncPolicy::EveryOp, SyncPolicy::EveryStep, SyncPolicy::OnRead}) {
    Training t = training_of(2);
    t.spec.exec.sync = sync, t.spec.exec.comm = Comm::Overlap;
    EXPECT_LT(distance(train(t), oracle, t), tolerance(Precision::Fp32)) << label(t.spec.exec);
  }
}

TEST(RanksGpu, ATrainingSharesItsTestAndReportsWhereItRan) {
  NEEDS_GPUS(2);
  struct Quiet : TrainSink {
  } sink;
  TrainControl control;
  RunSpec spec = training_of(1).spec;
  spec.train.epochs = 4;
  const data::Dataset data = random_data(330, 28, 10, true);
  const Summary one = ws::train(spec, data, control, sink);
  spec.exec.gpus = 0;
  TrainControl again;
  const Summary all = ws::train(spec, data, again, sink);
  EXPECT_EQ(all.status, RunStatus::Finished) << all.message;
  EXPECT_NEAR(all.test_loss, one.test_loss, 1e-3);
  EXPECT_EQ(all.spec.exec.gpus, device_info().gpus);
  EXPECT_EQ(all.device, std::to_string(device_info().gpus) + " × " + one.device);
}

TEST(RanksGpu, MoreGpusThanThereAreIsASentence) {
  NEEDS_GPU();
  RunSpec spec = training_of(64).spec;
  try {
    make_executor(spec);
    FAIL();
  } catch (const Failure& problem) {
    EXPECT_EQ(problem.what(), "exec.gpus asks for 64 GPUs and this machine has " + std::to_string(device_info().gpus) + ".");
  }
}

// Trains with two ranks that speak as processes do; here they are threads. `local`: local rank of the second one.
std::vector<Summary> train_processes(const RunSpec& spec, const data::Dataset& data, int local) {
  setenv("MASTER_PORT", std::to_string(20000 + getpid() % 12000).c_str(), 1);
  std::vector<Summary> ends(2);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      RankProcesses processes({rank, 2, rank * local, 2}, spec_text(spec), spec);
      TrainSink sink;
      TrainControl control;
      ends[static_cast<size_t>(rank)] = ws::train(spec, data, control, sink, {.processes = &processes});
    });
  threads.clear();
  return ends;
}

TEST(RanksGpu, OneRankAProcessTrainsAsOneGpu) {
  NEEDS_GPUS(2);
  RunSpec spec = training_of(1).spec;
  spec.train.epochs = 4;
  const data::Dataset data = random_data(330, 28, 10, true);
  TrainSink sink;
  TrainControl control;
  const Summary one = ws::train(spec, data, control, sink);
  for (const Launch launch : {Launch::Eager, Launch::Graph})
    for (const Comm comm : {Comm::Bucket, Comm::Overlap}) {
      spec.exec.launch = launch, spec.exec.comm = comm;
      const auto ends = train_processes(spec, data, 1);
      for (const Summary& end : ends) EXPECT_EQ(end.status, RunStatus::Finished) << end.message;
      EXPECT_NEAR(ends[0].test_loss, one.test_loss, 1e-3);
      EXPECT_EQ(ends[0].device, "2 × " + one.device);
    }
}

TEST(RanksGpu, MoreLocalRanksThanGpusIsASentence) {
  NEEDS_GPU();
  if (std::getenv("CUDA_VISIBLE_DEVICES")) GTEST_SKIP() << "a process that sees one GPU may have any local rank";
  if (!dlopen("libnccl.so.2", RTLD_NOW)) GTEST_SKIP() << "needs NCCL";
  RunSpec spec = training_of(1).spec;
  for (const Summary& end : train_processes(spec, random_data(330, 28, 10, true), 64)) {
    EXPECT_EQ(end.status, RunStatus::Failed);
    EXPECT_TRUE(end.message.starts_with("Rank 1: this is rank 64 of its host, counted from 0")) << end.message;
  }
}

// The other rank's kernel waits for a partner that never comes.
void expect_release(cuda::Ranks joined) {
  const Training t = training_of(2);
  struct Broken final : cuda::RankLink {
    int device() const override { return 1; }
    std::string_view name() const override { return "broken"; }
    void average_beside(CUstream_st*, double, std::span<const cuda::Gradient>, cuda::Beside, CUevent_st*) override {
      throw Failure("the link is broken");
    }
  };
  joined.links[1] = std::make_unique<Broken>();
  const auto executor = make_ranked_executor(2, joined.group, [&](int rank) {
    return cuda::make_cuda_executor("GPU", std::move(joined.links[static_cast<size_t>(rank)]));
  });
  try {
    train_on(*executor, t);
    FAIL() << "nobody noticed";
  } catch (const Failure& problem) {
    EXPECT_STREQ(problem.what(), "the link is broken");
  }
}

TEST(BusRates, ComeFromTheLinks) {
  NEEDS_GPUS(2);
  int before = -1, after = -1;
  cudaGetDevice(&before);
  const std::atomic<bool> go{false}, stop{true};
  const std::vector<BusRate> measured = cuda::measure_bus_rates(2, go);
  ASSERT_GE(measured.size(), 6u);
  for (const BusRate& rate : measured) EXPECT_EQ(rate.ranks, 2);
  EXPECT_GT(measured.back().gb_s, 10 * measured.front().gb_s) << "small messages wait for the links";
  EXPECT_GT(measured.back().gb_s, 5) << "less than a slow bus reaches";
  EXPECT_TRUE(cuda::measure_bus_rates(2, stop).empty());
  cudaGetDevice(&after);
  EXPECT_EQ(after, before);
}

TEST(RanksGpu, AFailedRankReleasesTheRest) {
  NEEDS_GPUS(2);
  expect_release(cuda::make_nccl_ranks(2, true));
  expect_release(cuda::make_peer_ranks(2));
}

}  // namespace
}  // namespace ws::test

// Ranks that are processes: here each is a thread, and they speak over the loopback as processes do.
#include "engine/ranks/rank_processes.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <future>
#include <thread>

#include "engine/cpu/cpu_executor.h"
#include "engine/cpu/host_ranks.h"
#include "engine/executor/ranked_executor.h"
#include "engine/ranks/rank_channel.h"
#include "engine/ranks/rank_meeting.h"
#include "engine/ranks/rank_worker.h"
#include "engine/ranks/remote_rank.h"
#include "engine/train/schedule.h"
#include "engine/train/trainer.h"
#include "profiling/base/byte_reader.h"
#include "profiling/base/version.h"
#include "tests/engine/train/train_support.h"
#include "tests/support/own_file.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

using test::Recorder;
using test::small_spec;

constexpr const char* kPatience = "3";  // seconds

class RankProcessesTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("MASTER_PORT", std::to_string(20000 + getpid() * 2 % 12000).c_str(), 1);
    setenv("WARPSIGHT_RANK_TIMEOUT", kPatience, 1);
  }

  // Runs work(processes) once for each rank. Returns what each rank threw.
  using Work = std::function<void(RankProcesses&)>;
  using Choices = std::function<RunSpec(int rank)>;
  static std::vector<std::string> as_ranks(int ranks, const Choices& choices, const Work& work) {
    std::vector<std::string> problems(static_cast<size_t>(ranks));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        try {
          const RunSpec spec = choices(rank);
          RankProcesses processes({rank, ranks, rank, ranks}, spec_text(spec), spec);
          work(processes);
        } catch (const Failure& problem) {
          problems[static_cast<size_t>(rank)] = problem.what();
        }
      });
    threads.clear();
    return problems;
  }
  static std::vector<std::string> as_ranks(int ranks, const RunSpec& spec, const Work& work) {
    return as_ranks(
        ranks, [&spec](int) { return spec; }, work);
  }

  struct Trained {
    Summary summary;
    std::vector<float> losses;
  };
  // `data`: of each rank.
  static Trained train_ranks(int ranks, const RunSpec& spec, const std::function<data::Dataset(int)>& data,
                             TrainOptions options = {}, size_t stop_after = 0) {
    Trained out;
    as_ranks(ranks, spec, [&](RankProcesses& processes) {
      TrainOptions mine = processes.rank() == 0 ? options : TrainOptions();
      mine.processes = &processes;
      TrainControl control;
      Recorder sink;
      if (stop_after && processes.rank() == 0)
        sink.on_steps = [&] {
          if (sink.losses.size() >= stop_after) control.stop();
        };
      const data::Dataset here = data(processes.rank());
      const Summary summary = train(processes.spec(), here, control, sink, mine);
      if (processes.rank() == 0) out = {summary, sink.losses};
      EXPECT_EQ(sink.endings, 1);
      EXPECT_TRUE(sink.executor || summary.status == RunStatus::Failed);
    });
    return out;
  }
};

data::Dataset classes(int64_t rows = 90) { return test::random_data(rows, 6, 3, true); }

std::vector<float> losses_of_threads(RunSpec spec, int ranks) {
  spec.exec.gpus = ranks;
  TrainControl control;
  Recorder sink;
  const data::Dataset data = classes();
  train(spec, data, control, sink);
  return sink.losses;
}

TEST_F(RankProcessesTest, TrainAsThreadsBitForBit) {
  for (const Comm comm : {Comm::Bucket, Comm::Overlap})
    for (const int ranks : {2, 3, 4}) {
      RunSpec spec = small_spec();
      spec.train.epochs = 8;
      spec.train.optimizer = Optimizer::Adam;
      spec.exec.comm = comm;
      const Trained got = train_ranks(ranks, spec, [](int) { return classes(); });
      EXPECT_EQ(got.summary.status, RunStatus::Finished) << got.summary.message;
      EXPECT_EQ(got.losses.size(), 48u);
      EXPECT_EQ(got.losses, losses_of_threads(spec, ranks)) << ranks << " ranks";
      EXPECT_EQ(got.summary.spec.exec.gpus, ranks);
      EXPECT_GT(got.summary.peak_bytes, 0);
    }
}

// Parameters after some steps in float64, by ranks that are processes (or one rank alone).
TrainState oracle_state(Executor& executor, const RunSpec& spec, const data::Dataset& data) {
  const Model model = make_model(spec.model, data.features, data.outputs);
  executor.load(model, data, spec);
  executor.set_state(first_state(model, spec));
  executor.begin_epoch(epoch_order(spec.train, data.train.rows, 0));
  executor.bind(compile(spec, model, spec.train.batch).plan);
  executor.run(0, 0, std::vector<float>(5, 0.05f));
  std::vector<StepResult> results;
  executor.results(results, true);
  EXPECT_EQ(results.size(), 5u);
  return executor.state();
}

TEST_F(RankProcessesTest, TrainInDoubleAsOneRank) {
  const data::Dataset data = test::random_data(90, 6, 3, false);
  RunSpec spec = small_spec();
  spec.model.loss = LossKind::MeanSquared;
  const TrainState one = oracle_state(*make_oracle(), spec, data);
  for (const int ranks : {2, 3}) {
    spec.exec.gpus = ranks;
    TrainState many;
    const auto problems = as_ranks(ranks, spec, [&](RankProcesses& processes) {
      RankChannel* channel = processes.rank() > 0 ? &processes.channel(0) : nullptr;
      const auto oracle = [&](const RankRequest&) {
        return [&] { return make_oracle({average_through(*channel), processes.rank()}); };
      };
      if (channel) return void(RankWorker(processes, data, oracle, nullptr).run());
      const auto group = std::make_shared<cpu::HostRanks>(ranks);
      prepare_ranks(processes, {spec, {}});
      const auto executor = make_ranked_executor(ranks, group, [&](int rank) {
        return rank == 0 ? make_oracle({group, 0}) : make_remote_rank(processes, rank, group);
      });
      many = oracle_state(*executor, spec, data);
      processes.end("0");
    });
    EXPECT_EQ(problems, std::vector<std::string>(static_cast<size_t>(ranks)));
    ASSERT_EQ(many.parameters.size(), one.parameters.size());
    for (size_t p = 0; p < one.parameters.size(); ++p)
      for (size_t i = 0; i < one.parameters[p].size(); ++i)  // the states are floats
        EXPECT_NEAR(static_cast<double>(many.parameters[p][i]), static_cast<double>(one.parameters[p][i]), 1.2e-7 * 4);
  }
}

TEST_F(RankProcessesTest, GoOnFromACheckpointWithOthers) {
  const std::string file = test::own_file("rank_processes.wsckpt");
  RunSpec spec = small_spec();
  spec.train.epochs = 12;
  const std::vector<float> one = losses_of_threads(spec, 1);
  TrainOptions options;
  options.checkpoint = file;
  std::vector<float> joined;
  for (const auto& [ranks, stop] : {std::pair{2, 20}, std::pair{4, 20}, std::pair{3, 0}}) {
    const Trained part = train_ranks(
        ranks, spec, [](int) { return classes(); }, options, static_cast<size_t>(stop));
    joined.insert(joined.end(), part.losses.begin(), part.losses.end());
    options.resume_from = file;
  }
  ASSERT_EQ(joined.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(joined[i], one[i], 1e-5f);
}

TEST_F(RankProcessesTest, RefuseOtherChoicesAndOtherData) {
  const auto differs = [](int rank) {
    RunSpec spec = small_spec();
    if (rank == 1) spec.train.lr = 0.5;
    return spec;
  };
  for (const std::string& problem : as_ranks(2, differs, [](RankProcesses&) {}))
    EXPECT_NE(problem.find("was started with train.lr = 0.5, and rank 0 with 0.05"), std::string::npos) << problem;
  const Trained other = train_ranks(2, small_spec(), [](int rank) { return classes(rank == 1 ? 91 : 90); });
  EXPECT_EQ(other.summary.message,
            "Rank 1: its data set random is not the one of rank 0. Give every host the same data.");
}

TEST_F(RankProcessesTest, RefuseAnotherVersion) {
  std::string problem_there;
  std::jthread other([&problem_there] {
    RankChannel channel(connect_to(rank_meeting({1, 2, 1, 2})).release(), "Rank 0");
    ByteWriter hello;
    for (const char* text : {"Warpsight rank", "0.0.1", "far", ""}) hello.text(text);
    hello.value(int32_t{1}), hello.value(int32_t{2}), hello.value(int64_t{7});
    channel.send(MessageKind::Hello, hello.take());
    try {
      channel.receive();
    } catch (const Failure& problem) {
      problem_there = problem.what();
    }
  });
  const std::string wanted = "Rank 1 (process 7 on far) is Warpsight 0.0.1, and rank 0 is Warpsight " + std::string(version()) +
                             ": install one version everywhere.";
  try {
    RankProcesses({0, 2, 0, 2}, "", small_spec());
    ADD_FAILURE() << "it was let in";
  } catch (const Failure& problem) {
    EXPECT_EQ(problem.what(), wanted);
  }
  other.join();
  EXPECT_EQ(problem_there, wanted);
}

TEST_F(RankProcessesTest, NeedEveryRankBeforeOneConnects) {
  const RunSpec spec = small_spec();
  as_ranks(3, spec, [&](RankProcesses& processes) {
    const data::Dataset data = classes();
    const auto prepare = [&](const RankRequest& request) -> RankWorker::Connect {
      EXPECT_EQ(request.spec.exec.device, Device::Cpu);
      if (processes.rank() == 1) throw Failure("the host has no GPU.");
      return []() -> std::unique_ptr<Executor> {
        ADD_FAILURE() << "it would wait for rank 1";
        return make_cpu_executor();
      };
    };
    if (processes.rank() > 0) {
      EXPECT_THROW(RankWorker(processes, data, prepare, nullptr).run(), Failure);
      return;
    }
    TrainControl control;
    Recorder sink;
    EXPECT_EQ(train(spec, data, control, sink, {.processes = &processes}).message, "Rank 1: the host has no GPU.");
  });
}

TEST_F(RankProcessesTest, NameTheRankThatEnds) {
  const RunSpec spec = small_spec();
  std::string message;
  as_ranks(3, spec, [&](RankProcesses& processes) {
    const data::Dataset data = classes();
    if (processes.rank() == 2) return;  // as if it was killed
    TrainControl control;
    Recorder sink;
    const Summary summary = train(spec, data, control, sink, {.processes = &processes});
    EXPECT_EQ(summary.status, RunStatus::Failed);
    EXPECT_NE(summary.message.find("Rank 2 (process "), std::string::npos) << summary.message;
    EXPECT_NE(summary.message.find(") ended"), std::string::npos) << summary.message;
  });
}

// Ends by itself only after the test has ended.
class HangingRank final : public cpu::RankAverage {
 public:
  explicit HangingRank(RankChannel& channel) : channel_(channel) {}
  void average(int, double, const Tensors<float>&) override { channel_.receive(); }
  void average(int, double, const Tensors<double>&) override { channel_.receive(); }

 private:
  RankChannel& channel_;
};

TEST_F(RankProcessesTest, NameTheRankThatHangs) {
  const RunSpec spec = small_spec();
  as_ranks(3, spec, [&](RankProcesses& processes) {
    const data::Dataset data = classes();
    if (processes.rank() == 1) {  // it is alive and never sends its gradients
      const auto hangs = std::make_shared<HangingRank>(processes.channel(0));
      const auto prepare = [&](const RankRequest&) { return [&] { return make_cpu_executor("CPU", {hangs, 1}); }; };
      EXPECT_THROW(RankWorker(processes, data, prepare, nullptr).run(), Failure);
      return;
    }
    TrainControl control;
    Recorder sink;
    const Summary summary = train(spec, data, control, sink, {.processes = &processes});
    EXPECT_EQ(summary.message, "Rank 1 does not finish its step. The others have waited for 3.0 s.");
  });
}

// Signals that come to other threads than this one, as a sampling profiler sends. They interrupt calls that wait.
class Signals {
 public:
  Signals() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGUSR1, &action, &before_);
    sigset_t one;
    sigemptyset(&one), sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, &mask_);
  }
  ~Signals() {
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    sigaction(SIGUSR1, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  template <class Result>
  static bool sent_until(std::future<Result>& done, int most) {
    for (int i = 0; i < most; ++i) {
      if (done.wait_for(std::chrono::milliseconds(10)) == std::future_status::ready) return true;
      kill(getpid(), SIGUSR1);
    }
    return false;
  }

 private:
  struct sigaction before_ {};
  sigset_t mask_{};
};

struct SocketPair {
  SocketPair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
  void send_bytes(const void* bytes, size_t size) const { EXPECT_EQ(send(ends[1], bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size)); }
  int ends[2];
};
struct MessageHead {
  MessageKind kind;
  uint32_t unused = 0;
  uint64_t size;
};

TEST_F(RankProcessesTest, FindARankThatStopsInsideOfAMessageAlsoBesideSignals) {
  const SocketPair line;
  RankChannel channel(line.ends[0], "Rank 1");  // its thread gets the signals
  const Signals signals;
  std::promise<std::string> broken;
  std::future<std::string> why = broken.get_future();
  channel.when_broken([&broken](const std::string& text) { broken.set_value(text); });
  const MessageHead head{MessageKind::Done, 0, 72};
  line.send_bytes(&head, sizeof head);
  const bool found = Signals::sent_until(why, 3000);
  close(line.ends[1]);
  ASSERT_TRUE(found) << "not within 30 s";
  EXPECT_EQ(why.get(), "Rank 1 has not answered for 3.0 s.");
}

TEST_F(RankProcessesTest, ReadAGreetingThatComesInPartsBesideSignals) {
  const SocketPair line;
  auto message = std::async(std::launch::async, [&line] { return read_message(line.ends[0], 100); });
  const Signals signals;
  const MessageHead head{MessageKind::Done, 0, 6};
  for (const auto& [part, size] : {std::pair<const void*, size_t>{&head, 7}, {reinterpret_cast<const char*>(&head) + 7, sizeof head - 7}, {"abc", 3}}) {
    EXPECT_FALSE(Signals::sent_until(message, 5));
    line.send_bytes(part, size);
  }
  EXPECT_FALSE(Signals::sent_until(message, 5));
  line.send_bytes("def", 3);
  EXPECT_EQ(message.get().bytes, "abcdef");
  for (const int end : line.ends) close(end);
}

// Any program may connect to a port.
TEST_F(RankProcessesTest, IgnoreAStranger) {
  const RunSpec spec = small_spec();
  std::jthread stranger([] {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(std::getenv("MASTER_PORT")) + 1));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    while (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::string text(100, 'x');
    EXPECT_EQ(send(socket, text.data(), text.size(), MSG_NOSIGNAL), 100);
    char byte;
    EXPECT_LE(recv(socket, &byte, 1, 0), 0) << "it got an answer";
    close(socket);
  });
  const auto late = [&](int rank) {
    if (rank == 1) stranger.join();
    return spec;
  };
  EXPECT_EQ(as_ranks(2, late, [](RankProcesses& p) { EXPECT_EQ(p.count(), 2); }), std::vector<std::string>(2));
}

TEST(Fingerprint, DiffersWithEveryPartOfTheData) {
  const data::Dataset data = classes();
  const uint32_t before = fingerprint(data);
  EXPECT_EQ(fingerprint(classes()), before);
  data::Dataset other = data;
  other.train.labels.back() ^= 1;
  EXPECT_NE(fingerprint(other), before);
  other = data;
  other.test.x.back() += 1e-3f;
  EXPECT_NE(fingerprint(other), before);
}

}  // namespace
}  // namespace ws

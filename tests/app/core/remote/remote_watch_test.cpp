// Watching a job whose data are made here: how late an event is seen, and that a long run stays small on both sides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "app/core/remote/remote_run.h"
#include "profiling/base/clock.h"
#include "tests/support/machine.h"
#include "tests/support/made_job.h"
#include "tests/support/network.h"
#include "tests/support/own_file.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

double anonymous_mb(const std::string& process) {
  std::ifstream in("/proc/" + process + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("RssAnon:")) return std::atof(line.c_str() + 8) / 1024;
  return 0;
}

std::string child_of(pid_t process) {
  std::string child, name = std::to_string(process);
  std::ifstream("/proc/" + name + "/task/" + name + "/children") >> child;
  return child;
}

class Watch : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { test::remove_folder(folder_); }
  RemoteAddress line(double ms, double bits_a_s) const {
    return parse_remote("pipe:exec " WARPSIGHT_SLOW_LINE " " + std::to_string(ms) + " " + std::to_string(bits_a_s) +
                        " 0 " WARPSIGHT_CLI " serve --folder " + folder_.string());
  }
  void see_events_in_time(RemoteAddress there) const;
  const fs::path folder_ = fs::temp_directory_path() / ("warpsight-watch-" + std::to_string(getpid()));
};

// 100 Mbit/s with a turn of 50 ms: from the end of a span there to the moment when the window takes it here.
void Watch::see_events_in_time(RemoteAddress there) const {
  test::MadeJob job({folder_.string(), "a"}, 500'000, 10'000);
  RemoteLink link(std::move(there));
  link.ask({{"do", "hello"}});
  RemoteRun run(link, "a", true);
  const test::Pulse pulse;
  const int64_t begin = prof::steady_ns();
  job.begin_at(begin);
  std::jthread telling([&job](const std::stop_token& ended) {
    for (; !ended.stop_requested(); std::this_thread::sleep_for(milliseconds(10))) job.send_until(prof::steady_ns());
  });
  std::vector<double> late_ms;
  size_t spans = 0;
  const size_t enough = test::kSanitized ? 0 : 10'000;
  const auto goes_on = [&](int64_t time) { return time < 3'000'000'000 || ((late_ms.size() <= enough || spans == 0) && time < 60'000'000'000); };
  int64_t now = begin;
  while (goes_on(now - begin)) {
    std::this_thread::sleep_for(milliseconds(2));
    now = prof::steady_ns();
    for (const prof::TraceBatch& batch : run.take().run.traces)
      for (const prof::BatchTrack& track : batch.tracks)
        for (const prof::Span& span : track.spans) {
          ++spans;
          if (span.start - begin > 1'000'000'000) late_ms.push_back(static_cast<double>(now - span.end()) * 1e-6);
        }
  }
  telling.request_stop();
  telling.join();
  if (test::kSanitized) {
    EXPECT_GT(spans, 0u);
    return;
  }
  ASSERT_GT(late_ms.size(), enough);
  std::ranges::sort(late_ms);
  const double median = late_ms[late_ms.size() / 2], p99 = late_ms[late_ms.size() * 99 / 100];
  std::printf("100 Mbit/s, 50 ms: %.0f spans/s are seen after %.0f ms (median), %.0f ms (p99); %.1f MB came later; "
              "the machine made others wait %.0f ms\n",
              static_cast<double>(spans) / (static_cast<double>(now - begin) * 1e-9), median, p99, static_cast<double>(run.left_out()) * 1e-6, pulse.longest_ms());
  EXPECT_LE(p99, test::busy() * (250 - 33) + 8 * pulse.longest_ms()) << "the window needs 33 ms to draw";
  if (test::busy() == 1) {
    EXPECT_EQ(run.left_out(), 0u);
  }
}

TEST_F(Watch, AnEventIsSeenWithinAQuarterOfASecond) { see_events_in_time(line(25, 100e6)); }

TEST_F(Watch, AnEventIsSeenInTimeOverANetwork) {
  if (!test::OwnSshd::there()) GTEST_SKIP() << "There is no sshd here.";
  std::optional<test::Network> network;
  try {
    network.emplace(WARPSIGHT_PACKET_LINE, 25, 100e6, 0);
  } catch (const std::exception& why) {
    GTEST_SKIP() << why.what();
  }
  const test::OwnSshd sshd(folder_ / "sshd", network->place());
  ASSERT_TRUE(sshd.answers());
  std::printf("%s: ", network->made_by());
  see_events_in_time(parse_remote("pipe:exec " + sshd.bin() + "/ssh there 'exec " WARPSIGHT_CLI " serve --folder " + folder_.string() + "'"));
}

// Hours of a run in seconds: what both sides keep does not grow with what was sent.
TEST_F(Watch, ALongRunStaysSmallOnBothSides) {
  const char* wanted = std::getenv("WARPSIGHT_SOAK_S");
  const double seconds = wanted ? std::atof(wanted) : 4;
  test::MadeJob job({folder_.string(), "a"}, 20'000, 200'000);
  RemoteLink link(line(5, 20e6));
  link.ask({{"do", "hello"}});
  const double there_idle = anonymous_mb(child_of(link.status().process));
  RemoteRun run(link, "a", true);
  const int64_t begin = prof::steady_ns();
  int64_t made_ns = 0, seen = 0, late = 0;
  double here_before = 0, there_before = 0;
  const auto take = [&] {
    std::this_thread::sleep_for(milliseconds(10));
    const RemoteUpdate update = run.take();
    for (const StepResult& step : update.run.steps) late += step.step < seen, seen = step.step + 1;
  };
  const int batches = static_cast<int>(seconds * 80);
  for (int i = 0; i < batches; ++i) {
    job.send_until(made_ns += 100'000'000);  // a tenth of a second of the run at a time
    take();
    if (i == batches / 2) here_before = anonymous_mb("self"), there_before = anonymous_mb(child_of(link.status().process));
  }
  while (seen <= job.steps() - 4'000'000 && prof::steady_ns() - begin < test::busy() * seconds * 2e9) take();
  const double here = anonymous_mb("self"), there = anonymous_mb(child_of(link.status().process));
  double disk = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / ".jobs/a")) disk += static_cast<double>(entry.file_size()) * 1e-6;
  std::printf("%.0f s of a run, %lld steps: %.0f MB here (%.0f at half), %.0f MB there (%.0f), %.0f MB beside the run file\n",
              static_cast<double>(made_ns) * 1e-9, static_cast<long long>(job.steps()), here, here_before, there, there_before, disk);
  EXPECT_GT(job.steps(), 3'000'000);
  EXPECT_GT(seen, job.steps() - 4'000'000) << "the view follows";
  EXPECT_EQ(late, 0);
  if (test::kMemoryCounts) {
    EXPECT_LE(here, here_before + 40);
    EXPECT_LE(here, 200);
    EXPECT_LE(there, there_before + 64) << "one batch that is thinned, and one that comes";
    EXPECT_LE(there, there_idle + 64);
  }
  EXPECT_LE(disk, 90);
}

}  // namespace
}  // namespace ws::app

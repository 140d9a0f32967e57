#include "app/core/runs/traced_training.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <map>
#include <set>
#include <thread>

#include "app/core/runs/training_folder.h"
#include "app/core/runs/training_writer.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/recording/native_stacks.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/span_walk.h"
#include "tests/support/own_file.h"
#include "tests/support/sanitizers.h"
#include "tests/support/small_data.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;

RunSpec small_spec() {
  RunSpec spec;
  spec.name = "small";
  spec.exec.device = Device::Cpu;
  spec.model.hidden = {8};
  spec.train.batch = 16;
  spec.train.epochs = 20;
  return spec;
}

class Recording : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { test::remove_folder(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  fs::path folder_ = test::own_file("recording");
  data::Dataset data_ = test::random_data(50, 6, 3, true);  // 4 steps an epoch
};

TEST_F(Recording, TheInboxGetsEverythingOnce) {
  RecorderOptions options;
  options.trace.level = prof::TraceLevel::Full;
  TracedTraining run(small_spec(), options);
  auto result = std::async(std::launch::async, [&] { return run.run(data_); });
  size_t steps = 0, epochs = 0, spans = 0, plans = 0;
  std::optional<Summary> summary;
  while (!summary) {
    RunUpdate update = run.take();
    for (const StepResult& r : update.steps) EXPECT_EQ(r.step, static_cast<int64_t>(steps++));
    epochs += update.epochs.size();
    plans += update.plan.has_value();
    for (const auto& batch : update.traces) spans += batch.span_count();
    summary = update.summary;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(steps, 80u);
  EXPECT_EQ(epochs, 20u);
  EXPECT_EQ(plans, 1u);
  EXPECT_GT(spans, 80u) << "a span a step at the least";
  EXPECT_EQ(summary->steps, result.get().steps);
}

// The data was read for a while, and somebody made a run of the name meanwhile.
TEST_F(Recording, ARunThatCameBeforeTheFirstStepStays) {
  RecorderOptions options;
  options.path = path("a.wsrun");
  for (const bool earlier : {false, true}) {
    options.found = prof::check_run_file(options.path);
    EXPECT_EQ(options.found->identity.known(), earlier);
    fs::remove(options.path);
    prof::RunSummary summary;
    summary.name = earlier ? "second" : "first";
    prof::RunFileWriter(options.path, summary).finish();
    TracedTraining run(small_spec(), options);
    const Summary ended = run.run(data_);
    EXPECT_EQ(ended.status, RunStatus::Failed);
    EXPECT_NE(ended.message.find("another file took this name meanwhile"), std::string::npos) << ended.message;
    EXPECT_EQ(prof::read_run_summary(options.path).name, summary.name);
  }
  options.found = prof::check_run_file(options.path);
  EXPECT_EQ(TracedTraining(small_spec(), options).run(data_).status, RunStatus::Finished);
}

TEST_F(Recording, TheRunFileHoldsLossesTraceAndSummary) {
  RecorderOptions options;
  options.path = path("a.wsrun");
  options.title = "A title";
  options.trace.level = prof::TraceLevel::Full;
  TracedTraining run(small_spec(), options);
  EXPECT_EQ(run.run(data_).status, RunStatus::Finished);
  prof::RunFileReader reader(options.path);
  EXPECT_EQ(reader.summary().name, "A title");
  EXPECT_EQ(reader.summary().status, "finished");
  EXPECT_EQ(reader.summary().steps, 80);
  EXPECT_EQ(parse_spec(reader.summary().spec), small_spec());
  EXPECT_EQ(reader.metrics().size(), 80u);
  EXPECT_EQ(reader.evaluations().size(), 20u);
  prof::Trace trace = reader.trace();
  reader.fill(trace);
  EXPECT_GT(trace.span_count(), 80u);
  for (const prof::StepWindow& w : reader.step_windows()) {
    int64_t sum = 0;
    for (int64_t part : w.times) sum += part;
    EXPECT_EQ(sum, w.end - w.begin);
  }
}

// Ops of each step, by rank.
std::map<uint32_t, std::map<int, size_t>> ops_of_steps(const std::string& file) {
  prof::RunFileReader reader(file);
  prof::Trace trace = reader.trace();
  reader.fill(trace);
  std::map<uint32_t, std::map<int, size_t>> ops;
  for (const prof::Track& track : trace.tracks())
    prof::each_span(track, -prof::kAlways, prof::kAlways, [&](const prof::Span& span) {
      if (span.span_kind() == prof::SpanKind::Op && span.step > 0) ++ops[span.step][track.rank];
    });
  return ops;
}

std::map<int, uint64_t> steps_by_rank(const std::string& file) {
  std::map<int, uint64_t> steps;
  const prof::Trace trace = prof::RunFileReader(file).outline();
  for (const prof::Track& track : trace.tracks())
    if (track.kind == prof::TrackKind::Steps) steps[track.rank] += track.spans;
  return steps;
}

TEST_F(Recording, AWindowOfStepsHoldsWholeStepsOfAllRanks) {
  RunSpec spec = small_spec();
  spec.exec.gpus = 2, spec.train.epochs = 300;
  RecorderOptions options;
  options.path = path("a.wsrun");
  options.trace.level = prof::TraceLevel::Graph;
  options.trace.node_every = 11, options.trace.node_window = 4;
  TracedTraining run(spec, options);
  const Summary summary = run.run(data_);
  ASSERT_EQ(summary.status, RunStatus::Finished) << summary.message;
  EXPECT_EQ(steps_by_rank(options.path), (std::map<int, uint64_t>{{0, summary.steps}, {1, summary.steps}})) << "also outside of windows";
  const auto ops = ops_of_steps(options.path);
  EXPECT_GT(ops.size(), 100u);
  std::set<size_t> counts;
  for (const auto& [step, by_rank] : ops) {
    EXPECT_LT((step - 1) % 11, 4u);
    EXPECT_EQ(by_rank.size(), 2u) << "step " << step - 1;
    for (const auto& [rank, count] : by_rank) counts.insert(count);
  }
  EXPECT_EQ(counts.size(), 1u) << "each step has all of its ops";
}

// The worker thread may begin a run after the window has changed its level.
TEST_F(Recording, ALevelThatIsSetBeforeTheRunBeginsCounts) {
  RecorderOptions options;
  options.path = path("a.wsrun");
  options.trace.level = prof::TraceLevel::Kernels;
  TracedTraining run(small_spec(), options);
  run.set_trace_level(prof::TraceLevel::Steps);
  EXPECT_EQ(run.run(data_).status, RunStatus::Finished);
  EXPECT_EQ(run.trace_status().level, prof::TraceLevel::Steps);
  EXPECT_TRUE(ops_of_steps(options.path).empty());
  for (const RunMessage& message : run.take().messages) EXPECT_THAT(message.text, testing::Not(testing::HasSubstr("already")));
  const prof::Trace trace = prof::RunFileReader(options.path).outline();
  EXPECT_LT(trace.last_time(), int64_t{3600} * 1'000'000'000) << "times count from the begin of the run";
}

// While several ranks train, their threads may be inside of any call: another level begins between two steps.
TEST_F(Recording, AnotherLevelBeginsBetweenTwoStepsOfAllRanks) {
  RunSpec spec = small_spec();
  spec.exec.gpus = 2, spec.train.epochs = 1'000'000;
  RecorderOptions options;
  options.path = path("a.wsrun");
  options.trace.level = prof::TraceLevel::Kernels;
  TracedTraining run(spec, options);
  std::jthread changes([&run] {
    for (int i = 0; i < 60; ++i) {
      run.set_trace_level(i % 2 ? prof::TraceLevel::Kernels : prof::TraceLevel::Steps);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    run.control().stop();
  });
  EXPECT_EQ(run.run(data_).status, RunStatus::Stopped);
  prof::RunFileReader reader(options.path);
  prof::Trace trace = reader.trace();
  reader.fill(trace);
  std::map<uint32_t, std::map<int, size_t>> ops;  // of each step, by rank
  std::set<uint32_t> steps;
  for (const prof::Track& track : trace.tracks())
    prof::each_span(track, -prof::kAlways, prof::kAlways, [&](const prof::Span& span) {
      if (track.kind == prof::TrackKind::Steps) steps.insert(span.step);
      if (span.span_kind() == prof::SpanKind::Op && span.step > 0) ++ops[span.step][track.rank];
    });
  std::set<size_t> counts;
  for (const auto& [step, by_rank] : ops) {
    EXPECT_EQ(by_rank.size(), 2u) << "the work of every rank has its step";
    for (const auto& [rank, count] : by_rank) counts.insert(count);
  }
  EXPECT_EQ(counts.size(), 1u) << "each step has all of its ops";
  EXPECT_LT(ops.size(), steps.size()) << "or none";
  EXPECT_GT(ops.size(), 10u);
}

// What the host did: our own trainer's threads are sampled as in a recorded program.
TEST_F(Recording, LevelFullHasStacksOfTheTrainersThreads) {
  RunSpec spec = small_spec();
  spec.model.hidden = {512};
  spec.train.epochs = 1'000'000;
  size_t left_out = 0;  // threads that the sampler leaves out
  const auto stacks_at = [&](prof::TraceLevel level) {
    RecorderOptions options;
    options.path = path("a.wsrun");
    options.trace.level = level;
    TracedTraining run(spec, options);
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      do {  // on a busy machine they start late
        left_out = 0;
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
          std::string name;
          std::getline(std::ifstream(task.path() / "comm"), name);
          left_out += name == prof::kOwnThread;
        }
      } while (level == prof::TraceLevel::Full && left_out < 3 && std::chrono::steady_clock::now() < latest);
      run.control().stop();
    });
    EXPECT_EQ(run.run(data_).status, RunStatus::Stopped);
    prof::RunFileReader reader(options.path);
    prof::Trace trace = reader.trace();
    reader.fill(trace);
    return prof::host_stacks(trace);
  };
  int64_t all = 0, of_training = 0;
  for (const auto& [stack, ns] : stacks_at(prof::TraceLevel::Full)) {
    all += ns;
    if (std::ranges::any_of(stack, [](const prof::CodeFrame& frame) { return frame.function.find("ws::") != std::string::npos; })) of_training += ns;
    EXPECT_FALSE(stack.at(0).function.starts_with("warpsight rec")) << "the sampler is not the trainer";
  }
  EXPECT_GE(left_out, 3u) << "the sampler, the collector, and what writes the file";
  EXPECT_GT(all, 0);
  EXPECT_GT(of_training, 0);
  EXPECT_TRUE(stacks_at(prof::TraceLevel::Kernels).empty());
}

TEST_F(Recording, AFileThatCannotBeWrittenIsSaidBeforeTraining) {
  RecorderOptions options;
  options.path = path("no/such/folder/a.wsrun");
  TracedTraining run(small_spec(), options);
  const Summary summary = run.run(data_);
  EXPECT_EQ(summary.status, RunStatus::Failed);
  EXPECT_EQ(summary.steps, 0);
  EXPECT_NE(summary.message.find(options.path), std::string::npos) << summary.message;
}

TEST_F(Recording, ARefusedTrainingLeavesTheOlderRunFile) {
  RecorderOptions options;
  options.path = path("a.wsrun");
  EXPECT_EQ(TracedTraining(small_spec(), options).run(data_).status, RunStatus::Finished);
  RunSpec refused = small_spec();
  refused.exec.launch = Launch::Graph;  // the CPU has no graphs
  EXPECT_EQ(TracedTraining(refused, options).run(data_).status, RunStatus::Failed);
  prof::RunFileReader reader(options.path);
  EXPECT_EQ(reader.summary().status, "finished");
  EXPECT_EQ(reader.metrics().size(), 80u);
}

struct Row {
  int64_t step;
  bool tested;
};
std::vector<Row> rows_of(const std::string& csv) {
  std::ifstream in(csv);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "step,epoch,wall_s,train_loss,train_accuracy,test_loss,test_accuracy");
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    EXPECT_EQ(std::ranges::count(line, ','), 6);
    rows.push_back({std::stoll(line), line.back() != ','});
  }
  return rows;
}

TEST_F(Recording, TheFolderHoldsARowAStepAndTheTestsOfEachEpoch) {
  TracedTraining run(small_spec(), {});
  TrainingFolder output(folder_.string(), 4, 0);
  const Summary summary = run.run(data_);
  const RunUpdate update = run.take();
  // In pieces, as they would come while training.
  for (size_t at = 0; at < update.steps.size(); at += 7) {
    const auto last = std::min(at + 7, update.steps.size());
    std::vector<EpochResult> epochs;
    for (const EpochResult& e : update.epochs)
      if (e.step > static_cast<int64_t>(at) && e.step <= static_cast<int64_t>(last)) epochs.push_back(e);
    output.add({update.steps.begin() + static_cast<long>(at), update.steps.begin() + static_cast<long>(last)}, epochs);
  }
  output.finish(summary, run.account());
  const auto rows = rows_of(path("metrics.csv"));
  ASSERT_EQ(rows.size(), 80u);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].step, static_cast<int64_t>(i));
    EXPECT_EQ(rows[i].tested, (i + 1) % 4 == 0) << i;
  }
  std::ifstream in(path("summary.json"));
  const auto kept = nlohmann::json::parse(in);
  for (const char* key : {"status", "steps", "epochs", "final_train_loss", "test_loss", "test_accuracy", "step_time_us",
                          "samples_per_s", "peak_bytes", "spec", "machine"})
    EXPECT_TRUE(kept.contains(key)) << key;
  EXPECT_EQ(kept["status"], "finished");
  // Going on from step 41 keeps what was before it, once there is something to write.
  {
    TrainingFolder again(folder_.string(), 4, 41);
    EXPECT_EQ(rows_of(path("metrics.csv")).size(), 80u);
    again.finish(summary, run.account());
  }
  EXPECT_EQ(rows_of(path("metrics.csv")).size(), 41u);
}

TEST_F(Recording, ARunWithoutAStepLeavesTheEarlierOneAlone) {
  TracedTraining run(small_spec(), {});
  const Summary summary = run.run(data_);
  const RunUpdate update = run.take();
  {
    TrainingFolder output(folder_.string(), 4, 0);
    output.add(update.steps, update.epochs);
    output.finish(summary, run.account());
  }
  Summary refused;
  refused.status = RunStatus::Failed;
  for (const int64_t from : {0, 80}) {
    refused.steps = from;
    TrainingFolder output(folder_.string(), 4, from);
    output.finish(refused, {});
  }
  EXPECT_EQ(rows_of(path("metrics.csv")).size(), 80u);
  std::ifstream in(path("summary.json"));
  EXPECT_EQ(nlohmann::json::parse(in)["status"], "finished");
  {
    TrainingFolder output(path("fresh"), 4, 0);
    output.finish(Summary{}, {});
  }
  EXPECT_FALSE(std::filesystem::exists(path("fresh"))) << "an empty folder is no run";
}

TEST_F(Recording, APipeInTheFolderIsRefusedBeforeTraining) {
  for (const char* name : {"metrics.csv", "summary.json", "checkpoint.wsck"}) {
    ASSERT_EQ(mkfifo(path(name).c_str(), 0600), 0);
    EXPECT_THROW(TrainingFolder(folder_.string(), 4, 0), Failure) << name;
    EXPECT_TRUE(fs::is_fifo(path(name)));
    fs::remove(path(name));
  }
}

TEST(SummaryJson, WritesNullForWhatIsNotANumber) {
  Summary s;
  s.test_accuracy = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(summary_json(s, {})["test_accuracy"].is_null());
}

// What a training hands over within 0.1 s: each step has its mark, twenty spans of work and a loss.
struct MadeStretch {
  static constexpr int kSteps = 500, kWork = 20;
  static constexpr prof::TimeNs kStepNs = 200'000;
  std::vector<StepResult> losses;
  prof::TraceBatch batch;
  explicit MadeStretch(int number) {
    batch.names = {"step", "work"};
    batch.memory_sources = {"arena"};
    batch.tracks = {{prof::TrackKind::Steps, "steps", "CPU", 0, {}}, {prof::TrackKind::CpuThread, "work", "CPU", 0, {}}};
    batch.counters.push_back({"memory used", "B", prof::CounterKind::MemoryUsed, {}});
    for (int64_t step = int64_t{number} * kSteps; step < int64_t{number + 1} * kSteps; ++step) {
      const prof::TimeNs begin = step * kStepNs;
      losses.push_back({.step = step, .loss = 1.0f, .finished_s = static_cast<double>(begin) * 1e-9});
      add(0, begin, kStepNs - 10, prof::SpanKind::Step, step);
      for (int i = 0; i < kWork; ++i) add(1, begin + i * 9000, 8000, prof::SpanKind::Op, step);
    }
    const prof::TimeNs end = batch.tracks[0].spans.back().end();
    batch.counters[0].points.push_back({end, 4096.0 + number % 7});
    batch.memory.push_back({.time = end, .address = 0x1000, .bytes = 4096, .kind = number % 2 ? prof::MemoryAction::Free : prof::MemoryAction::Allocate});
  }

 private:
  void add(size_t track, prof::TimeNs begin, prof::TimeNs length, prof::SpanKind kind, int64_t step) {
    prof::Span span{.start = begin, .duration = static_cast<uint64_t>(length), .kind = static_cast<uint64_t>(kind)};
    span.name = prof::NameId{static_cast<uint32_t>(track)}, span.step = static_cast<uint32_t>(step + 1);
    batch.tracks[track].spans.push_back(span);
  }
};

// The window's side of the same is in soak_test.cpp.
TEST_F(Recording, TheMemoryOfItsWriterComesToRest) {
  if (test::kSanitized) GTEST_SKIP() << "A sanitizer has a heap of its own.";
  constexpr int kStretches = 600, kFlushEvery = 10;  // 6.3 million spans; a quarter of them fills what is kept
  TrainingWriter writer("long", small_spec());
  writer.open(path("long.wsrun"));
  std::array<size_t, 4> held{};  // at the last flush of each quarter
  for (int i = 0; i < kStretches; ++i) {
    MadeStretch made(i);
    writer.add(made.losses, {}, {});
    writer.add(std::move(made.batch));
    if (i % kFlushEvery != kFlushEvery - 1) continue;
    writer.flush();
    const struct mallinfo2 heap = mallinfo2();
    held.at(static_cast<size_t>(i * 4 / kStretches)) = heap.uordblks + heap.hblkhd;
  }
  EXPECT_LT(held[3], (96u << 20)) << "the newest spans";
  EXPECT_LT(held[3], held[2] + (768u << 10)) << "the sums of written blocks take more: " << held[0] << " " << held[1] << " " << held[2];
}

}  // namespace
}  // namespace ws::app

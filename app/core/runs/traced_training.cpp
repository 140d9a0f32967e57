#include "app/core/runs/traced_training.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include "app/core/runs/training_writer.h"
#include "engine/devices/kernel_code.h"
#include "profiling/annotate/nvtx_ranges.h"
#include "profiling/base/clock.h"
#include "profiling/base/repeat.h"
#include "profiling/cupti/gpu_source.h"
#include "profiling/recording/host_sampler.h"

namespace ws::app {

// The training thread and the file thread both append to the inbox, and neither holds its lock while it works. Data for
// the file waits in a second queue, so that the training thread never waits for the disk.
struct TracedTraining::Impl final : TrainSink {
  Impl(RunSpec s, RecorderOptions o, TrainOptions t)
      : spec(std::move(s)), options(std::move(o)), train(std::move(t)), writer(options.title, spec) {}

  // The training is accepted. Before this, a refusal leaves an older run file as it is.
  void started(const RunSpec&, const Model&, const CompiledPlan& plan, const data::Dataset&, Executor&) override {
    writer.keep_kernels(plan.plan);
    if (!options.path.empty()) open_file();
    if (options.at_start) options.at_start();
    file_thread = std::jthread([this](const std::stop_token& ended) {
      pthread_setname_np(pthread_self(), prof::kOwnThread);  // it is not sampled
      repeat_until(ended, [this] { drain(); });
    });
    std::lock_guard lock(mutex);
    inbox.plan = plan;
  }
  void recompiled(const CompiledPlan& plan) override {
    std::lock_guard lock(mutex);
    inbox.plan = unwritten.plan = plan;
  }
  void steps(std::span<const StepResult> results) override {
    std::lock_guard lock(mutex);
    inbox.steps.insert(inbox.steps.end(), results.begin(), results.end());
    unwritten.steps.insert(unwritten.steps.end(), results.begin(), results.end());
  }
  void epoch(const EpochResult& result, Executor& executor) override {
    if (options.at_epoch) options.at_epoch(result, executor);
    std::lock_guard lock(mutex);
    inbox.epochs.push_back(result);
    unwritten.epochs.push_back(result);
  }
  void progress(const Progress& progress) override {
    if (!std::exchange(compiled, true)) remember_compiled(spec);
    std::lock_guard lock(mutex);
    inbox.progress = progress;
    unwritten.progress = progress;
  }
  void changed(const Change& change) override {
    std::lock_guard lock(mutex);
    inbox.changes.push_back(change);
    unwritten.changes.push_back(change);
  }
  void refused(const Change& change, const std::string& why) override {
    say(change.key + " stays " + change.from + ": " + why);
  }

  void say(std::string text, bool problem = false) {
    std::lock_guard lock(mutex);
    inbox.messages.push_back({std::move(text), problem});
  }

  void start_tracing(prof::TraceLevel level) {
    prof::CollectorOptions wanted = options.trace;
    wanted.level = level;
    wanted.gpu = prof::cupti_gpu_source();
    wanted.gpu_is_rank = spec.exec.gpus != 1 && !train.processes;
    if (wanted.origin_ns == 0) wanted.origin_ns = origin_ns;
    trace_origin_ns = wanted.origin_ns;
    if (train.processes) writer.keep_rank(train.processes->self(), wanted.origin_ns);
    auto fresh = std::make_unique<prof::Collector>();
    const prof::OwnThreads unsampled;
    try {
      const prof::CollectorStatus status = fresh->start(wanted);
      std::lock_guard lock(mutex);
      collector = std::move(fresh);
      for (const std::string& said : {status.sentence, status.counters, status.xray})
        if (!said.empty()) inbox.messages.push_back({said});
    } catch (const Failure& problem) {  // training continues without tracing
      say(problem.what());
    }
  }

  // What the host does: the stacks of this process's threads. The window's own thread does not belong to the training.
  void sample_host(bool on) {
    const std::lock_guard lock(sampling);
    if (!on)
      sampler.reset();
    else if (!sampler && trains)
      sampler = std::make_unique<prof::HostSampler>(
          prof::HostSampler::Options{.native = true, .notes = [this] { return &host_notes; }, .left_out = window_thread});
  }
  void host_is_sampled_while(bool training) {
    {
      const std::lock_guard lock(sampling);
      trains = training, window_thread = gettid() == getpid() ? 0 : getpid();
    }
    sample_host(training && options.trace.level == prof::TraceLevel::Full);
  }

  // The threads of ranks call the driver at any moment but between two steps. The driver must not begin or end its
  // records while a thread is inside of a call.
  bool rank_threads_work() {
    const std::lock_guard lock(sampling);
    return trains && spec.exec.gpus != 1 && !train.processes;
  }
  void set_level(prof::TraceLevel level) {
    const std::lock_guard lock(levels);
    if (!begun)
      options.trace.level = level;
    else if (rank_threads_work())
      control.ask([this, level](Executor&) {
        const std::lock_guard between_steps(levels);
        apply_level(level);
      });
    else
      apply_level(level);
  }
  void apply_level(prof::TraceLevel level) {
    if (auto* source = tracer())
      source->set_level(level);
    else if (level != prof::TraceLevel::Off)
      start_tracing(level);
    sample_host(level == prof::TraceLevel::Full);
  }

  void begin() {
    const std::lock_guard lock(levels);
    begun = true;
    origin_ns = prof::steady_ns();
    if (std::string notice = compile_notice(spec); !notice.empty()) say(std::move(notice));
    if (options.trace.level != prof::TraceLevel::Off) start_tracing(options.trace.level);
    host_is_sampled_while(true);
  }

  // Once set, it stays until the end of the run.
  prof::Collector* tracer() const {
    std::lock_guard lock(mutex);
    return collector.get();
  }

  // Moves the collected data to the file and the inbox.
  void drain() {
    write_news();
    if (prof::HostNotes::Taken taken = host_notes.take(); !taken.empty()) {
      prof::RunSummary none;
      keep(host_reader.read(std::move(taken), trace_origin_ns, none).batch);
    }
    prof::Collector* source = tracer();
    if (!source) return;
    for (prof::TraceBatch batch = source->take(); !batch.empty(); batch = source->take()) {
      keep(std::move(batch));
      write_news();  // batches may arrive as fast as they are written
    }
  }

  void keep(prof::TraceBatch batch) {
    record([&] { writer.add(options.keep_traces ? prof::TraceBatch(batch) : std::move(batch)); });
    if (!options.keep_traces) return;
    std::lock_guard lock(mutex);
    inbox.traces.push_back(std::move(batch));
  }

  void write_news() {
    RunUpdate news;
    {
      std::lock_guard lock(mutex);
      std::swap(news, unwritten);
    }
    record([&] {
      if (news.plan) writer.keep_kernels(news.plan->plan);
      if (news.progress) writer.progress(*news.progress);
      writer.add(news.steps, news.epochs, news.changes);
      writer.flush_if_due();
    });
  }

  // If the run file cannot be written, only the recording ends. The run and its figures continue.
  template <class Work>
  void record(const Work& work) {
    try {
      work();
    } catch (const std::exception& problem) {
      writer.close();
      if (dynamic_cast<const prof::RunFileMoved*>(&problem)) file_moved = true;
      file_problem = problem.what();
      if (!file_problem.starts_with(options.path)) file_problem = options.path + ": " + file_problem;
      say("Training goes on, but its run file is no longer written: " + file_problem, true);
    }
  }

  void open_file() {
    try {
      writer.open(options.path, options.found);
    } catch (const std::exception& problem) {
      if (!options.may_go_unkept) throw;
      file_problem = problem.what();
      say("Training goes on, but the run is not kept: " + file_problem, true);
    }
  }

  RunSpec spec;
  RecorderOptions options;
  TrainOptions train;
  TrainControl control;
  std::mutex levels;  // guards the trace level, which any thread may set, also before the run begins
  bool begun = false;
  bool compiled = false;  // the first progress came; used by the training's thread
  int64_t origin_ns = 0;
  mutable std::mutex mutex;  // guards the inbox and the collector's pointer
  RunUpdate inbox, unwritten;
  std::unique_ptr<prof::Collector> collector;
  std::atomic<int64_t> trace_origin_ns{0};
  prof::HostNotes host_notes;
  prof::NotesReader host_reader;  // used by the file thread
  std::mutex sampling;  // guards these
  bool trains = false;
  pid_t window_thread = 0;
  std::unique_ptr<prof::HostSampler> sampler;
  TrainingWriter writer;  // once the run has begun, only the file thread uses it
  std::string file_problem;
  std::atomic<bool> file_moved = false;
  std::jthread file_thread;
};

TracedTraining::TracedTraining(RunSpec spec, RecorderOptions options, TrainOptions train)
    : impl_(std::make_unique<Impl>(std::move(spec), std::move(options), std::move(train))) {}
TracedTraining::~TracedTraining() = default;

TrainControl& TracedTraining::control() { return impl_->control; }

Summary TracedTraining::run(const data::Dataset& data) {
  Impl& run = *impl_;
  const prof::nvtx::Names names;
  run.begin();
  if (!data.note.empty()) {
    std::lock_guard lock(run.mutex);
    run.inbox.messages.push_back({data.note, false});
  }
  Summary summary = ws::train(run.spec, data, run.control, run, run.train);
  run.host_is_sampled_while(false);
  run.file_thread = {};  // stops and joins it
  if (auto* tracer = run.tracer()) tracer->stop();
  run.drain();
  run.record([&] { run.writer.finish(summary, trace_status()); });
  if (!run.file_problem.empty() && !run.options.may_go_unkept && summary.status != RunStatus::Failed) {
    summary.status = RunStatus::Failed;
    summary.message = run.file_problem;
  }
  std::lock_guard lock(run.mutex);
  run.inbox.summary = summary;
  run.inbox.account = run.writer.summary();
  return summary;
}

RunUpdate TracedTraining::take() {
  RunUpdate out;
  std::lock_guard lock(impl_->mutex);
  std::swap(out, impl_->inbox);
  out.file_moved = impl_->file_moved;
  return out;
}

void TracedTraining::set_trace_level(prof::TraceLevel level) { impl_->set_level(level); }

prof::CollectorStatus TracedTraining::trace_status() const {
  auto* tracer = impl_->tracer();
  return tracer ? tracer->status() : prof::CollectorStatus{};
}

const prof::RunSummary& TracedTraining::account() const { return impl_->writer.summary(); }
const std::string& TracedTraining::file_problem() const { return impl_->file_problem; }
bool TracedTraining::file_moved() const { return impl_->file_moved; }

}  // namespace ws::app

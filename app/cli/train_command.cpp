#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/progress_line.h"
#include "app/cli/remote_watch.h"
#include "app/core/remote/curves.h"
#include "app/core/remote/job_request.h"
#include "app/core/runs/data_shape.h"
#include "app/core/runs/training_folder.h"
#include "engine/train/checkpoint.h"
#include "profiling/base/launched_rank.h"
#include "profiling/base/paths.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/recording/process_files.h"
#include "profiling/run_file/run_file.h"

namespace ws::cli {
namespace {

struct TrainArguments {
  SpecArguments spec;
  RemoteArguments remote;
  std::string out, run_file, title, trace = "off";
  std::string window, xray;  // "20/2000"
  bool resume = false, json = false, no_output = false, counters = false;
};

std::string default_folder(const RunSpec& spec) {
  char stamp[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", std::localtime(&now));
  return "out/" + (spec.name.empty() ? std::string("run") : file_name_of(spec.name)) + "-" + stamp;
}

// What to train and from where: the arguments, and the checkpoint to resume from.
struct Job {
  RunSpec spec;
  std::string folder;        // empty: keep nothing
  bool new_folder = false;   // the name was not given: it must not be the folder of another run
  int64_t steps_done = 0;
  TrainOptions options;
  bool file_kept = false;  // set once it has trained: the run file is whole, and still the one that it wrote
};

Job resumed_job(const TrainArguments& a) {
  if (a.out.empty()) throw UsageError("--resume needs --out FOLDER: the folder of the run to continue");
  Job job;
  job.folder = a.out;
  job.options.resume_from = app::TrainingFolder::checkpoint_path(a.out);
  const Checkpoint checkpoint = load_checkpoint(job.options.resume_from);
  job.spec = checkpoint.spec;
  job.steps_done = checkpoint.state.step;
  if (!a.spec.source.empty())
    if (const RunSpec named = a.spec.asked(); named.data.name != job.spec.data.name)
      throw UsageError("--resume: " + a.out + " holds a training of " + job.spec.data.name + ", not of " + named.data.name);
  a.spec.override_in(job.spec);
  job.spec = fit(std::move(job.spec));
  return job;
}

Job new_job(const TrainArguments& a) {
  if (a.spec.source.empty())
    throw UsageError("name a preset or a JSON file; presets are listed by: warpsight list presets");
  Job job;
  job.spec = a.spec.spec();
  if (a.no_output) return job;
  job.new_folder = a.out.empty();
  job.folder = job.new_folder ? default_folder(job.spec) : a.out;
  return job;
}

int64_t steps_per_epoch(const RunSpec& spec, const data::Dataset& data) {
  const int64_t batch = spec.train.batch == 0 ? data.train.rows : spec.train.batch;
  return (data.train.rows + batch - 1) / std::max<int64_t>(1, batch);
}

// Shows what happens. Only rank 0 has progress; other ranks report what they lose.
void show(const app::RunUpdate& update, const RankProcesses* ranks, ProgressLine& line) {
  if (!ranks || ranks->rank() == 0) return line.show(update);
  for (const app::RunMessage& message : update.messages)
    if (message.problem) line.say("rank " + std::to_string(ranks->rank()) + ": " + message.text);
}

// Trains on another thread. This thread shows and stores the results.
Summary follow(app::TracedTraining& run, const data::Dataset& data, app::TrainingFolder* output,
               const RankProcesses* ranks, ProgressLine& line) {
  auto result = std::async(std::launch::async, [&] { return run.run(data); });
  catch_interrupts();
  bool over = false;
  while (!over) {
    over = result.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready;
    if (interrupted()) run.control().stop();
    const app::RunUpdate update = run.take();
    show(update, ranks, line);
    try {
      if (output) output->add(update.steps, update.epochs);
    } catch (...) {
      run.control().stop();  // otherwise it would train to its end before the error is shown
      throw;
    }
  }
  line.clear();
  return result.get();
}

// "20/2000": trace every kernel in 20 of 2,000 steps.
void set_window(prof::CollectorOptions& trace, const TrainArguments& a) {
  if (a.window.empty()) return;
  int read = 0;
  long long window = 0, every = 0;
  const int numbers = std::sscanf(a.window.c_str(), "%lld/%lld%n", &window, &every, &read);
  if (numbers != 2 || static_cast<size_t>(read) != a.window.size() || window < 1 || every <= window)
    throw UsageError("--trace-window: expected N/M with N below M, such as 20/2000, not " + a.window);
  if (a.trace != "off" && a.trace != "graph")
    throw UsageError("--trace-window: needs --trace graph; level " + a.trace + " traces every step alike");
  trace.level = prof::TraceLevel::Graph;
  trace.node_window = window, trace.node_every = every;
}

// "20/2000": sample the instructions of 20 of 2,000 steps. Their kernels need names, so they are traced in between.
void set_xray(prof::CollectorOptions& trace, const TrainArguments& a) {
  if (a.xray.empty()) return;
  try {
    trace.xray = prof::xray_steps(a.xray);
  } catch (const Failure& failure) {
    throw UsageError(std::string("--xray: ") + failure.what());
  }
  if (a.trace == "off" && a.window.empty()) trace.level = prof::TraceLevel::Kernels;
}

constexpr double kLongPreparation = 0.1;  // seconds; a longer preparation is reported

std::string conclusion(const Summary& s, const prof::RunSummary& account, const std::string& folder) {
  const double us = account.step_time.us.value;
  const std::string status(to_string(s.status));
  std::string text = formatted("{}: {} steps in {} (", status, count_text(s.steps), duration_text(s.wall_s));
  if (us > 0)
    text += formatted("median step {}, {} samples/s, ", time_text(us), count_text(app::rows_of_a_step(s.spec) * 1e6 / us));
  text += "on " + s.device + ")";
  if (s.prepare_s > kLongPreparation)
    text += "\nprepared in " + duration_text(s.prepare_s) + ", to compile and try kernels; not part of the time above";
  if (std::isfinite(s.test_accuracy)) text += "\ntest accuracy " + percent(s.test_accuracy);
  if (!folder.empty()) text += "\nkept in " + folder;
  return text;
}

std::string counters_said(const app::TracedTraining& run) {
  const std::string said = run.trace_status().counters;
  return said.empty() ? "No hardware counters: tracing is off; choose --trace steps or more." : said;
}

int say_end(const TrainArguments& a, const Summary& summary, const prof::RunSummary& account, const std::string& text,
            ProgressLine& line) {
  if (summary.status == RunStatus::Failed)
    std::fprintf(stderr, "warpsight: %s\n", printable(summary.message).c_str());
  else
    line.say(text);
  if (a.json) std::printf("%s\n", versioned(app::summary_json(summary, account)).dump().c_str());
  return summary.status == RunStatus::Failed ? kFailed : kDone;
}

nlohmann::json job_there(const TrainArguments& a, const RunSpec& spec) {
  prof::CollectorOptions trace;
  trace.level = trace_level(a.trace);
  trace.hardware_counters = a.counters;
  set_window(trace, a);
  set_xray(trace, a);
  return app::train_request(spec, a.title.empty() ? spec.name : a.title, trace);
}

// The local folder of a remote training. The first update creates it, because it has the length of an epoch. If a
// slow line thins the losses, they are taken from the run file at the end.
class FolderOfRemote {
 public:
  explicit FolderOfRemote(std::string folder) : folder_(std::move(folder)) {}
  const std::string& path() const { return folder_; }
  void add(const app::RunUpdate& update) {
    if (folder_.empty()) return;
    if (update.progress) progress_ = *update.progress;
    if (!output_ && update.progress) {
      make();
      output_->begin();
    }
    steps_.insert(steps_.end(), update.steps.begin(), update.steps.end());
    epochs_.insert(epochs_.end(), update.epochs.begin(), update.epochs.end());
    if (!output_) return;
    output_->add(std::exchange(steps_, {}), std::exchange(epochs_, {}));
  }
  void finish(const Summary& summary, const prof::RunSummary& account) {
    if (output_) output_->finish(summary, account);
  }
  void fill_from(const std::string& run_file, const Summary& summary, const prof::RunSummary& account) {
    prof::RunFileReader file(run_file);
    std::vector<StepResult> steps;
    std::vector<EpochResult> epochs;
    for (const prof::Metric& m : file.metrics()) steps.push_back(app::step_of(m));
    for (const prof::Evaluation& e : file.evaluations()) epochs.push_back(app::test_of(e));
    output_.reset();
    make();
    output_->add(steps, epochs);
    output_->finish(summary, account);
  }

 private:
  void make() {
    const int64_t epoch = progress_.epochs > 0 ? progress_.steps / progress_.epochs : 1;
    output_ = std::make_unique<app::TrainingFolder>(folder_, epoch, 0);
  }
  std::string folder_;
  Progress progress_;
  std::unique_ptr<app::TrainingFolder> output_;
  std::vector<StepResult> steps_;  // steps that came before the folder existed
  std::vector<EpochResult> epochs_;
};

// Fetches the run file of a remote training, byte for byte, and its checkpoint. Returns the path of the run file.
std::string fetch_files(const TrainArguments& a, app::RemoteRun& run, const std::string& folder, ProgressLine& line) {
  const std::string name = run.name() + ".wsrun";
  const std::string path = !a.run_file.empty() ? a.run_file : folder.empty() ? "" : folder + "/" + name;
  if (path.empty()) return path;
  fetch(run, {{"file", name}}, path, line, a.remote.found);
  if (!folder.empty())
    fetch(run, {{"run", run.name()}, {"file", "checkpoint.wsck"}}, app::TrainingFolder::checkpoint_path(folder), line);
  return path;
}

// Shows a training on another machine until it ends or is left, and copies its files here.
int watch_training(const TrainArguments& a, app::RemoteRun& run, const std::string& folder_path, ProgressLine& line) {
  const std::string place = run.link().address().place();
  FolderOfRemote folder(folder_path);
  const RemoteOutcome end = watch(
      run, line,
      {.at_interrupt = a.remote.at_interrupt, .each = [&](const app::RemoteUpdate& news) { folder.add(news.run); }});
  if (end.left) return kDone;
  if (end.summary && end.summary->status == RunStatus::Failed) throw Failure(place + ": " + end.summary->message);
  if (!end.summary && !a.run_file.empty()) fetch(run, {{"file", run.name() + ".wsrun"}}, a.run_file, line, a.remote.found);
  if (!end.summary)
    throw Failure("The training there was killed. The written part is kept there.");
  folder.finish(*end.summary, end.account);
  const std::string run_file = end.files.empty() ? "" : fetch_files(a, run, folder.path(), line);
  if (run.thinned() && !run_file.empty() && !folder.path().empty())
    folder.fill_from(run_file, *end.summary, end.account);
  return say_end(a, *end.summary, end.account, conclusion(*end.summary, end.account, folder.path()), line);
}

int train_there(TrainArguments& a) {
  if (a.resume) throw UsageError("--resume continues a training on this machine; leave out --on");
  if (a.spec.source.empty()) throw UsageError("name a preset or a JSON file; presets are listed by: warpsight list presets");
  const RunSpec spec = a.spec.asked();
  const nlohmann::json job = job_there(a, spec);
  app::RemoteLink link(a.remote.address(a.run_file));
  const std::string name = app::RemoteRun::new_name(spec.name);
  app::RemoteRun::start(link, name, job);
  app::RemoteRun run(link, name, false);
  ProgressLine line(a.json ? stderr : stdout);
  line.say("trains on " + link.address().place() + " as " + name);
  const std::string folder =
      a.no_output ? "" : app::TrainingFolder::make_new(a.out.empty() ? default_folder(spec) : a.out);
  return watch_training(a, run, folder, line);
}

// The run file that another rank than rank 0 writes until the files are joined: "a.rank1.wsrun".
std::string file_of_rank(const std::string& run_file, int rank) {
  return std::filesystem::path(run_file).replace_extension().string() + ".rank" + std::to_string(rank) + ".wsrun";
}

bool traces(const TrainArguments& a) { return !a.run_file.empty() && (a.trace != "off" || !a.window.empty() || !a.xray.empty()); }

// Joins the traces of all ranks into the run file of rank 0.
void join_traces(const std::string& run_file, int ranks) {
  std::vector<std::string> files{run_file};
  for (int rank = 1; rank < ranks; ++rank) {
    const std::string file = file_of_rank(run_file, rank);
    if (std::filesystem::exists(file))
      files.push_back(file);
    else
      std::fprintf(
          stderr,
          "The trace of rank %d is not here. If its host has %s, join it: warpsight convert FILES… joined.wsrun\n",
          rank, printable(file).c_str());
  }
  if (files.size() < 2) return;
  if (prof::ranks_of_one_program(files)) return prof::fold_processes(files);
  std::fprintf(stderr, "The traces of the ranks stay apart: not all of these files are of this training.\n");
}

// The ranks that a launcher started compare what they were asked to do: all choices, or the changes of a resumed run.
std::string choices_of(const TrainArguments& a) {
  if (!a.resume) return spec_text(a.spec.asked());
  std::string text = "--resume";
  for (const std::string& change : a.spec.overrides) text += " --set " + change;
  return text;
}

void refuse_gpus_beside_launcher(const TrainArguments& a, const Job& job, int ranks) {
  const bool asked = std::ranges::any_of(a.spec.overrides, [](const auto& o) { return o.starts_with("exec.gpus="); });
  if (asked || (!a.resume && job.spec.exec.gpus != 1))
    throw Failure("A launcher has started " + std::to_string(ranks) +
                  " ranks, one process each: leave exec.gpus out, which is for ranks of one process.");
}

Job job_here(const TrainArguments& a, bool leads) {
  if (leads) return a.resume ? resumed_job(a) : new_job(a);
  Job job;  // rank 0 sends what to train
  if (!a.resume) job.spec = a.spec.asked();
  return job;
}

// True if the folder has the checkpoint of a training with the same choices.
bool was_asked_before(const TrainArguments& a) {
  try {
    RunSpec before = load_checkpoint(app::TrainingFolder::checkpoint_path(a.out)).spec, now = a.spec.spec();
    before.exec.gpus = now.exec.gpus;  // one for each process
    return before == now;
  } catch (const Failure&) {  // there is none
    return false;
  }
}

// torchrun starts all ranks anew if one of them fails. Then the training goes on, and its first run file stays.
void go_on_after_restart(TrainArguments& a, const LaunchedRank& self) {
  if (!a.run_file.empty())
    a.run_file = std::filesystem::path(a.run_file).replace_extension().string() + ".restart" + std::to_string(self.restart) + ".wsrun";
  if (self.rank != 0 || a.resume || a.no_output || a.out.empty() || !was_asked_before(a)) return;
  a.resume = true;
  std::fprintf(stderr, "The launcher has started all ranks anew. The training in %s goes on.\n", printable(a.out).c_str());
}

// The run file of the first part stays. The times of both parts have different origins, so they are two runs.
void keep_first_part(TrainArguments& a) {
  const std::filesystem::path first = a.run_file;
  for (int part = 2; std::filesystem::exists(a.run_file); ++part)
    a.run_file = std::filesystem::path(first).replace_extension().string() + ".part" + std::to_string(part) + ".wsrun";
  if (a.run_file != first)
    std::fprintf(stderr, "%s keeps the first part. This part is written into %s.\n", printable(first.string()).c_str(), printable(a.run_file).c_str());
}

// Meets the other ranks if a launcher started this process as one of several. `choices`: see choices_of.
std::unique_ptr<RankProcesses> meet_ranks(const TrainArguments& a, const LaunchedRank& self, const std::string& choices, Job& job) {
  if (self.rank < 0) return nullptr;
  refuse_gpus_beside_launcher(a, job, self.ranks);
  job.spec.exec.gpus = self.ranks;
  std::error_code none;
  if (self.rank == 0 && !a.run_file.empty())
    for (int rank = 1; rank < self.ranks; ++rank) std::filesystem::remove(file_of_rank(a.run_file, rank), none);
  auto ranks = std::make_unique<RankProcesses>(self, choices, job.spec);
  job.spec = ranks->spec();
  return ranks;
}

app::RecorderOptions recorder_options(const TrainArguments& a, const RankProcesses* ranks) {
  const bool leads = !ranks || ranks->rank() == 0;
  app::RecorderOptions record;
  record.title = a.title;
  record.trace.level = trace_level(a.trace);
  record.trace.hardware_counters = a.counters;
  set_window(record.trace, a);
  set_xray(record.trace, a);
  if (leads && a.run_file.empty() && record.trace.level != prof::TraceLevel::Off)
    std::fprintf(stderr, "The trace is not kept: name a run file with --run FILE.\n");
  record.path = leads ? a.run_file : traces(a) ? file_of_rank(a.run_file, ranks->rank()) : "";
  if (!record.path.empty()) check_run_name(record.path), record.found = prof::check_run_file(record.path);
  // To measure the cost of tracing. The transfers of processes are matched one by one, so none may be missing.
  record.trace.untraced_share = ranks ? 0 : 0.03;
  record.keep_traces = false;
  return record;
}

// The window's page Weights finds them beside the run file.
void keep_weights(const std::string& run_file, const std::string& checkpoint) {
  constexpr uintmax_t kMostBytes = 64u << 20;
  std::error_code problem;
  if (const uintmax_t bytes = std::filesystem::file_size(checkpoint, problem); problem || bytes > kMostBytes) return;
  std::filesystem::copy_file(checkpoint, run_file + ".wsck", std::filesystem::copy_options::overwrite_existing, problem);
  if (problem) std::fprintf(stderr, "The weights are not kept beside %s: %s\n", printable(run_file).c_str(), problem.message().c_str());
}

int train_here(const TrainArguments& a, Job& job, RankProcesses* ranks) {
  const bool leads = !ranks || ranks->rank() == 0;
  app::RecorderOptions record = recorder_options(a, ranks);  // reports wrong options before the data is read
  const data::Dataset data = data::load(job.spec.data);
  job.options.processes = ranks;
  std::unique_ptr<app::TrainingFolder> output;
  if (job.new_folder) job.folder = app::TrainingFolder::make_new(job.folder);
  if (!job.folder.empty()) job.options.checkpoint = app::TrainingFolder::checkpoint_path(job.folder);
  if (!job.folder.empty())
    output = std::make_unique<app::TrainingFolder>(job.folder, steps_per_epoch(job.spec, data), job.steps_done);
  const bool replaces = output && !a.resume && std::filesystem::exists(job.options.checkpoint);
  if (output)
    record.at_start = [&output, &job, replaces] {
      if (replaces) std::fprintf(stderr, "The earlier training in %s is replaced; --resume would continue it.\n", job.folder.c_str());
      output->begin();
    };
  app::TracedTraining run(job.spec, record, job.options);
  ProgressLine line(a.json ? stderr : stdout);
  const Summary summary = follow(run, data, output.get(), ranks, line);
  if (output) output->finish(summary, run.account());
  job.file_kept = !record.path.empty() && run.file_problem().empty();
  if (leads && output && job.file_kept) keep_weights(record.path, job.options.checkpoint);
  if (!leads && summary.status == RunStatus::Failed) throw Failure(summary.message);
  if (!leads) return kDone;
  if (a.counters) std::fprintf(stderr, "%s\n", counters_said(run).c_str());
  if (!a.xray.empty()) std::fprintf(stderr, "%s\n", run.trace_status().xray.c_str());
  const std::string text =
      a.resume && summary.steps <= job.steps_done
          ? "nothing to train: all " + count_text(job.steps_done) +
                " steps are done. For more, use --set train.epochs=…"
          : conclusion(summary, run.account(), summary.steps > job.steps_done ? job.folder : "");
  return say_end(a, summary, run.account(), text, line);
}

int train(TrainArguments a) {
  const LaunchedRank self = launched_rank();
  if (const std::string wrong = incomplete_rank(); self.rank < 0 && !wrong.empty())
    std::fprintf(stderr, "This process trains alone: a launcher sets a rank and the number of ranks, but %s.\n", printable(wrong).c_str());
  if (!a.remote.on.empty() && self.rank >= 0)
    throw UsageError("--on trains on one other machine; leave out torchrun, mpirun or srun");
  if (!a.remote.on.empty()) return train_there(a);
  const std::string choices = self.rank < 0 ? "" : choices_of(a);
  if (self.restart > 0) go_on_after_restart(a, self);
  if (a.resume && self.rank < 0 && !a.run_file.empty()) check_run_name(a.run_file), keep_first_part(a);
  Job job = job_here(a, self.rank <= 0);
  const auto ranks = meet_ranks(a, self, choices, job);
  try {
    const int code = train_here(a, job, ranks.get());
    if (ranks && self.rank == 0) ranks->wait_for_others();
    if (job.file_kept && ranks && self.rank == 0 && traces(a)) join_traces(a.run_file, self.ranks);
    return code;
  } catch (const std::exception& problem) {
    if (ranks) ranks->abandon("Rank " + std::to_string(self.rank) + ": " + problem.what());
    throw;
  }
}

}  // namespace

int attach_training(const AttachedJob& job) {
  TrainArguments a;
  a.run_file = job.run_file, a.remote = job.remote;
  ProgressLine line(stdout);
  return watch_training(a, job.run, "", line);
}

Run add_train(CLI::App& program) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App& command =
      *program.add_subcommand("train", "train a network; Ctrl+C stops cleanly and keeps what was trained");
  arguments->spec.add_to(command, false);
  arguments->remote.add_to(command);
  command
      .add_option("--out", arguments->out,
                  "write metrics.csv, summary.json and the checkpoint here (default: out/NAME-TIME)")
      ->type_name("FOLDER");
  command.add_option("--kernel", arguments->spec.kernels, "run your own kernel for an op, for example \"bias+relu fc1=my.cu\"; can be repeated")
      ->type_name("OP=FILE")
      ->allow_extra_args(false);
  command.add_flag("--no-output", arguments->no_output, "write no files");
  command.add_flag("--resume", arguments->resume, "continue from the checkpoint in --out");
  command.add_flag("--json", arguments->json, "print the summary as the last line");
  command.add_option("--trace", arguments->trace, "how much is traced: off, steps, graph, kernels, full (also calls and CPU stacks)")
      ->type_name("LEVEL")
      ->capture_default_str();
  command
      .add_option("--trace-window", arguments->window,
                  "trace every kernel in N of every M steps, for long runs at little cost (level graph)")
      ->type_name("N/M");
  command
      .add_option("--xray", arguments->xray,
                  "sample where kernels wait and for what in N steps, in N of every M, or in N each time: 20/30s. From step 20 on; kernel records "
                  "pause meanwhile")
      ->type_name("N[/M]");
  command.add_flag("--counters", arguments->counters,
                   "also sample hardware counters: busy multiprocessors, tensor pipe, DRAM");
  command.add_option("--run", arguments->run_file, "write a run file (.wsrun) that the window can open")
      ->type_name("FILE");
  command.add_option("--title", arguments->title, "name of the run, instead of what differs from its preset")->type_name("TEXT");
  command.footer(
      "Examples:\n  warpsight train mnist\n  warpsight train mnist --set exec.allocator=caching --run a.wsrun "
      "--trace full\n  torchrun --nproc_per_node 2 --no-python warpsight train mnist\n\n"
      "Ranks: started by torchrun, mpirun or srun, each process is one rank, on one GPU or on the\n"
      "CPU. They meet at MASTER_ADDR, port MASTER_PORT + 1 (default 29501). Without MASTER_ADDR, all\n"
      "must be on one host. A rank that is silent for 20 s ends the training; WARPSIGHT_RANK_TIMEOUT\n"
      "sets the seconds. If torchrun starts all ranks anew, a training with --out goes on from its\n"
      "checkpoint.");
  return [arguments] { return train(*arguments); };
}

}  // namespace ws::cli

#include "app/workspace/program_recording.h"

#include <QDir>
#include <QFileInfo>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "app/core/remote/fetch_file.h"
#include "app/core/remote/job_request.h"
#include "app/core/runs/run_ceilings.h"
#include "profiling/recording/command_words.h"
#include "profiling/recording/process_files.h"

namespace ws::app {
namespace {

constexpr size_t kMostOutput = 4u << 20;
constexpr const char* kUnfinished = ".recording";  // a folder that the library ignores

}  // namespace

ProgramRecording::ProgramRecording(const QString& folder, QObject* parent) : QObject(parent), folder_(folder) {
  timer_.setObjectName("poll");
  timer_.setParent(this);
  timer_.setInterval(33);
  connect(&timer_, &QTimer::timeout, this, &ProgramRecording::poll);
}

ProgramRecording::~ProgramRecording() = default;

Run* ProgramRecording::start(const QStringList& command, const prof::RecordOptions& options) {
  if (busy()) {
    emit failed(tr("Stop the recording first (Run › Stop)."));
    return nullptr;
  }
  if (command.isEmpty()) return nullptr;
  std::vector<std::string> words;
  for (const QString& word : command) words.push_back(word.toStdString());
  const QString name = QString::fromStdString(prof::name_of_command(words));
  options_ = options;
  try {
    if (machine_) {
      const std::string id = RemoteRun::new_name(name.toStdString());
      there_ = std::make_unique<RemoteRecording>(machine_, id, record_request(words, options));
      return began(begin(QString::fromStdString(id), name, {}), command, QString::fromStdString(options.folder));
    }
    QDir(folder_).mkpath(kUnfinished);
    const QString path = QFileInfo(folder_).absoluteFilePath() + "/" + kUnfinished + "/" +
                         QDateTime::currentDateTime().toString("yyyyMMdd-HHmmss-") + name + ".wsrun";
    output_path_ = path + ".log";
    prof::RecordOptions here = options;
    here.output = output_path_.toStdString(), here.prompt_output = true;
    program_ = std::make_unique<prof::RecordedProgram>(words, path.toStdString(), here);
    printed_.open(here.output, std::ios::binary);
    output_ = ShownOutput(ShortLog(kMostOutput, "are not shown"));
    return began(begin(QFileInfo(path).completeBaseName(), name, path), command,
                 options.folder.empty() ? QDir::currentPath() : QString::fromStdString(options.folder));
  } catch (const std::exception& problem) {
    if (!machine_) QFile::remove(output_path_);
    emit failed(QString::fromUtf8(problem.what()));
    return nullptr;
  }
}

// Also on another machine the run says from its begin what is recorded.
Run* ProgramRecording::began(Run* run, const QStringList& command, const QString& folder) {
  run->command = command, run->record_folder = folder, run->record_level = prof::to_string(options_.python);
  return run;
}

Run* ProgramRecording::attach(const RemoteJobInfo& job) {
  if (busy() || !machine_) return nullptr;
  options_ = {};
  there_ = std::make_unique<RemoteRecording>(machine_, job.name.toStdString(), nlohmann::json());
  return begin(job.name, job.title, {});
}

Run* ProgramRecording::begin(const QString& id, const QString& title, const QString& path) {
  stopped_ = false;
  failure_.clear();
  run_ = new Run(this);
  run_->id = id, run_->title = title, run_->path = path;
  run_->created = QDateTime::currentDateTime(), run_->origin = RunOrigin::Imported, run_->recording = true;
  if (there_) run_->device = machine_->device() + tr(" on %1").arg(machine_->place());
  timer_.start();
  emit started(run_);
  return run_;
}

void ProgramRecording::stop() {
  stopped_ = true;
  if (program_) program_->interrupt();
  if (there_) there_->stop();
}

void ProgramRecording::detach() {
  if (!there_) return;
  timer_.stop();
  fetching_.drop();
  unfetched_.clear();
  there_.reset();
  if (run_) run_->recording = false, run_->unfinished = true, run_->summary.emplace().status = RunStatus::Stopped;
  emit ended(run_.data(), {});
  run_.clear();
}

std::string ProgramRecording::printed() {
  constexpr std::streamsize kMost = 64 << 10;
  std::string text(kMost, '\0');
  printed_.clear();  // the program may have added to what was the end
  printed_.read(text.data(), kMost);
  text.resize(static_cast<size_t>(printed_.gcount()));
  return text;
}

void ProgramRecording::drain(bool over) {
  RunUpdate update = take_update(*program_);
  std::string text = printed();
  for (; over && !text.empty(); text = printed()) output_.add(text, false, update.messages);
  output_.add(text, over, update.messages);
  const bool any_news = !update.traces.empty() || !update.steps.empty() || !update.epochs.empty() || !update.messages.empty();
  if (run_ && any_news) run_->apply(std::move(update));
}

void ProgramRecording::poll() {
  if (there_) return pollThere();
  drain(false);
  const std::optional<int> status = program_->wait(0);
  if (!status) return;
  timer_.stop();
  drain(true);
  printed_.close();
  QFile::remove(output_path_);
  const QString problem = QString::fromStdString(program_->status().problem);
  const QString path = keep();
  program_.reset();
  finish(path, *status, problem, output_.lastLine());
}

void ProgramRecording::pollThere() {
  const bool over = there_->over();
  RunUpdate update = there_->take();
  if (run_) run_->apply(std::move(update));
  if (!over) return;
  timer_.stop();
  first_.clear();
  problem_ = QString::fromStdString(there_->failure().empty() ? there_->status().problem : there_->failure());
  unfetched_ = there_->files();
  std::ranges::reverse(unfetched_);
  fetchNext();
}

void ProgramRecording::fetchNext() {
  if (unfetched_.empty()) {
    const int status = there_->exitStatus();
    const QString last_line = there_->lastLine();
    there_.reset();
    return finish(first_, status, problem_, last_line);
  }
  const std::string file = unfetched_.back();
  unfetched_.pop_back();
  const QString path = path_for_copy(folder_, file);
  QDir().mkpath(folder_);
  fetching_.start(
      [machine = there_->machine(), file, path](const Job::Side& side) {
        fetch_file(machine->link(), {{"file", file}}, path.toStdString(),
                   [&side](uint64_t) { return !side.cancelled()->load(); });
      },
      [this, path](const QString& problem) {
        if (!problem.isEmpty()) problem_ = tr("The recording stays on the other machine: %1").arg(problem);
        else if (first_.isEmpty()) first_ = path;
        fetchNext();
      });
}

QString ProgramRecording::endText(int status, const QString& last_line) const {
  const QString name = run_ ? run_->title : tr("The program");
  if (status < 0) return tr("%1 was killed.").arg(name);
  const bool by_signal = status > 128 && sigabbrev_np(status - 128);
  const QString end = by_signal ? tr("%1 was ended by signal %2 (%3)").arg(name).arg(status - 128).arg(strsignal(status - 128))
                                : tr("%1 ended with status %2").arg(name).arg(status);
  return last_line.isEmpty() ? end + "." : end + ": " + last_line;
}

void ProgramRecording::finish(const QString& path, int status, const QString& problem, const QString& last_line) {
  if (status != 0 && !stopped_) failure_ = endText(status, last_line);
  if (run_) {
    run_->recording = false;
    run_->summary.emplace().status = path.isEmpty() ? RunStatus::Failed : RunStatus::Finished;
  }
  if (!problem.isEmpty())
    emit failed(problem);
  else if (path.isEmpty())
    emit failed(failure_.isEmpty() ? tr("Nothing was recorded: %1 %2.").arg(run_ ? run_->title : tr("the program"), prof::kNothingToRecord)
                                   : tr("Nothing was recorded. %1").arg(failure_));
  Run* run = run_;
  run_.clear();
  emit ended(run, path);
}

QString ProgramRecording::keep() {
  if (!program_->recorded()) return {};
  QString first;
  for (const std::string& path : program_->paths()) {
    const QString from = QString::fromStdString(path), to = folder_ + "/" + QFileInfo(from).fileName();
    const bool stays = prof::is_still_written(path) || !QFile::rename(from, to);
    if (first.isEmpty()) first = stays ? from : to;
    if (!stays) keep_ceilings(to.toStdString());
    if (stays) emit failed(tr("A process of the program still runs. Its recording is in %1.").arg(from));
  }
  return first;
}

}  // namespace ws::app

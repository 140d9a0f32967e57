#include "app/workspace/program_recording.h"

#include <QDir>
#include <QFileInfo>

#include "app/core/runs/run_ceilings.h"

namespace ws::app {
namespace {

constexpr const char* kUnfinished = ".recording";  // a folder that the library does not look into

}  // namespace

ProgramRecording::ProgramRecording(const QString& folder, QObject* parent) : QObject(parent), folder_(folder) {
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
  const QDateTime now = QDateTime::currentDateTime();
  QDir(folder_).mkpath(kUnfinished);
  const QString name = QFileInfo(command.front()).fileName();
  const QString path = folder_ + "/" + kUnfinished + "/" + now.toString("yyyyMMdd-HHmmss-") + name + ".wsrun";
  std::vector<std::string> words;
  for (const QString& word : command) words.push_back(word.toStdString());
  try {
    program_ = std::make_unique<prof::RecordedProgram>(words, path.toStdString(), options);
  } catch (const std::exception& problem) {
    emit failed(QString::fromUtf8(problem.what()));
    return nullptr;
  }
  options_ = options;
  run_ = new Run(this);
  run_->id = QFileInfo(path).completeBaseName(), run_->title = command.join(' '), run_->path = path;
  run_->created = now, run_->origin = RunOrigin::Imported, run_->recording = true;
  timer_.start();
  return run_;
}

void ProgramRecording::stop() {
  if (program_) program_->interrupt();
}

void ProgramRecording::drain() {
  RunUpdate update;
  for (prof::TraceBatch batch = program_->take(); !batch.empty(); batch = program_->take())
    update.traces.push_back(std::move(batch));
  if (!update.traces.empty() && run_) run_->apply(std::move(update));
}

void ProgramRecording::poll() {
  drain();
  const std::optional<int> status = program_->wait(0);
  if (!status) return;
  timer_.stop();
  drain();
  const std::string problem = program_->status().problem;
  const QString path = keep();
  program_.reset();
  if (run_) {
    run_->recording = false;
    run_->summary.emplace().status = path.isEmpty() ? RunStatus::Failed : RunStatus::Finished;
  }
  if (path.isEmpty())
    emit failed(tr("%1 ended with status %2 and nothing was recorded: it did not start CUDA.")
                    .arg(run_ ? run_->title : tr("The program"))
                    .arg(*status));
  else if (!problem.empty())
    emit failed(QString::fromStdString(problem));
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

#include "app/workspace/remote_work.h"

#include <QFileInfo>

#include "app/core/remote/job_folder.h"

namespace ws::app {

RemoteWork::RemoteWork(std::shared_ptr<RemoteMachine> machine, const QString& name, const nlohmann::json& job,
                       Copies copies, QObject* parent)
    : QObject(parent),
      machine_(std::move(machine)),
      run_(machine_->link(), name.toStdString(), false, job),
      copies_(std::move(copies)) {
  constexpr int kLookMs = 50;
  timer_.setInterval(kLookMs);
  connect(&timer_, &QTimer::timeout, this, &RemoteWork::poll);
  timer_.start();
}

void RemoteWork::stop() {
  copying_.cancel();
  run_.stop();
}

void RemoteWork::take(const RemoteUpdate& update) {
  for (const std::string& text : update.told) emit told(text);
  for (const RunMessage& message : update.run.messages) {
    const QString text = QString::fromStdString(message.text);
    if (message.problem) problem_ = text;
    emit printed(text);
  }
  rest_ += QString::fromStdString(run_.take_log());
  QStringList lines = rest_.split('\n');
  rest_ = lines.takeLast();
  for (const QString& line : lines)
    if (!line.trimmed().isEmpty()) emit printed(line);
  if (!update.files.empty()) files_ = update.files;
  has_ended_ |= update.exit_status.has_value();
}

void RemoteWork::poll() {
  const LineStatus line = machine_->link().status();
  const std::string refused = line.state == LineState::Refused ? line.sentence : run_.refused();
  const bool over = run_.over();
  take(run_.take());
  if (!refused.empty()) {
    timer_.stop();
    emit ended(QString::fromStdString(refused));
  } else if (over) {
    timer_.stop();
    if (!has_ended_) problem_ = tr("It was killed on %1. What it measured until then is kept.").arg(place());
    copyFiles();
  }
}

void RemoteWork::copyFiles() {
  const std::vector<Copy> copies = copies_(run_.name(), files_);
  const auto work = [machine = machine_, copies](const Job::Side& side) {
    for (const Copy& copy : copies)
      fetch_file(machine->link(), copy.what, copy.path.toStdString(),
                 [&side](uint64_t) { return !side.cancelled()->load(); });
  };
  copying_.start(work, [this](const QString& problem) { emit ended(problem_.isEmpty() ? problem : problem_); });
}

}  // namespace ws::app

#include "app/workspace/remote_work.h"

#include <utility>

#include "app/core/remote/fetch_file.h"
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
  if (exit_status_) return copying_.cancel();
  if (std::exchange(stopped_, true) && machine_->link().status().state == LineState::Cut) {
    timer_.stop();
    return emit ended(tr("%1 cannot be reached. The job may still run there.").arg(place()));
  }
  run_.stop();
}

void RemoteWork::take(const RemoteUpdate& update) {
  if (!update.results.empty()) emit received(update.results);
  for (const RunMessage& message : update.run.messages) {
    const QString text = QString::fromStdString(message.text);
    if (message.problem) problem_ = text;
    emit printed(text);
  }
  for (const QString& line : lines_.add(run_.take_log())) emit printed(line);
  if (!update.files.empty()) files_ = update.files;
  if (update.exit_status) exit_status_ = update.exit_status;
}

void RemoteWork::poll() {
  const bool over = run_.over();  // asked first: a refusal ends the streams, too
  const LineStatus line = machine_->link().status();
  const std::string refused = line.state == LineState::Refused ? line.sentence : run_.refused();
  take(run_.take());
  if (!refused.empty()) {
    timer_.stop();
    emit ended(QString::fromStdString(refused));
  } else if (over) {
    timer_.stop();
    for (const QString& last : lines_.end()) emit printed(last);
    if (!exit_status_) problem_ = tr("It was killed on %1. The results so far are kept.").arg(place());
    if (exit_status_.value_or(0) != 0 && problem_.isEmpty() && !stopped_)
      problem_ = lines_.last().isEmpty() ? tr("It ended with exit code %1.").arg(*exit_status_) : lines_.last();
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

RemoteWork* FollowedWork::follow(std::unique_ptr<RemoteWork> work, Ended ended) {
  work_ = std::move(work);
  QObject::connect(work_.get(), &RemoteWork::ended, work_.get(),
                   [this, ended = std::move(ended)](const QString& problem) {
                     RemoteWork* over = work_.release();  // it is sending this signal
                     const Ended call = ended;
                     over->deleteLater();
                     call(problem);
                   });
  return work_.get();
}

void FollowedWork::stop() {
  if (work_) work_->stop();
}

bool FollowedWork::leave() {
  const bool followed = work_ != nullptr;
  work_.reset();
  return followed;
}

}  // namespace ws::app

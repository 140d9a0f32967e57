#include "app/workspace/workspace.h"

#include <QFileInfo>
#include <algorithm>

#include "app/text/units.h"
#include "app/workspace/closing_line.h"

namespace ws::app {

Workspace::Workspace(const QString& runs_folder, QObject* parent)
    : QObject(parent), library_(runs_folder), jobs_(library_), session_(runs_folder), recording_(runs_folder) {
  const auto problem = [this](const QString& sentence) { say(sentence, true); };
  connect(&session_, &TrainingSession::failed, this, problem);
  connect(&recording_, &ProgramRecording::failed, this, problem);
  connect(&library_, &RunLibrary::failed, this, problem);
  connect(&library_, &RunLibrary::changed, this, &Workspace::keepPicked);
  connect(&jobs_, &LibraryJobs::failed, this, problem);
  connect(&jobs_, &LibraryJobs::exported, this,
          [this](const QString& path) { say(tr("Written: %1").arg(QFileInfo(path).fileName()), false); });
  connect(&jobs_, &LibraryJobs::imported, this,
          [this](const Run* run) { say(tr("Imported: %1").arg(run->title), false); });
  connect(&choices_, &Choices::traceLevelChanged, &session_, &TrainingSession::setTraceLevel);
  connect(&choices_, &Choices::traceExtrasChanged, &session_, &TrainingSession::setTraceExtras);
  connect(&session_, &TrainingSession::ended, this, &Workspace::runEnded);
  connect(&device_, &DeviceProbe::known, this, [this](const DeviceInfo* info) {
    session_.setCuda(info->cuda);
    choices_.setCuda(info->cuda);
  });
}

Run* Workspace::train(const RunSpec& spec, const QString& title) {
  return session_.start({spec, title, choices_.traceLevel(), false});
}

// Shows the run that was just trained. A run that failed before its first step is not shown.
void Workspace::runEnded(Run* run) {
  if (run->stepsMade() == 0) return library_.setTicked(run, false);
  if (run->summary->status != RunStatus::Failed) {
    const QString line = tr("%1: %2").arg(run_letter(run->slot), closing_line(*run, ended_));
    say(line, false);
    emit concluded(line, run, ended_);
  }
  ended_ = run;
  pick(run);
}

void Workspace::trainAnew() {
  if (!session_.busy()) return void(train(choices_.spec()));
  connect(&session_, &TrainingSession::stateChanged, this,
          [this, spec = choices_.spec()] {
            if (!session_.busy()) train(spec);
          },
          Qt::SingleShotConnection);
  session_.stop();
}

void Workspace::stop() {
  session_.stop();
  recording_.stop();
}

Run* Workspace::shownRun() const {
  if (session_.busy()) return session_.run();
  if (picked_) return picked_;
  if (ended_ && ended_->slot >= 0) return ended_;
  const auto ticked = library_.ticked();
  return ticked.empty() ? nullptr : ticked.front();
}

const Run* Workspace::shownProgram() const {
  const Run* run = session_.busy() ? nullptr : shownRun();
  return run && !run->command.isEmpty() ? run : nullptr;
}

void Workspace::pick(Run* run) {
  picked_ = run, picked_ticked_ = run && run->slot >= 0;
  emit picked(run);
}

// The picked run stays until it is unticked or gone. A run that was never ticked can be picked too.
void Workspace::keepPicked() {
  if (!picked_) return;
  const bool gone = std::ranges::find(library_.runs(), picked_.data()) == library_.runs().end();
  if (gone || (picked_ticked_ && picked_->slot < 0)) return pick(nullptr);
  picked_ticked_ = picked_->slot >= 0;
}

}  // namespace ws::app

#include "app/workspace/workspace.h"

#include <QFileInfo>
#include <QSettings>
#include <algorithm>
#include <utility>

#include "app/text/units.h"
#include "app/workspace/closing_line.h"

namespace ws::app {
namespace {

constexpr const char* kPinned = "compare/pinned";  // in the settings: the path of the run

}  // namespace

Workspace::Workspace(const QString& runs_folder, QObject* parent)
    : QObject(parent), library_(runs_folder), jobs_(library_), session_(runs_folder), recording_(runs_folder) {
  const auto problem = [this](const QString& sentence) { say(sentence, true); };
  connect(&session_, &TrainingSession::failed, this, problem);
  connect(&recording_, &ProgramRecording::failed, this, problem);
  connect(&library_, &RunLibrary::failed, this, problem);
  connect(&library_, &RunLibrary::tickedChanged, this, &Workspace::forgetFocus);
  connect(&jobs_, &LibraryJobs::failed, this, problem);
  connect(&jobs_, &LibraryJobs::exported, this, &Workspace::wrote);
  connect(&jobs_, &LibraryJobs::imported, this,
          [this](const Run* run) { say(tr("Imported: %1").arg(run->title), false); });
  connect(&choices_, &Choices::traceLevelChanged, &session_, &TrainingSession::setTraceLevel);
  connect(&choices_, &Choices::traceExtrasChanged, &session_, &TrainingSession::setTraceExtras);
  connect(&session_, &TrainingSession::started, this, &Workspace::runStarted);
  connect(&session_, &TrainingSession::ended, this, &Workspace::runEnded);
  connect(&device_, &DeviceProbe::known, this, [this](const DeviceInfo* info) {
    session_.setCuda(info->cuda);
    choices_.setCuda(info->cuda);
  });
}

Run* Workspace::train(const RunSpec& spec, const QString& title) {
  return session_.start({spec, title, choices_.traceLevel(), false});
}

void Workspace::wrote(const QString& path) {
  say(written_text(path), false);
  emit written(path);
}

// What was selected in one run says nothing about the next one.
void Workspace::forgetFocus() {
  const RunId current = library_.selection().current();
  if (std::exchange(shown_, current) != current) focus_.clear();
}

void Workspace::runStarted(Run* run) {
  library_.adopt(run);
  if (session_.inSeries()) return library_.selection().startedInSeries(run->handle);
  if (const Run* pinned = pinnedBaseline(); pinned && comparable(*pinned, *run)) {
    library_.selection().started(run->handle, false);
    return library_.selection().setBaseline(pinned->handle);
  }
  const Run* last = library_.current();
  library_.selection().started(run->handle, last && comparable(*last, *run));
}

void Workspace::runEnded(Run* run) {
  library_.selection().ended(run->handle, run->stepsMade() > 0);
  if (run->stepsMade() == 0 || run->summary->status == RunStatus::Failed) return;
  Run* baseline = library_.current() == run ? library_.baseline() : nullptr;
  const QString line = tr("%1: %2").arg(run_letter(run->letter), closing_line(*run, baseline, pinnedBaseline()));
  say(line, false);
  emit concluded(line, run, baseline);
}

void Workspace::compareRuns(Run* baseline, Run* current) {
  library_.selection().compare(baseline->handle, current->handle);
  emit compareWanted();
}

Run* Workspace::pinnedBaseline() {
  const QString path = QSettings().value(kPinned).toString();
  if (path.isEmpty() || !QFileInfo::exists(path)) return nullptr;
  Run* run = library_.open(path);
  if (!run) QSettings().remove(kPinned);  // it cannot be read, and open() said so
  return run;
}

void Workspace::pinBaseline(const Run* run) {
  if (run && run->path.isEmpty()) return say(tr("This run has no file. Pin a run that is kept."), true);
  run ? QSettings().setValue(kPinned, QFileInfo(run->path).absoluteFilePath()) : QSettings().remove(kPinned);
  say(run ? tr("Every new run is judged by %1.").arg(run->title) : tr("No baseline is pinned."), false);
  emit pinnedChanged();
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

const Run* Workspace::shownProgram() const {
  const Run* run = session_.busy() ? nullptr : shownRun();
  return run && !run->command.isEmpty() ? run : nullptr;
}

}  // namespace ws::app

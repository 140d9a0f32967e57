#include "app/window/lesson_runner.h"

#include <QSettings>
#include <algorithm>
#include <utility>

#include "app/window/notice_bar.h"

namespace ws::app {
namespace {

QString speed_key(const Lesson& lesson) { return QStringLiteral("lessons/%1/slow").arg(lesson.name); }

}  // namespace

LessonRunner::LessonRunner(Workspace& workspace, NoticeBar* notice, QObject* parent)
    : QObject(parent), workspace_(workspace), notice_(notice) {
  connect(workspace.session(), &TrainingSession::ended, this, &LessonRunner::runEnded);
  connect(workspace.session(), &TrainingSession::started, this, &LessonRunner::ask, Qt::QueuedConnection);  // the window dismisses notices first
  connect(workspace.session(), &TrainingSession::stateChanged, this, &LessonRunner::keepSpeed);
  connect(workspace.library(), &RunLibrary::tickedChanged, this, &LessonRunner::concludeOpened);
}

void LessonRunner::start(int lesson, int expected) {
  const DeviceInfo* device = workspace_.device()->info();
  if (!device) return workspace_.device()->whenKnown([this, lesson, expected] { start(lesson, expected); });
  if (workspace_.session()->busy()) return workspace_.say(tr("Stop the training first (Run › Stop)."), true);
  const auto offered = lessons(device->cuda);
  if (lesson < 0 || lesson >= static_cast<int>(offered.size()))
    return workspace_.say(tr("There are %1 starts to begin with.").arg(offered.size()), true);
  const Lesson& chosen = *offered[static_cast<size_t>(lesson)];
  workspace_.library()->tickOnly({});
  runs_.clear();
  opening_ = nullptr, tried_ = nullptr, expected_ = expected;
  if (!shipped_runs_of(chosen, device->cuda).isEmpty()) return open(chosen);
  training_ = &chosen;
  takeSpeed(chosen);
  workspace_.session()->startAll(chosen.requests(device->cuda));
  if (!workspace_.session()->busy()) training_ = nullptr, giveSpeedBack();  // it said why
}

void LessonRunner::takeSpeed(const Lesson& lesson) {
  TrainingSession* session = workspace_.session();
  if (!paced_) speed_before_ = session->speed();
  const bool slow = QSettings().value(speed_key(lesson), lesson.speed == TrainSpeed::Slow).toBool();
  paced_ = nullptr;
  session->setSpeed(slow ? TrainSpeed::Slow : TrainSpeed::Full);
  paced_ = &lesson;
}

// A lesson is not paused when it starts: step by step is not kept.
void LessonRunner::keepSpeed() {
  if (const TrainSpeed speed = workspace_.session()->speed(); paced_ && speed != TrainSpeed::Step)
    QSettings().setValue(speed_key(*paced_), speed == TrainSpeed::Slow);
}

void LessonRunner::giveSpeedBack() {
  if (std::exchange(paced_, nullptr)) workspace_.session()->setSpeed(speed_before_);
}

void LessonRunner::ask() {
  if (!training_) return;
  if (expected_ >= 0) return notice_->conclude(tr("You expect: %1.").arg(training_->answers[expected_]));
  std::vector<NoticeAction> answers;
  for (int i = 0; i < training_->answers.size(); ++i)
    answers.push_back({training_->answers[i], [this, i] {
                         expected_ = i;
                         ask();
                       }});
  notice_->conclude(tr("What do you expect? %1").arg(training_->question), std::move(answers));
}

void LessonRunner::open(const Lesson& lesson) {
  notice_->dismiss();
  for (const QString& path : shipped_runs_of(lesson, false))
    if (Run* run = workspace_.library()->open(path)) runs_.emplace_back(run);
  opening_ = &lesson;
  showRuns();
  workspace_.showLive();
  emit opened();
}

// The first run is the baseline and the last is current, as in the conclusion.
void LessonRunner::showRuns() {
  std::vector<Run*> shown(runs_.begin(), runs_.end());
  workspace_.library()->tickOnly(shown);  // letters in the order of the lesson
  if (shown.size() > 2) std::rotate(shown.begin() + 1, shown.end() - 1, shown.end());
  workspace_.library()->tickOnly(shown);
}

// Concludes the lesson once all its runs are read.
void LessonRunner::concludeOpened() {
  if (!opening_ || !std::ranges::all_of(runs_, [](const auto& run) { return run && run->slot >= 0 && run->loaded; })) return;
  const Lesson& lesson = *std::exchange(opening_, nullptr);
  conclude(lesson, the_same_here(*runs_.back()));
}

// The last run brings the conclusion. A run that was stopped or failed ends the lesson without one.
void LessonRunner::runEnded(Run* run) {
  if (tried_) {
    giveSpeedBack();
    return concludeTry(*run);
  }
  if (!training_) return;
  runs_.emplace_back(run);
  const bool cuda = workspace_.device()->info()->cuda;
  const bool whole = run->summary && run->summary->status == RunStatus::Finished;
  const bool all = runs_.size() == training_->requests(cuda).size();
  if (whole && !all && workspace_.session()->waiting() > 0) return;  // none if a stop came when the run had ended
  const Lesson& lesson = *std::exchange(training_, nullptr);
  giveSpeedBack();
  notice_->dismiss();  // the question
  if (whole && all && std::ranges::all_of(runs_, [](const auto& each) { return !each.isNull(); })) {
    showRuns();
    conclude(lesson, lesson.next(cuda));
  }
}

void LessonRunner::conclude(const Lesson& lesson, const StartRequest& next) {
  const std::vector<const Run*> runs(runs_.begin(), runs_.end());
  notice_->conclude(answer_text(lesson, expected_, runs) + lesson.conclusion(runs), {{tr("Try next: %1").arg(next.title), [this, &lesson, next] { tryNext(lesson, next); }}});
}

void LessonRunner::tryNext(const Lesson& lesson, const StartRequest& next) {
  if (lesson.after) takeSpeed(lesson);
  StartRequest now = next;
  now.trace = workspace_.choices()->traceLevel();
  const bool started = workspace_.session()->start(now);
  if (started && lesson.after) tried_ = &lesson;
  if (!started) giveSpeedBack();
}

void LessonRunner::concludeTry(const Run& run) {
  const Lesson& lesson = *std::exchange(tried_, nullptr);
  const bool whole = run.summary && run.summary->status == RunStatus::Finished;
  if (!whole || std::ranges::any_of(runs_, [](const auto& each) { return each.isNull(); })) return;
  notice_->conclude(lesson.after({runs_.begin(), runs_.end()}, run), {});
}

}  // namespace ws::app

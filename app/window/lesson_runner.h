// Runs a lesson of the start page: trains its runs and shows the conclusion. If this machine cannot train them, it
// opens the recorded runs that ship with the program.
#pragma once
#include <QObject>
#include <QPointer>
#include <vector>

#include "app/workspace/lessons.h"
#include "app/workspace/workspace.h"

namespace ws::app {

class NoticeBar;

class LessonRunner : public QObject {
  Q_OBJECT
 public:
  LessonRunner(Workspace& workspace, NoticeBar* notice, QObject* parent);
  // `lesson`: index of one offered on this machine. `expected`: the answer that the person chose before; −1: none.
  void start(int lesson, int expected = -1);
  bool training() const { return training_ || tried_; }

 signals:
  void opened();  // recorded runs instead of a training

 private:
  void open(const Lesson& lesson);
  void runEnded(Run* run);
  void showRuns();
  void concludeOpened();
  void tryNext(const Lesson& lesson, const StartRequest& next);
  void concludeTry(const Run& run);
  void ask();  // what the person expects, while the lesson trains
  void takeSpeed(const Lesson& lesson);  // the lesson has a speed of its own
  void keepSpeed();
  void giveSpeedBack();
  void conclude(const Lesson& lesson, const StartRequest& next);

  Workspace& workspace_;
  NoticeBar* notice_;
  const Lesson* training_ = nullptr;
  const Lesson* opening_ = nullptr;  // its runs are being read
  const Lesson* tried_ = nullptr;    // what it proposes next is trained
  std::vector<QPointer<Run>> runs_;
  int expected_ = -1;  // the answer that the person chose; −1: none
  const Lesson* paced_ = nullptr;  // the speed is this lesson's
  TrainSpeed speed_before_ = TrainSpeed::Full;
};

}  // namespace ws::app

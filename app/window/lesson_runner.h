// A lesson of the first page from the click to its conclusion: trains its runs, or opens those that ship with the program
// where this machine cannot train them.
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
  void start(int lesson);  // one of those offered on this machine, once that is known
  bool training() const { return training_ != nullptr; }

 private:
  void open(const Lesson& lesson);
  void runEnded(Run* run);
  void concludeOpened();
  void conclude(const Lesson& lesson, const StartRequest& next);

  Workspace& workspace_;
  NoticeBar* notice_;
  const Lesson* training_ = nullptr;
  const Lesson* opening_ = nullptr;  // its runs are being read
  std::vector<QPointer<Run>> runs_;
};

}  // namespace ws::app

// Closing the window while something goes on: asks, stops it, says what is waited for, and never stands still.
#pragma once
#include <QObject>
#include <QPointer>
#include <functional>
#include <vector>

#include "app/pages/page.h"

namespace ws::app {

class FinishingBox;
struct Waiting;

class CloseGuard : public QObject {
  Q_OBJECT
 public:
  CloseGuard(QWidget* window, Workspace& workspace);
  void add(Chore chore) { chores_.push_back(std::move(chore)); }
  // True: nothing is in the way. Else it has been asked, and `then` is called once what went on has ended.
  bool mayClose(std::function<void()> then);
  // The system ends the program: from now on nothing is asked, and what does not end soon is left.
  void setUnattended();
  // It was closed without waiting for all threads: the process has to end without them.
  bool leftBehind() const;

 private:
  const Chore* chore() const;  // that goes on
  bool askToStop();
  enum class There { Stay, Leave, Stop };
  There askAboutThere();
  bool mayLeaveThere();  // false: the person stays
  void waitToClose(Waiting waiting, std::function<void()> then);

  QWidget* window_;
  Workspace& workspace_;
  std::vector<Chore> chores_;
  QPointer<FinishingBox> finishing_;
  bool left_ = false, unattended_ = false;
};

}  // namespace ws::app

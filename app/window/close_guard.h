// Handles closing the window while work is running: asks, stops it, and shows what it waits
// for without blocking the window.
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
  // Returns true if the window can close now. Otherwise, unless the user stays, `then` is
  // called once the work has ended.
  bool mayClose(std::function<void()> then);
  // The system ends the program: ask nothing from now on, and leave work that does not end soon.
  void setUnattended();
  // True if the window closed without waiting for all threads: the process must end without them.
  bool leftBehind() const;

 private:
  const Chore* chore() const;       // a chore that runs on this machine
  const Chore* choreThere() const;  // a chore that runs on another machine
  bool askToStop();
  enum class There { Stay, Leave, Stop };
  There askAboutThere();
  bool mayLeaveThere();  // false: the user stays
  void waitToClose(Waiting waiting, std::function<void()> then);

  QWidget* window_;
  Workspace& workspace_;
  std::vector<Chore> chores_;
  QPointer<FinishingBox> finishing_;
  bool left_ = false, unattended_ = false;
};

}  // namespace ws::app

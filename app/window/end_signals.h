// Turns SIGINT, SIGTERM and SIGHUP into a Qt signal: the system asks the window to end. A
// second one ends the program at once.
#pragma once
#include <QObject>
#include <QSocketNotifier>

namespace ws::app {

class EndSignals : public QObject {
  Q_OBJECT
 public:
  EndSignals();

 signals:
  void received();

 private:
  QSocketNotifier notifier_;
};

}  // namespace ws::app

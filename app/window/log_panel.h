// The Log dock: starts, changes and problems, with the time.
#pragma once
#include <QPointer>
#include <QWidget>

#include "app/pages/page.h"

class QPlainTextEdit;

namespace ws::app {

Page log_page(Workspace& workspace);

class LogPanel : public QWidget {
  Q_OBJECT
 public:
  explicit LogPanel(Workspace& workspace, QWidget* parent = nullptr);

 private:
  void build();
  void runStarted(Run* run);
  void runEnded(const Run& run);
  void showNew(const Run& run);

  Workspace& workspace_;
  QPlainTextEdit* lines_;
  QPointer<Run> watched_;
  size_t shown_ = 0;  // lines of the watched run
};

}  // namespace ws::app

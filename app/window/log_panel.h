// The Log dock: starts, changes and problems, with the time.
#pragma once
#include <QWidget>
#include <map>

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
  void watch(Run* run);
  void runEnded(const Run& run);
  void showNew(const Run& run);

  Workspace& workspace_;
  QPlainTextEdit* lines_;
  std::map<const Run*, size_t> shown_;  // lines of each run that is going on
};

}  // namespace ws::app

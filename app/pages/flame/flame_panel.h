// Shows the stacks of a run as a flame graph: sampled ones, of all the time or only while the GPU was idle, or those that
// launched kernels. A range that is selected in the timeline limits it.
#pragma once
#include <QPointer>
#include <QTimer>
#include <QWidget>

#include "app/workspace/focus.h"
#include "profiling/analysis/flame_tree.h"
#include "profiling/analysis/waiting_threads.h"

class QLabel;
class QLineEdit;
class QMenu;
class QPushButton;
class QScrollArea;

namespace ws::app {

class FlameView;
class Headlined;
class Pane;

enum class FlameTime { InSteps, Host, WhileGpuIdle, Launched };

class FlamePanel : public QWidget {
  Q_OBJECT
 public:
  explicit FlamePanel(Focus* focus, QWidget* parent = nullptr);
  void setRun(Run* run);
  const Run* run() const { return run_; }
  void setTime(FlameTime time);
  void showWaits(bool shown);
  FlameView* view() const { return view_; }
  QPushButton* choice() const { return mode_; }
  QPushButton* libraries() const { return libraries_; }  // pressed: their functions are shown one by one
  QString note() const { return note_; }
  QString headline() const;  // which function takes most
  void exportTo(const QString& path);  // .collapsed or .speedscope.json; throws Failure

 signals:
  void said(const QString& sentence, bool problem);

 protected:
  void showEvent(QShowEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void build();
  void refresh();
  void refreshSoon();
  void showMatches();
  void askForFile();
  std::optional<TimeRange> selected() const;
  prof::CountedSteps counted() const;  // the selected range, or what the chosen time is of
  FlameTime time() const;  // the chosen one; if this run does not offer it, the steps, or all time
  prof::WorkingStacks stacks() const;  // with the waiting threads, if they are to be shown
  bool offers(FlameTime time) const;
  QString timeText(FlameTime time) const;
  QString emptyText() const;
  QString headlineOf(const prof::FlameTree& tree) const;
  void fillMenu(QMenu& menu);

  Focus* focus_;
  QPointer<Run> run_;
  Pane* pane_;
  Headlined* body_;
  FlameView* view_;
  QLineEdit* search_;
  QLabel* matches_;
  QPushButton *mode_, *libraries_;
  QTimer soon_;
  QString note_;
  std::optional<FlameTime> chosen_;
  bool show_waits_ = false, has_waits_ = false;
};

}  // namespace ws::app

// The toolbar: Train or Pause, Stop, Step; the live run; the cost of tracing and the trace level; Follow, Find, theme.
#pragma once
#include <QPointer>
#include <QPushButton>
#include <QVariantList>
#include <QWidget>
#include <vector>

#include "app/workspace/choices.h"

class QAction;
class QComboBox;
class QHBoxLayout;
class QLabel;
class QStackedWidget;
class QToolButton;

namespace ws::app {


// Badge, epoch and step of the current run over a bar. Its menu makes another shown run current.
class ProgressCell : public QPushButton {
  Q_OBJECT
 public:
  explicit ProgressCell(QWidget* parent = nullptr);
  void show(const Run* run, int waiting, bool compact);
  void setWide(bool wide);  // the window is wide: a long name is whole
  const QString& title() const { return title_; }
  QSize sizeHint() const override { return {compact_ ? 190 : wide_ ? 420 : 252, 44}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  int slot_ = -1;
  bool compact_ = false, wide_ = false;
  double done_ = 0;
  QString title_, strong_, weak_, shorter_, shortest_;
};

// A caption above a number with its unit. The number does not jitter.
class NumberCell : public QWidget {
  Q_OBJECT
 public:
  NumberCell(const QString& caption, QWidget* parent = nullptr);
  void setValue(const QString& value, const QString& unit, const QString& note = {}, bool warns = false);
  void setCaption(const QString& caption);
  QSize sizeHint() const override { return {width_, 44}; }
  QSize minimumSizeHint() const override { return {needed_, 44}; }  // without the space that it keeps
  QString value() const { return value_; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  void keepSpace();

  QString caption_, value_, unit_;  // the unit, and a note behind it, which may warn
  bool warns_ = false;
  int width_ = 0, needed_ = 0;
};

class TopBar : public QWidget {
  Q_OBJECT
 public:
  explicit TopBar(Choices* choices, QWidget* parent = nullptr);
  void showRun(const Run* run, bool busy, bool paused, int waiting);
  bool showsProgram() const { return program_; }  // a recorded program: the first button records it again
  void setCompact(bool compact);
  void setRuns(const std::vector<Run*>& runs);  // those that can be made current
  void setFollow(bool on);  // lit only while the shown run grows
  void setSpeed(TrainSpeed speed, int slow_rate);  // steps per second
  QVariantList traceChoices() const;  // level or window, and counters: stored in settings
  void setTraceChoices(const QVariantList& choices);
  QPushButton* train() const { return train_; }
  QPushButton* stop() const { return stop_; }
  QPushButton* step() const { return step_; }
  QPushButton* speed() const { return speed_; }
  QPushButton* follow() const { return follow_; }
  QPushButton* find() const { return find_; }
  ProgressCell* currentRun() const { return progress_; }

 signals:
  void trainClicked();  // Train, Pause or Resume, as its text says
  void stopClicked();
  void stepClicked();
  void speedChosen(ws::app::TrainSpeed speed);
  void followClicked(bool on);
  void findClicked();
  void themeClicked();
  void runPicked(ws::app::Run* run);
  void runsWanted();  // the list of all runs

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void changeEvent(QEvent* event) override;

 private:
  void build();
  void buildSpeed(QHBoxLayout* row);
  QWidget* buildLive();
  void buildRight(QHBoxLayout* row);
  void buildTrace();
  void showFigures(const Run& run);
  void showTrainIcon();  // white on blue
  void showButtons(const Run* run, bool busy, bool paused);
  void fitCells();
  void pickTrace(int index);
  prof::TraceLevel traceLevel() const;
  TraceExtras traceExtras() const;
  void setExtras(bool counters, bool xray);
  QWidget* separator();

  Choices* choices_;
  QPushButton *train_, *stop_, *step_, *speed_, *follow_, *find_;
  QAction* slow_ = nullptr;
  QToolButton* theme_;
  QStackedWidget* middle_;
  QLabel *hint_, *cost_;
  QComboBox* trace_;
  ProgressCell* progress_;
  QWidget* numbers_;
  NumberCell *loss_, *accuracy_, *step_time_, *throughput_, *memory_, *gpu_busy_, *kernels_;
  QString train_name_, train_icon_ = "play";
  bool has_loss_ = true, has_accuracy_ = true, has_memory_ = true, has_kernels_ = false;  // figures that the run has
  bool compact_ = false, counters_ = false, xray_ = false, program_ = false, foreign_ = false, following_ = true, live_ = false;
  int shown_trace_ = 0;
};

}  // namespace ws::app

// The Runs dock: every kept run. The selected row is the current run; ticked runs are compared with it.
#pragma once
#include <QWidget>

#include "app/pages/library/runs_model.h"

class QFontMetricsF;
class QLabel;
class QLineEdit;
class QListView;
class QMenu;
class QPushButton;
class QStackedWidget;

namespace ws::app {

class LibraryJobs;
class RunLibrary;

// The second line of a run, with as many of its changes as fit whole. The time gives way to them.
QString second_line(const Run& run, const Run* baseline, const QFontMetricsF& metrics, double width);

class RunsPanel : public QWidget {
  Q_OBJECT
 public:
  RunsPanel(RunLibrary* library, LibraryJobs* jobs, QWidget* parent = nullptr);
  QListView* view() const { return view_; }
  RunsModel* model() const { return model_; }
  Run* current() const;
  QSize sizeHint() const override;  // as high as all its rows

 signals:
  void openFile();
  void picked(ws::app::Run* run);
  void useChoices(ws::app::Run* run);
  void trainWanted(const ws::RunSpec& spec, const QString& title);
  void torchWanted(const ws::RunSpec& spec);

 private:
  QWidget* buildHeader();
  QWidget* buildFilter();
  QWidget* buildEmpty();
  QWidget* buildUndo();
  void fillMenu(QMenu& menu, Run* run);
  void showMenu(const QPoint& at);
  void refresh();
  void selectCurrent();

  RunLibrary* library_;
  LibraryJobs* jobs_;
  RunsModel* model_;
  QListView* view_;
  QLabel* count_;
  QWidget* filter_;
  QStackedWidget* pages_;
  QWidget *footer_, *undo_;
  QLabel* removed_;
  bool restoring_ = false;
};

}  // namespace ws::app

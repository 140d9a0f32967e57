// The timeline with its title bar: legend, alignment, filter, critical path, find, and the actions for menus and the palette.
#pragma once
#include <QList>
#include <memory>

#include "app/widgets/pane.h"
#include "app/timeline/timeline_view.h"

class QAction;
class QLineEdit;
class QMenu;
class QPushButton;
class QScrollBar;

namespace ws::app {

class MeaningLegend;

class TimelinePane : public Pane {
  Q_OBJECT
 public:
  TimelinePane(TimeCursor* cursor, Focus* focus, QWidget* parent = nullptr);

  TimelineModel* model() { return &model_; }
  TimelineView* view() const { return view_; }
  QList<QAction*> commands() const { return commands_; }
  void setRuns(const std::vector<Run*>& runs);
  void setShown(const Run* run);  // the run that the window shows

 public slots:
  void openFind();
  void keepLast(double seconds);

 signals:
  void said(const QString& sentence);
  void whatIfWanted(ws::app::Run* run, const QString& edit);
  void keepWanted(ws::app::Run* run, double seconds);  // its last seconds, as a run of their own
  void findWanted();                                   // while the timeline is not visible

 protected:
  void resizeEvent(QResizeEvent*) override;

 private:
  void showLegend();
  void buildOptions();
  void buildCommands();
  void buildFind();
  void buildBody();
  void addCommand(const QString& text, const QString& keys, std::function<void()> run);
  void showNote();
  QString alignedNote() const;
  void chooseAlign(Align align);
  void laneMenu(const QString& key, const QPoint& at);
  void addEdits(QMenu& menu, QPoint at);  // of the span there, for the page What if
  void showPath();
  void fillLanesMenu();
  void editNote(int mark);
  void askForStep();
  void askForSeconds();

  TimelineModel model_;
  TimelineView* view_;
  MeaningLegend* legend_;
  QPushButton *align_, *path_, *lanes_, *fit_;
  QLineEdit *filter_, *find_;
  QWidget* find_bar_;
  QScrollBar* bar_;
  QList<QAction*> commands_;
};

}  // namespace ws::app

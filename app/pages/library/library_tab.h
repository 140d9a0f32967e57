// The library as a page: every kept run in a table that is searched, filtered, sorted and edited.
#pragma once
#include <QPointer>
#include <QWidget>
#include <vector>

#include "app/workspace/run.h"

class QLabel;
class QLineEdit;
class QMenu;
class QPlainTextEdit;
class QPushButton;
class QTableView;

namespace ws::app {

class LibraryFilter;
class LibraryJobs;
class RunLibrary;

class LibraryTab : public QWidget {
  Q_OBJECT
 public:
  LibraryTab(RunLibrary* library, LibraryJobs* jobs, QWidget* parent = nullptr);
  QTableView* table() const { return table_; }
  LibraryFilter* filter() const { return filter_; }
  std::vector<Run*> chosen() const;  // the selected rows
  void removeChosen();
  void undo();

 signals:
  void said(const QString& sentence, bool problem);
  void trainWanted(const ws::RunSpec& spec, const QString& title);
  void torchWanted(const ws::RunSpec& spec);
  void opened(ws::app::Run* run);

 protected:
  void resizeEvent(QResizeEvent*) override;

 private:
  QWidget* buildTable();
  QWidget* buildBar();
  QWidget* buildSide();
  void connectSide();
  QWidget* buildFooter();
  void fillFilters();
  void showChosen();
  void keepNote();
  void keepTyped(Run* run);
  void followCurrent();
  void select(const std::vector<RunId>& runs);
  void refresh();
  void contextMenu(const QPoint& at);

  RunLibrary* library_;
  LibraryJobs* jobs_;
  LibraryFilter* filter_;
  QTableView* table_;
  QLabel *count_, *empty_, *title_, *facts_, *removed_;
  QLineEdit *name_, *tags_;
  QPlainTextEdit* note_;
  QPushButton *status_, *tag_, *again_, *export_, *delete_, *undo_, *torch_;
  QWidget *side_, *footer_;
  QPointer<Run> noted_;  // the run whose note is in the field
  std::vector<RunId> chosen_;  // the selected rows: they stay selected when the table is filled again
  RunId followed_ = RunId::None;
  bool following_ = false;
};

}  // namespace ws::app

// The page about SQL: a query over the files of the ticked runs, answered in the background, as a table and as a plot.
#pragma once
#include <QElapsedTimer>
#include <QPointer>
#include <QWidget>
#include <memory>
#include <string>
#include <vector>

#include "app/core/sql/run_database.h"
#include "app/widgets/table_model.h"
#include "app/workspace/job.h"
#include "app/workspace/run.h"

class QLabel;
class QMenu;
class QPlainTextEdit;
class QPushButton;
class QTableView;
class QTreeWidget;

namespace ws::app {

class PagedPane;
class Pane;
class QueryPlot;

class QueryPanel : public QWidget {
  Q_OBJECT
 public:
  explicit QueryPanel(QWidget* parent = nullptr);
  void setRuns(const std::vector<Run*>& runs);
  QString query() const;
  void setQuery(const QString& sql);
  void ask();   // answers the query; one at a time
  void stop();  // the query that is being answered
  bool running() const { return job_.running(); }
  QString verdict() const;  // "12 rows in 34 ms", or why there is no answer
  const Table& answer() const { return model_.table(); }
  QueryPlot* plot() const { return plot_; }
  QMenu* examples() const { return examples_; }
  QTreeWidget* views() const { return views_; }
  QPlainTextEdit* editor() const { return editor_; }
  PagedPane* shown() const { return shown_; }

 signals:
  void said(const QString& sentence, bool problem);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  // The runs that the last query read. Only the job's thread uses it.
  struct Reader {
    std::vector<std::string> stamps;
    std::unique_ptr<RunDatabase> database;
    RunDatabase& of(const std::vector<std::string>& files, const std::vector<std::string>& names);
  };
  struct Answer {
    SqlTable table;
    std::vector<std::string> problems;
  };
  QWidget* buildQuery();
  QWidget* buildViews();
  QWidget* buildAnswer();
  void fillExamples();
  void fillViews();
  void askFirst();
  void start();
  void answered(const Answer& answer, const QString& problem);
  void showVerdict(const QString& sentence, bool problem);
  void showButtons();
  void showRuns();
  void showPlot();
  void fillColumns(QPushButton* button, int* chosen, bool numbers_only);
  void exportTable();
  std::vector<std::string> files() const, names() const;

  std::vector<QPointer<Run>> runs_;
  std::vector<std::string> first_about_;  // the runs that the first query was answered about
  bool asked_ = false;                    // by the user
  std::shared_ptr<Reader> reader_ = std::make_shared<Reader>();
  QElapsedTimer clock_;
  Pane *query_pane_ = nullptr, *views_pane_ = nullptr;
  PagedPane* shown_ = nullptr;
  QPlainTextEdit* editor_ = nullptr;
  QLabel* verdict_ = nullptr;
  QPushButton *ask_ = nullptr, *stop_ = nullptr, *x_button_ = nullptr, *y_button_ = nullptr;
  QMenu* examples_ = nullptr;
  QTreeWidget* views_ = nullptr;
  TableModel model_;
  TableSorter sorter_;
  QTableView* table_ = nullptr;
  QueryPlot* plot_ = nullptr;
  int x_ = -1, y_ = -1;  // columns that the user chose for the plot
  Job job_;              // last member, so that it ends first
};

}  // namespace ws::app

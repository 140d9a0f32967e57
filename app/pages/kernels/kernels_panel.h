// The kernels page: a sortable table of kernels, the time distribution of one of them, and its slowest executions.
#pragma once
#include <QTableView>
#include <QTimer>
#include <map>
#include <utility>

#include "app/pages/kernels/source_view.h"
#include "app/widgets/histogram.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_model.h"
#include "app/widgets/table_style.h"
#include "app/workspace/focus.h"
#include "app/workspace/job.h"
#include "profiling/analysis/stalls.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/analysis/trace_stats.h"

class QAction;
class QLabel;
class QLineEdit;
class QMenu;

namespace ws::app {

class MeaningLegend;

class KernelsPanel : public QWidget {
  Q_OBJECT
 public:
  // Settings keep these numbers.
  enum Column { Name, Count, Total, Share, Min, Mean, Sigma, Median, P90,
                P95, P99, P999, Max, Grid, Registers, Occupancy, Limit, WithCalls, Columns };
  explicit KernelsPanel(Focus* selection, QWidget* parent = nullptr);
  void setRun(Run* run);
  const Run* run() const { return run_; }
  TableModel* model() { return &model_; }
  const std::vector<prof::KernelRow>& rows() const { return rows_; }
  QTableView* table() const { return table_; }
  QTableView* instances() const { return instances_; }
  const HistogramView* histogram() const { return histogram_; }
  QString headline() const;  // which kind of work takes most
  const SourceView* source() const { return source_; }
  QMenu* columnMenu() const { return column_menu_; }
  void showColumn(int column, bool shown);  // as the user chose it, whatever the width
  void showUsualColumns();                  // the columns that fit
  QByteArray columns() const;               // the user's choice; empty: default columns
  void setColumns(const QByteArray& chosen);
  void refresh();
  void groupBy(prof::GroupBy by);
  void showWholeRun(bool whole);  // what ran outside of the steps, too

 protected:
  void showEvent(QShowEvent*) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void buildTable(Pane* pane);
  void buildColumnMenu(Pane* pane);
  std::vector<int> usualColumns() const;
  void fitColumns();
  Table shownRows() const;
  std::string blockOf(const prof::KernelRow& row) const;  // the block of layers of this row; empty: none
  void foldAt(QPoint at);
  void drillDown();
  bool own() const;  // a training of this program: its work has the numbers of the steps
  bool inSteps() const { return !whole_ && has_other_work_; }
  bool hasOtherWork() const;
  TimeRange lookedAt() const;
  bool showSamples(const prof::KernelRow& row);
  void showInstructions(const std::string& kernel);
  void showSource(const prof::KernelRow& row, TimeRange range);
  void showInstances(std::vector<prof::FoundSpan> spans, bool own);
  void fillInstances(const prof::KernelRow& row, TimeRange range);

  Focus* focus_;
  QPointer<Run> run_;
  const prof::KernelRow* rowAt(int row) const;
  std::vector<prof::KernelRow> rows_;
  TableModel model_;
  TableSorter sorted_;
  QTableView *table_, *instances_;
  std::vector<prof::FoundSpan> shown_;  // the executions in the table
  TableModel executions_;
  HistogramView* histogram_;
  SourceView* source_;  // hidden for a kernel that has no line
  Pane *top_, *below_;
  QPushButton *group_, *part_;
  QMenu* column_menu_;
  std::vector<QAction*> column_actions_;  // by column; the name column has none
  std::vector<int> chosen_;               // columns; empty: default columns
  QLineEdit* filter_;
  QLabel *headline_, *empty_, *no_source_;
  MeaningLegend* colours_;
  QTimer refresh_;
  bool launched_ = true;  // the rows have grid sizes
  bool whole_ = false, has_other_work_ = false;
  bool calls_known_ = false;  // the rows have times with calls
  bool card_known_ = true;
  prof::GroupBy by_ = prof::GroupBy::Name;
  std::map<std::pair<uint64_t, prof::NameId>, prof::Disassembly> texts_;  // by module and function
  Job disassembling_;  // last, so that it ends first
};

}  // namespace ws::app

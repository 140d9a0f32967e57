// The ranks page: who comes late and what it costs, as a sentence, a map of rank and step, tables and figures.
#pragma once
#include <QPointer>
#include <QTimer>
#include <QWidget>

#include "app/core/report/rank_tables.h"
#include "app/report/figure_model.h"
#include "app/widgets/chart_file.h"
#include "app/workspace/job.h"
#include "app/workspace/run.h"
#include "profiling/analysis/ranks.h"
#include "profiling/trace/time_range.h"

class QSplitter;
class QTableView;

namespace ws::app {

class Headlined;
class LatenessView;
class Pane;
class RankFigureView;

bool several_ranks(const prof::Trace& trace);  // True if at least two ranks left a span

class RanksPanel : public QWidget {
  Q_OBJECT
 public:
  explicit RanksPanel(QWidget* parent = nullptr);
  void setRun(Run* run);
  void showReport(prof::RankReport report);
  const prof::RankReport& report() const;
  QString headline() const;
  LatenessView* map() const { return map_; }
  QTableView* ranks() const { return ranks_table_; }
  QTableView* collectives() const { return collectives_table_; }
  Pane* bandwidthPane() const { return bandwidth_pane_; }
  RankFigureView* bandwidth() const { return bandwidth_; }
  ChartPicture mapPicture() const;
  ChartPicture arrivalsPicture() const;
  ChartPicture bandwidthPicture() const;

 signals:
  void stepWanted(ws::app::Run* run, int64_t step, ws::prof::TimeRange range, bool show);  // in the run's own time
  void said(const QString& sentence, bool problem);

 protected:
  void showEvent(QShowEvent*) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void build();
  void buildTop();
  QTableView* addTable(Pane* pane, FigureModel& model, FigureSorter& sorter, const QString& name);
  void addExportMenu();
  void refresh();
  void refreshSoon();
  void fill();
  void fitColumns();
  void fitHeights();
  void chooseCollective();
  void wantStep(int index, bool show);
  QString caption() const;
  void exportChart(ChartPicture chart);
  void exportTable(const QString& name, const FigureTable& table);

  QPointer<Run> run_;
  Pane *top_ = nullptr, *ranks_pane_ = nullptr, *collectives_pane_ = nullptr, *arrivals_pane_ = nullptr,
       *bandwidth_pane_ = nullptr;
  QSplitter *rows_ = nullptr, *tables_ = nullptr;
  Headlined* body_ = nullptr;
  LatenessView* map_ = nullptr;
  QWidget* below_ = nullptr;
  FigureModel ranks_model_, collectives_model_;
  FigureSorter ranks_sorter_, collectives_sorter_;
  QTableView *ranks_table_ = nullptr, *collectives_table_ = nullptr;
  RankFigureView *arrivals_ = nullptr, *bandwidth_ = nullptr;
  QTimer soon_;
  bool again_ = false;  // the run changed while its report was computed
  Job comparing_;       // last member, so that it ends first
};

}  // namespace ws::app

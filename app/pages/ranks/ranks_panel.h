// The ranks page: who comes late and what it costs, as a sentence, a map of rank and step, tables and figures.
#pragma once
#include <QWidget>

#include "app/core/report/report_sections.h"
#include "app/widgets/table_model.h"
#include "app/widgets/chart_file.h"
#include "app/workspace/report_reader.h"

class QPushButton;
class QSplitter;
class QTableView;

namespace ws::app {

class Headlined;
class LatenessView;
class Pane;
class RankFigureView;

class RanksPanel : public QWidget {
  Q_OBJECT
 public:
  explicit RanksPanel(QWidget* parent = nullptr);
  void setRun(Run* run);
  void showReport(prof::RankReport report);
  const prof::RankReport& report() const;
  const RankReader& reader() const { return reader_; }
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
  void stepWanted(int step, bool show);  // an index into report().steps
  void said(const QString& sentence, bool problem);

 protected:
  void showEvent(QShowEvent*) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void build();
  void buildTop();
  QTableView* addTable(Pane* pane, TableModel& model, TableSorter& sorter, const QString& name);
  void addExportMenu();
  void refresh();
  QString notes() const;
  void showFinding();
  void fill();
  void fitColumns();
  void fitHeights();
  void chooseCollective();
  void wantStep(int index, bool show);
  QString caption() const;
  void exportChart(ChartPicture chart);
  void exportTable(const QString& name, const Table& table);

  RankReader reader_;
  Pane *top_ = nullptr, *ranks_pane_ = nullptr, *collectives_pane_ = nullptr, *arrivals_pane_ = nullptr,
       *bandwidth_pane_ = nullptr;
  QSplitter *rows_ = nullptr, *tables_ = nullptr, *figures_ = nullptr;
  QSplitter* parts_;  // the tables above the figures
  Headlined* body_ = nullptr;
  LatenessView* map_ = nullptr;
  QWidget* below_ = nullptr;
  QPushButton* export_ = nullptr;
  TableModel ranks_model_, collectives_model_;
  TableSorter ranks_sorter_, collectives_sorter_;
  QTableView *ranks_table_ = nullptr, *collectives_table_ = nullptr;
  RankFigureView *arrivals_ = nullptr, *bandwidth_ = nullptr;
};

}  // namespace ws::app

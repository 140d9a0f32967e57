// The right side of the laboratory: charts, crossovers, shares and text.
#pragma once
#include <QWidget>
#include <vector>

#include "app/pages/lab/lab_chart.h"

class QLabel;
class QPushButton;
class QTableWidget;

namespace ws::app {

class LabShareView;
class Pane;

class LabResults : public QWidget {
  Q_OBJECT
 public:
  explicit LabResults(QWidget* parent = nullptr);
  LabChart* chart() const { return chart_; }
  LabShareView* shares() const { return shares_; }
  void setShown(const std::vector<LabShown>& shown, bool running);  // the first is the sweep itself
  void setClock(LabClock clock);
  void setPage(const QString& text);     // text of the chosen sweep
  void setWhyNoGpu(const QString& why);  // empty if there is a GPU
  void setTorchRunning(bool running);

 signals:
  void picked(const ws::app::LabPick& pick);
  void overlayWanted();
  void noOverlaysWanted();
  void torchWanted();

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  Pane* buildTimes();
  Pane* buildThroughput();
  Pane* buildCrossovers();
  Pane* buildShares();
  Pane* buildSentences();
  void refresh();
  void showCrossovers();
  void showSentences();
  void showShares();
  void chooseAxis();
  bool mayHaveRates() const;
  void fitPanes();
  void setCursorSize(double size);

  std::vector<LabShown> shown_;
  bool running_ = false, shares_in_front_ = false;
  LabClock clock_ = LabClock::Host;
  QString page_, why_no_gpu_;
  LabChart *chart_, *throughput_;
  LabShareView* shares_;
  Pane *times_pane_, *rate_pane_, *crossovers_pane_, *shares_pane_;
  QTableWidget* crossovers_ = nullptr;
  QPushButton *axis_, *clear_, *torch_, *to_timeline_, *to_shares_, *to_crossovers_;
  QLabel *headline_, *sentences_;
};

}  // namespace ws::app

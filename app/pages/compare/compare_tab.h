// Two to eight runs side by side: what is faster, why, and what else differs.
#pragma once
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <map>
#include <vector>

#include "app/workspace/comparison_model.h"
#include "profiling/analysis/memory_curves.h"

class QComboBox;
class QLabel;
class QMenu;
class QPushButton;
class QSpinBox;
class QTableWidget;

namespace ws::app {

class BarsView;
class CurvePane;
class PagedPane;
class StepView;
class WaterfallView;
struct ChartPicture;

class CompareTab : public QWidget {
  Q_OBJECT
 public:
  explicit CompareTab(QWidget* parent = nullptr);
  void setRuns(const std::vector<Run*>& runs);  // the ticked ones
  QWidget* picker() const { return picker_; }   // baseline and candidate, for the toolbar
  void swapRuns();
  void setPair(Run* baseline, Run* candidate);
  Run* baseline() const { return baseline_; }
  Run* candidate() const { return candidate_; }
  std::vector<Run*> ordered() const;  // the baseline first, then the candidate
  const PairComparison& comparison() const { return comparison_; }
  bool ready() const { return stale_.empty(); }  // every run's newest steps are looked at
  StepView* timelines() const { return step_; }
  QTableWidget* measures() const { return measures_; }
  QTableWidget* kernels() const { return kernels_; }
  QTableWidget* choices() const { return spec_; }
  PagedPane* views() const { return views_; }
  WaterfallView* waterfall() const { return waterfall_; }
  void exportReport(const QString& path);  // .html or .pdf
  QByteArray measuresCsv() const;
  QByteArray kernelsCsv() const;
  void exportRange(const QString& path);  // the visible or selected time of each run as Chrome JSON

 signals:
  void said(const QString& sentence, bool problem);

 protected:
  void showEvent(QShowEvent*) override;
  void changeEvent(QEvent* event) override;

 private:
  struct Cached {
    enum class Left { All, Memory, Nothing };
    Left left = Left::All;  // to be looked at
    size_t spans = 0, steps = 0;
    bool ended = false;
    RunSample sample;
    std::shared_ptr<prof::MemoryCurves> memory = std::make_shared<prof::MemoryCurves>();
  };
  QWidget* buildPicker();
  QWidget* buildHeadline();
  QPushButton* buildExport();
  QWidget* buildViews();
  void buildTimelineOptions();
  QWidget* buildCurves();
  QWidget* buildTables();
  QWidget* buildWaterfallSwitch(QWidget* parent);
  void fillPickers();
  void refresh();     // looks for runs that have news
  void sampleNext();  // one run a turn of the event loop, so that no turn is long
  void show_all();
  void showHeadline();
  void showCauses();
  QString changedCounts() const;
  void showChoices();
  void showWarnings();
  std::vector<std::vector<MeasureValue>> measureColumns() const;
  void showMeasures();
  void fitMeasures();
  void showPairColumns(int row, const std::vector<MeasureValue>& values);
  void showRunColumns(int row, const std::vector<MeasureValue>& values);
  void showKernels();
  void showSpec();
  void showBars();
  const RunSample& sample(const Run* run) const;
  void chooseReport();
  void chooseRange();
  void exportChart(ChartPicture chart);
  QString captions() const;
  ChartPicture timelinePicture() const;
  ChartPicture waterfallPicture() const;
  ChartPicture barsPicture() const;

  void exportTable(const QString& title, const QString& name, const QByteArray& csv);

  std::vector<QPointer<Run>> runs_;
  QPointer<Run> baseline_, candidate_;
  std::map<const Run*, Cached> samples_;
  std::vector<QPointer<Run>> stale_;
  PairComparison comparison_;
  QTimer due_, next_, redraw_;
  QWidget* picker_;
  QComboBox *baseline_box_, *candidate_box_;
  QLabel *headline_, *times_, *causes_, *choices_, *warnings_, *legend_ = nullptr;
  PagedPane *views_, *numbers_;
  QPushButton* align_;
  QSpinBox* step_number_;
  StepView* step_;
  CurvePane *loss_, *speed_;
  BarsView* bars_;
  WaterfallView* waterfall_;
  QTableWidget *measures_, *kernels_, *spec_;
};

}  // namespace ws::app

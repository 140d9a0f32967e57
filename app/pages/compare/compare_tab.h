// The Compare page: two to eight runs side by side, what is faster, why, and what else differs.
#pragma once
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <vector>

#include "app/pages/compare/compare_samples.h"

class QComboBox;
class QLabel;
class QPushButton;
class QSpinBox;
class QSplitter;
class QTableWidget;

namespace ws::app {

class BarsView;
class FlameView;
class MeaningLegend;
class CompareExport;
class CompareHeadline;
class CompareTables;
class CurvePane;
class PagedPane;
class Pane;
class StepView;
class WaterfallView;

class CompareTab : public QWidget {
  Q_OBJECT
 public:
  explicit CompareTab(QWidget* parent = nullptr);
  void setRuns(const std::vector<Run*>& runs);  // the shown runs: the baseline first, then the candidate
  QWidget* picker() const { return picker_; }   // baseline and candidate, for the toolbar
  void swapRuns();
  void setPinned(const Run* run);  // the baseline that judges every new run; nullptr: none
  QPushButton* pinButton() const { return pin_; }
  void setPair(Run* baseline, Run* candidate);
  Run* baseline() const { return baseline_; }
  Run* candidate() const { return candidate_; }
  std::vector<Run*> ordered() const;  // the baseline first, then the candidate
  const Comparison& comparison() const { return compared_.comparison; }
  bool ready() const { return samples_.ready(); }
  StepView* timelines() const { return step_; }
  QTableWidget* measures() const;
  QTableWidget* kernels() const;
  QTableWidget* choices() const;
  CompareHeadline* headline() const { return headline_; }
  PagedPane* views() const { return views_; }
  WaterfallView* waterfall() const { return waterfall_; }
  QByteArray measuresCsv() const;
  QByteArray kernelsCsv() const;

 signals:
  void said(const QString& sentence, bool problem);
  void wrote(const QString& path);
  void pairChosen(ws::app::Run* baseline, ws::app::Run* candidate);  // by the user
  void pinWanted(const ws::app::Run* baseline);  // nullptr: unpin

 protected:
  void showEvent(QShowEvent*) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  QWidget* buildPicker();
  QWidget* buildViews();
  void buildTimelineOptions();
  QWidget* buildCurves();
  QWidget* buildFlame(FlameView*& view, const QString& empty);
  QWidget* buildDifference();
  QWidget* buildWaterfallSwitch(QWidget* parent);
  void fillPickers();
  void showPin();
  void refresh();  // checks the runs for new data
  void showAll();
  void showLegend();
  QString stepsNote() const;
  void showBars();
  void showHost();
  void showLaunches();

  std::vector<QPointer<Run>> runs_;
  QPointer<Run> baseline_, candidate_;
  CompareSamples samples_;
  ComparedRuns compared_;
  QTimer due_, redraw_;
  QComboBox *baseline_box_, *candidate_box_;
  QPushButton* pin_;
  QPointer<const Run> pinned_;
  QWidget* picker_;
  CompareHeadline* headline_;
  CompareExport* export_;
  QLabel* legend_ = nullptr;
  PagedPane* views_;
  QPushButton* align_;
  QSpinBox* step_number_;
  StepView* step_;
  MeaningLegend* colours_;
  CurvePane *loss_, *speed_;
  BarsView* bars_;
  FlameView *host_ = nullptr, *launches_ = nullptr;
  int host_page_ = -1, launches_page_ = -1;
  Pane* falls_;
  WaterfallView* waterfall_;
  CompareTables* tables_;
  QSplitter* difference_;
  bool dragged_ = false;  // the user chose the sizes of the waterfall and the tables
};

}  // namespace ws::app

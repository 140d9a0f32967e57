// The laboratory: choose an operation, sizes and ways; watch the curves grow; read crossovers, shares and ceilings;
// open any point as the timeline it came from.
#pragma once
#include <QWidget>
#include <map>
#include <optional>
#include <vector>

#include "app/pages/lab/lab_chart.h"
#include "app/pages/lab/lab_job.h"
#include "app/pages/lab/lab_torch.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;
class QSpinBox;
class QTableWidget;
class QVBoxLayout;

namespace ws::app {

class LabShareView;
class Pane;
class Run;
class SegmentedRow;

class LabTab : public QWidget {
  Q_OBJECT
 public:
  explicit LabTab(QWidget* parent = nullptr);
  void setFolder(const QString& folder);  // where sweeps are recorded; empty: nowhere
  lab::LabSpec spec() const;              // as chosen; throws Failure for an expression or a size that is wrong
  void setSpec(const lab::LabSpec& spec);
  void run();
  bool running() const { return job_->running() || torch_->running(); }
  void stop();
  void runTorch();  // the same sweep by PyTorch's script, laid over; while that runs: stops it
  void setBusyElsewhere(const QString& why) { elsewhere_ = why; }  // not empty: nothing can be measured now
  const LabJob& job() const { return *job_; }
  LabTorch* torch() const { return torch_; }
  LabChart* chart() const { return chart_; }
  LabShareView* shares() const { return shares_; }
  std::vector<LabShown> shown() const;           // the sweep itself, then what is laid over it
  bool openResult(const QString& path);          // an earlier sweep, or the PyTorch script's, laid over
  void showRuns(const std::vector<Run*>& runs);  // those of them that are sweeps are laid over
  void exportTo(const QString& path);            // png, svg, pdf or csv by the name's ending

 signals:
  void pointWanted(const QString& path, const ws::lab::Recorded& recorded);
  void busyChanged(bool busy);

 protected:
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  QWidget* buildSetup();
  QWidget* buildFooter();
  void buildOperations(QVBoxLayout* column);
  void buildSizes(QVBoxLayout* column);
  void buildWays(QVBoxLayout* column);
  void buildMeasure(QVBoxLayout* column);
  void buildLimits();
  QWidget* buildCharts();
  Pane* buildTimes();
  void buildTorch(QPushButton* button);
  Pane* buildThroughput();
  Pane* buildCrossovers();
  Pane* buildShares();
  Pane* buildStory();
  lab::Operation operation() const;
  std::vector<int64_t> chosenSizes() const;
  void ready();  // asks the machine what it can, once, when the tab is first looked at
  void operationChosen();
  void spacingChosen();
  void showSource();
  void loadPreset(const QString& path);
  void jobEnded(const QString& problem);
  void showResult();
  void showCrossovers();
  void showStory();
  void showShares();
  void chooseAxis();
  void fitPanes();
  void setCursorSize(double size);
  void openPoint(const LabPick& pick);
  void chooseOverlay();
  void layOver(lab::LabResult result, const QString& fallback);
  void chooseExport();
  void say(const QString& sentence);

  LabJob* job_;
  LabTorch* torch_ = nullptr;
  QPushButton* torch_button_ = nullptr;
  QString folder_, elsewhere_;
  QListWidget* operations_;
  QLineEdit *from_, *to_, *custom_, *expression_;
  QSpinBox *depth_, *m_, *k_, *repeats_, *warm_up_;
  QDoubleSpinBox *seconds_, *longest_, *seed_;
  SegmentedRow *spacing_, *clock_;
  QCheckBox *cold_cache_, *record_;
  QWidget *expression_row_, *depth_row_, *source_row_, *range_row_, *custom_row_, *shape_row_;
  std::map<lab::Way, QCheckBox*> ways_;
  QLabel* missing_;
  QComboBox* presets_;
  QPushButton *run_, *export_, *axis_, *clear_, *to_timeline_, *to_shares_, *to_crossovers_;
  QLabel *state_, *story_title_, *story_;
  LabChart *chart_, *throughput_;
  LabShareView* shares_;
  Pane *times_pane_, *rate_pane_, *crossovers_pane_, *shares_pane_;
  QTableWidget* crossovers_;
  std::vector<LabShown> opened_, ticked_;             // laid over by hand, and by ticking runs
  std::vector<LabShown> before_;                      // the sweep before this one
  std::map<QString, std::optional<LabShown>> known_;  // what ticked run files hold
  QString torch_note_;                                // what PyTorch's sweep left out
  QString page_;                                      // text of the chosen preset
  bool ready_ = false, shares_in_front_ = false;
};

}  // namespace ws::app

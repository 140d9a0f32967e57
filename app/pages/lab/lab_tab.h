// The laboratory: choose an operation, sizes and ways; watch the curves grow; read crossovers, shares and ceilings;
// open any point as the timeline it came from. The tab joins the form, the sweep and its results.
#pragma once
#include <QWidget>
#include <map>
#include <optional>
#include <vector>

#include "app/pages/lab/lab_form.h"
#include "app/pages/lab/lab_job.h"
#include "app/pages/lab/lab_results.h"
#include "app/pages/lab/lab_torch.h"

namespace ws::app {

class Run;

class LabTab : public QWidget {
  Q_OBJECT
 public:
  explicit LabTab(QWidget* parent = nullptr);
  void setFolder(const QString& folder);  // where sweeps are recorded; empty: nowhere
  lab::LabSpec spec() const { return form_->spec(); }
  void setSpec(const lab::LabSpec& spec) { form_->setSpec(spec); }
  void run();
  bool running() const { return job_->running() || torch_->running(); }
  void stop();
  void runTorch();  // the same sweep by PyTorch's script, laid over; while that runs: stops it
  void setBusyElsewhere(const QString& why) { elsewhere_ = why; }  // not empty: nothing can be measured now
  const LabJob& job() const { return *job_; }
  LabTorch* torch() const { return torch_; }
  LabChart* chart() const { return results_->chart(); }
  LabShareView* shares() const { return results_->shares(); }
  std::vector<LabShown> shown() const;           // the sweep itself, then what is laid over it
  bool openResult(const QString& path);          // an earlier sweep, or the PyTorch script's, laid over
  void showRuns(const std::vector<Run*>& runs);  // those of them that are sweeps are laid over
  void exportTo(const QString& path);            // png, svg, pdf or csv by the name's ending

 signals:
  void pointWanted(const QString& path, const ws::lab::Recorded& recorded);
  void busyChanged(bool busy);

 private:
  QWidget* buildFooter();
  void jobEnded(const QString& problem);
  void torchEnded(const QString& problem);
  void showResult();
  void openPoint(const LabPick& pick);
  void chooseOverlay();
  void removeOverlays();
  void layOver(lab::LabResult result, const QString& fallback);
  void chooseExport();
  void say(const QString& sentence);

  LabJob* job_;
  LabTorch* torch_;
  LabForm* form_;
  LabResults* results_;
  QPushButton *run_, *export_;
  QLabel* state_;
  QString folder_, elsewhere_;
  std::vector<LabShown> opened_, ticked_;             // laid over by hand, and by ticking runs
  std::vector<LabShown> before_;                      // the sweep before this one
  std::map<QString, std::optional<LabShown>> known_;  // what ticked run files hold
  QString torch_note_;                                // what PyTorch's sweep left out
};

}  // namespace ws::app

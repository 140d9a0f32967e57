// The laboratory page: choose an operation, sizes and variants, and see the curves, crossovers, shares and ceilings.
// Any point opens as the timeline that it was recorded from. The tab joins the form, the sweep and its results.
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

class RemoteMachine;
class Run;
struct RemoteJobInfo;

class LabTab : public QWidget {
  Q_OBJECT
 public:
  explicit LabTab(QWidget* parent = nullptr);
  void setFolder(const QString& folder);  // where sweeps are recorded; empty: do not record
  lab::LabSpec spec() const { return form_->spec(); }
  void setSpec(const lab::LabSpec& spec) { form_->setSpec(spec); }
  void run();
  bool running() const { return job_->running() || torch_->running(); }
  void stop();
  void runTorch();  // runs the same sweep in PyTorch as an overlay; stops it if it is running
  // From now on sweeps run on that machine; null: here.
  void setMachine(const std::shared_ptr<RemoteMachine>& machine);
  bool follow(const RemoteJobInfo& job);  // follows a sweep on the machine; false if something runs already
  QString place() const;                  // the other machine that measures now; empty if none does
  void leave();
  void setBusyElsewhere(const QString& why) { elsewhere_ = why; }  // not empty: why nothing can be measured now
  const LabJob& job() const { return *job_; }
  LabTorch* torch() const { return torch_; }
  LabChart* chart() const { return results_->chart(); }
  LabShareView* shares() const { return results_->shares(); }
  std::vector<LabShown> shown() const;           // the sweep itself, then the overlays; without any, the shipped result
  bool openResult(const QString& path);          // adds an earlier or a PyTorch sweep as overlay
  void showRuns(const std::vector<Run*>& runs);  // overlays those runs that are sweeps
  void exportTo(const QString& path);            // png, svg, pdf or csv by file name extension

 signals:
  void pointWanted(const QString& path, const ws::lab::Recorded& recorded);
  void busyChanged(bool busy);

 private:
  QWidget* buildFooter();
  void jobEnded(const QString& problem);
  void torchEnded(const QString& problem);
  std::vector<LabShown> results() const;  // without the shipped one
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
  std::vector<LabShown> opened_, ticked_;             // overlays opened by the user, and overlays from ticked runs
  std::vector<LabShown> before_;                      // the previous sweep
  std::map<QString, std::optional<LabShown>> known_;  // the sweeps in ticked run files
  QString torch_note_;                                // what PyTorch's sweep left out
};

}  // namespace ws::app

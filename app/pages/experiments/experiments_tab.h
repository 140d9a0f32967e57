// The page of experiments: a question, the expected result, and the result here. Runs continue after a stop or a crash.
#pragma once
#include <QWidget>
#include <functional>
#include <vector>

#include "app/pages/experiments/experiment_list.h"
#include "app/pages/experiments/experiment_chart.h"
#include "app/pages/experiments/experiment_job.h"
#include "app/pages/experiments/trial_table.h"

class QLabel;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace ws::app {

class Pane;
class TrainingSession;
struct RemoteJobInfo;

class ExperimentsTab : public QWidget {
  Q_OBJECT
 public:
  ExperimentsTab(TrainingSession* session, const QString& folder, QWidget* parent = nullptr);
  ExperimentList* list() const { return list_; }
  TrialTable* table() const { return table_; }
  ExperimentChart* chart() const { return chart_; }
  QSpinBox* repeats() const { return repeats_; }
  QPushButton* runButton() const { return run_; }
  QString conclusion() const;  // empty if there are no results yet
  QLabel* empty() const { return empty_; }  // in place of the chart, until there are results
  const ExperimentResult& result() const { return result_; }
  bool running() const { return job_->running(); }
  bool open(const QString& path);        // file of an experiment; returns false if it is none
  bool add(const ExperimentSpec& spec);  // a user's experiment, stored beside the results
  // Sets the choices that a new experiment starts with.
  void setBase(std::function<RunSpec()> base) { base_ = std::move(base); }
  void run();  // starts or continues, on the connected machine if there is one
  void stop() { job_->cancel(); }
  bool follow(const RemoteJobInfo& job);  // follows one on the connected machine; false if something runs already
  QString place() const { return job_->place(); }
  void leave() { job_->leave(); }
  bool exportTo(const QString& path);  // csv, svg, pdf or png by file name extension

 signals:
  void said(const QString& sentence, bool problem);
  void openWanted(const QString& path);  // a run file

 protected:
  void showEvent(QShowEvent*) override;

 private:
  QWidget* buildLeft();
  QWidget* buildFooter();
  QWidget* buildRight();
  QWidget* buildEnding(QWidget* parent);
  void makeNew();
  void chosen();
  void showOutcome(Outcome outcome);
  void showRest(bool shown);
  void readResult();
  void showResult();
  void showState();
  QString emptyText() const;
  void ended(const QString& problem);
  QString folderOf(const ExperimentSpec& spec) const;
  QString shownFolder() const;  // of the results that are shown
  bool cuda() const;
  bool wantsMore() const;
  bool keepEarlier();
  void openTrial(int row);
  void chooseExport();

  TrainingSession* session_;
  std::function<RunSpec()> base_;
  QString folder_;
  ExperimentJob* job_;
  ExperimentSpec spec_;
  ExperimentResult result_;
  std::vector<Trial> trials_;
  bool known_ = false;  // spec_ was read
  ExperimentList* list_;
  QLabel *title_, *text_, *rest_, *expect_, *conclusion_, *size_, *state_, *empty_;  // rest_: the text after its first paragraph
  QSpinBox* repeats_;
  QProgressBar* progress_;
  QWidget* ending_;  // under the chart: the conclusion, and what to try next
  QPushButton *run_, *export_, *outcome_, *view_, *next_, *more_;
  Pane* picture_;
  ExperimentChart* chart_;
  TrialTable* table_;
  QWidget* numbers_;  // around the table
};

}  // namespace ws::app

// Experiments: a question, what should come out, and what came out here. Runs go on where a stop or a crash left them.
#pragma once
#include <QWidget>
#include <functional>
#include <vector>

#include "app/pages/experiments/experiments_chart.h"
#include "app/pages/experiments/experiments_job.h"

class QLabel;
class QListWidget;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QTableWidget;

namespace ws::app {

class Pane;
class TrainingSession;

class ExperimentsTab : public QWidget {
  Q_OBJECT
 public:
  ExperimentsTab(TrainingSession* session, const QString& folder, QWidget* parent = nullptr);
  QListWidget* list() const { return list_; }
  QTableWidget* table() const { return table_; }
  ExperimentChart* chart() const { return chart_; }
  QSpinBox* repeats() const { return repeats_; }
  QPushButton* runButton() const { return run_; }
  const ExperimentResult& result() const { return result_; }
  bool running() const { return job_->running(); }
  bool open(const QString& path);        // an experiment's file; false: it is none
  bool add(const ExperimentSpec& spec);  // an own one, kept beside the results
  // The choices that a new experiment begins with.
  void setBase(std::function<RunSpec()> base) { base_ = std::move(base); }
  void run();  // starts, or goes on
  void stop() { job_->cancel(); }
  bool exportTo(const QString& path);  // csv, svg, pdf or png by the name's ending

 signals:
  void said(const QString& sentence, bool problem);
  void openWanted(const QString& path);  // a run file

 protected:
  void showEvent(QShowEvent*) override;
  bool eventFilter(QObject* object, QEvent* event) override;  // of the table's width

 private:
  QWidget* buildLeft();
  QWidget* buildFooter();
  QWidget* buildRight();
  void fillList();
  void addHeading(const QString& text);
  void add(const QString& title, const QString& path, bool own);
  void makeNew();
  QString ownFolder() const { return folder_ + "/own"; }
  void chosen();
  void showOutcome(Outcome outcome);
  void readResult();
  void showResult();
  void showState();
  void fitColumns();
  static QString columnTitle(int column, bool two_lines);
  int widthOfNumbers(int column) const;
  QString allNumbers(int row) const;
  void fillRow(int row, const TrialResult& trial, double first);
  void ended(const QString& problem);
  QString folderOf(const ExperimentSpec& spec) const;
  bool wantsMore() const;
  void keepEarlier();
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
  Pane* numbers_ = nullptr;
  QListWidget* list_;
  QLabel *title_, *text_, *expect_, *measured_, *size_, *state_;
  QSpinBox* repeats_;
  QProgressBar* progress_;
  QPushButton *run_, *export_, *outcome_, *view_;
  ExperimentChart* chart_;
  QTableWidget* table_;
};

}  // namespace ws::app

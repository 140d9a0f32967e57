// The page Own kernel: a person writes a kernel for one op of the plan, sees what the compiler makes of it, has it checked, and
// uses it in the training.
#pragma once
#include <QFileSystemWatcher>
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <optional>

#include "app/core/kernels/exercise.h"
#include "app/widgets/table_model.h"
#include "app/workspace/job.h"
#include "app/workspace/run.h"
#include "engine/own_kernels/kernel_build.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/analysis/stalls.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QPushButton;
class QTableView;

namespace ws::app {

class CodeEditor;
class ExerciseStrip;
class InstructionView;
class OccupancyView;
class Pane;
class StallLegend;
class StepPathView;
class Workspace;

class KernelPanel : public QWidget {
  Q_OBJECT
 public:
  explicit KernelPanel(Workspace& workspace, QWidget* parent = nullptr);
  void setRun(Run* run);
  const Run* run() const { return run_; }
  void openOp(const QString& op);            // the person chooses an op of the current run, or of the choices in Setup
  void openExercise(const QString& name);
  void openFile(const QString& name);        // of the person's list, for the current op
  void build();                              // compiles in the background, and saves what the person chose
  void buildAndCheck();
  void setUsed(bool used);
  void undoUse();
  // The checking program; tests give another one.
  void setChecker(std::vector<std::string> program) { checker_ = std::move(program); }
  void setCuda(bool cuda);                   // false: a check is not possible here

  CodeEditor* code() const { return code_; }
  ExerciseStrip* strip() const { return strip_; }
  QComboBox* opBox() const { return ops_; }
  QComboBox* fileBox() const { return files_; }
  QString file() const { return file_; }
  QString state() const;                     // "built for sm_90 in 0.21 s · 1 warning"
  QString useText() const;
  QString contract() const;
  QCheckBox* useSwitch() const { return use_; }
  const std::optional<own::KernelFacts>& facts() const { return facts_; }
  const std::vector<ShapeResult>& results() const { return results_; }
  StepPathView* steps() const { return steps_; }
  StallLegend* legend() const { return stalls_; }
  InstructionView* instructions() const { return instructions_; }
  void showInstructions(bool shown);         // of the build, or of what the run sampled of this text
  bool busy() const { return building_.running() || checking_.running(); }

 protected:
  void showEvent(QShowEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QWidget* makeEditor();
  QWidget* makeOpPane();
  QWidget* makeCheckPane();
  QWidget* makeOccupancyPane();
  QWidget* makeTimePane();
  void say(const QString& sentence, bool problem);
  void takePlan();
  void showOp(const QString& op);
  QString firstOp() const;
  void fillOps();
  void fillFiles();
  void showContract();
  void openText(const QString& name, const QString& first_text);
  bool save();
  void fileChanged();
  void takeBuild(const own::KernelBuild& build, double seconds);
  void showFacts();
  int multiprocessors() const;
  QString spreadText() const;
  void takeResult(const ShapeResult& result);
  void takeEnd(const std::optional<ExerciseResult>& exercise, size_t shapes);
  void showResults();
  void showUse();
  void showSteps();
  void showStalls();
  void fillInstructions();
  void takeInstructions();
  void newIn(own::KernelLanguage language);
  bool sampledThisText() const;
  void switchTo(const std::string& kernels);
  std::string withKernel(bool used) const;  // exec.kernels with or without this one
  QString whyNotUsed() const;
  const RunSpec& spec() const { return spec_; }
  int compute() const;

  Workspace& workspace_;
  QPointer<Run> run_;
  RunSpec spec_;
  std::optional<Plan> plan_;
  std::string op_;
  QString file_, saved_;     // name in the person's list; its text on the disk
  std::string before_use_;   // exec.kernels before the switch, for undo
  bool cuda_ = false, good_ = false, used_ = false, chosen_ = false;  // chosen_: the op or the text is the person's choice
  std::optional<own::KernelFacts> facts_;
  std::vector<char> code_built_;  // of facts_
  std::string entry_;             // the kernel in it
  std::string sampled_kernel_;    // whose instructions are shown; empty: the build's
  std::string texts_of_;          // which code texts_ are of
  std::vector<prof::Disassembly> texts_;
  std::vector<ShapeResult> results_;
  std::vector<std::string> checker_;
  std::optional<ExerciseResult> exercise_result_;

  CodeEditor* code_ = nullptr;
  StallLegend* stalls_ = nullptr;
  InstructionView* instructions_ = nullptr;
  ExerciseStrip* strip_ = nullptr;
  OccupancyView* occupancy_ = nullptr;
  StepPathView* steps_ = nullptr;
  Pane *op_pane_ = nullptr, *check_pane_ = nullptr, *occupancy_pane_ = nullptr, *time_pane_ = nullptr, *steps_pane_ = nullptr;
  QComboBox *ops_ = nullptr, *files_ = nullptr, *computes_ = nullptr, *exercises_ = nullptr;
  QLabel *contract_ = nullptr, *state_ = nullptr, *verdict_ = nullptr, *facts_text_ = nullptr, *use_text_ = nullptr;
  QPushButton *check_ = nullptr, *undo_ = nullptr, *instructions_shown_ = nullptr;
  QCheckBox* use_ = nullptr;
  TableModel check_model_, time_model_;
  TableSorter check_sorter_, time_sorter_;
  QTableView *check_table_ = nullptr, *time_table_ = nullptr;
  QFileSystemWatcher watcher_;
  QTimer soon_, looks_;
  Job building_, checking_, disassembling_;  // last, so that they end first
};

}  // namespace ws::app

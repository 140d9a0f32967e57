// The page about what a step would take if …: edits, both steps with their critical paths, the advice, and what a step would
// save if a part took no time.
#pragma once
#include <QPointer>
#include <QStringList>
#include <QTimer>
#include <QWidget>
#include <optional>

#include "app/core/proofs/proof.h"
#include "app/pages/insights/run_advice.h"
#include "app/widgets/table_model.h"
#include "app/workspace/job.h"
#include "app/workspace/run.h"
#include "profiling/causes/what_if.h"

class QLabel;
class QLineEdit;
class QMenu;
class QListWidget;
class QPushButton;
class QTableView;

namespace ws::app {

class Headlined;
class Pane;
class StepPathView;

class WhatIfPanel : public QWidget {
  Q_OBJECT
 public:
  explicit WhatIfPanel(QWidget* parent = nullptr);
  void setRun(Run* run);
  const Run* run() const { return run_; }
  bool addEdit(const QString& edit);  // false: it cannot be applied, and said() has the reason
  void ask(Run* run, const QString& edit);     // another page asks: takes the place of the advice, not of the person's edits
  void removeEdit(int index);
  void clearEdits();
  const QStringList& edits() const { return edits_; }
  const std::optional<prof::WhatIf>& result() const { return result_; }
  StepPathView* view() const { return view_; }
  QPushButton* proveButton() const { return prove_; }
  QLineEdit* input() const { return input_; }
  QLabel* proofLabel() const { return proof_; }
  QString notes() const;
  QMenu* offersMenu() const { return offers_; }
  const std::vector<Insight>& remedies() const { return remedies_; }
  QLabel* whyNotLabel() const { return why_not_; }  // why nothing can be proved now
  QString headline() const;
  void setTraining(bool busy);  // proofs wait while something trains
  void prove();

 signals:
  void said(const QString& sentence, bool problem);

 protected:
  void showEvent(QShowEvent*) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QWidget* buildEdits();
  QWidget* buildHelp();
  QWidget* buildParts();
  void build();
  void refresh();
  void takeAdvice();
  void sayHowSure(QStringList& notes, QStringList& tips) const;
  const Insight* adviceWithTheEdits() const;  // nullptr: no advice has these edits
  bool use(const QStringList& edits);
  void addRemedy(int row);
  void compute(const QStringList& edits);  // throws Failure
  void fill();
  void fillEdits();
  void fillOffers();
  void addRow(const QString& name, const QString& edit, double saves_us);  // of the sum, the edit is empty
  void fillPrediction();
  void fillTables();
  QString partsNote() const;
  void fitTables();
  QString whyNotProved() const;
  void showProof(const Proof& proof);

  QPointer<Run> run_;
  size_t spans_ = 0;  // of the run when it was computed
  RunAdvice advice_;
  std::vector<Insight> remedies_;
  size_t others_ = 0;         // cards of the page Suggestions that are findings only
  double launch_gaps_us_ = 0;  // in the split of the median step
  double facts_step_us_ = 0;  // on whose scale the advice predicts a step
  QStringList edits_;
  bool touched_ = false;  // the person changed the edits
  std::optional<prof::WhatIf> result_;
  bool training_ = false;
  Headlined* body_ = nullptr;
  StepPathView* view_ = nullptr;
  Pane *edits_pane_ = nullptr, *step_pane_ = nullptr, *help_pane_ = nullptr, *parts_pane_ = nullptr;
  QListWidget* list_ = nullptr;
  QLineEdit* input_ = nullptr;
  QLabel *together_ = nullptr, *help_note_ = nullptr, *parts_note_ = nullptr, *why_not_ = nullptr, *proof_ = nullptr;
  QMenu* offers_ = nullptr;  // edits that this run allows
  QPushButton *prove_ = nullptr, *add_ = nullptr, *clear_ = nullptr, *kind_button_ = nullptr;
  std::optional<prof::GroupKind> kind_ = prof::GroupKind::Cause;  // of the parts; nullopt: all kinds
  TableModel help_model_, parts_model_;
  TableSorter help_sorter_, parts_sorter_;
  QTableView *help_table_ = nullptr, *parts_table_ = nullptr;
  QTimer soon_;
  Job job_;  // last member, so that it ends first
};

}  // namespace ws::app

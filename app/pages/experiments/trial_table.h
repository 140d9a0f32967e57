// The numbers of an experiment, one row per choice, with as many columns as fit.
#pragma once
#include <QTableWidget>

#include "app/pages/experiments/experiments_model.h"

namespace ws::app {

class TrialTable : public QTableWidget {
  Q_OBJECT
 public:
  explicit TrialTable(QWidget* parent = nullptr);
  void setResult(const ExperimentResult& result);
  void setOutcome(Outcome outcome);  // its column always stays visible

 signals:
  void noteChanged(const QString& note);  // for the title of the pane

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void fillRow(int row, const TrialResult& trial, double first);
  void fitColumns();
  int widthOfNumbers(int column) const;
  QString allNumbers(int row) const;

  Outcome outcome_ = Outcome::StepTime;
};

}  // namespace ws::app

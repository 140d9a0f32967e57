// Two runs side by side: what is faster, why, and what else differs.
#pragma once
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <vector>

#include "app/compare/comparison_model.h"

class QComboBox;
class QLabel;
class QTableWidget;

namespace ws::app {

class MainWindow;
class StepView;
class WaterfallView;
void add_compare(MainWindow& window);

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
  const PairComparison& comparison() const { return comparison_; }
  void exportReport(const QString& path);  // .html or .pdf

 signals:
  void said(const QString& sentence, bool problem);

 private:
  QWidget* buildPicker();
  QWidget* buildHeadline();
  QWidget* buildTables();
  void fillPickers();
  void refresh();
  void showHeadline();
  void showChoices();
  void showMeasures();
  void showKernels();
  void chooseReport();

  std::vector<QPointer<Run>> runs_;
  QPointer<Run> baseline_, candidate_;
  PairComparison comparison_;
  QTimer due_;
  QWidget* picker_;
  QComboBox *baseline_box_, *candidate_box_;
  QLabel *headline_, *times_, *causes_, *choices_, *warnings_;
  StepView* step_;
  WaterfallView* waterfall_;
  QTableWidget *measures_, *kernels_;
};

}  // namespace ws::app

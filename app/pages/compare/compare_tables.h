// The tables of the Compare page: measures, kernels and choices of the runs, compared with the baseline.
#pragma once
#include "app/core/comparison/comparison.h"
#include "app/widgets/paged_pane.h"
#include "app/widgets/table_model.h"

class QComboBox;
class QTableView;
class QTableWidget;

namespace ws::app {

struct ComparedRuns;

class CompareTables : public PagedPane {
  Q_OBJECT
 public:
  explicit CompareTables(QWidget* parent = nullptr);
  void setRuns(const ComparedRuns& compared);
  QTableWidget* measures() const { return measures_; }
  QTableWidget* kernels() const { return kernels_; }
  QTableWidget* choices() const { return choices_; }
  QTableView* waits() const { return waits_; }  // where kernels wait, if both runs of a pair were sampled
  QComboBox* kernelGroups() const { return groups_; }  // what a row of kernels() is: a kernel, op, module or line
  static QByteArray measuresCsv(const ComparedRuns& compared);
  static QByteArray kernelsCsv(const Comparison& comparison);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;  // watches the width of the measures table

 private:
  void showMeasures(const ComparedRuns& compared);
  void showPairColumns(const ComparedRuns& compared, int row, const MeasureValue& a, const MeasureValue& b);
  void showRunColumns(const ComparedRuns& compared, int row, const std::vector<MeasureValue>& values);
  void fitColumns();
  void fitPairColumns();
  void fitRows();
  void elideHeads();
  void showKernels(const ComparedRuns& compared);
  void offerGroups(const Comparison& comparison);
  void fillKernels();
  void showWaits(const ComparedRuns& compared);
  void showChoices(const ComparedRuns& compared);

  size_t runs_ = 0;
  QTableWidget *measures_, *kernels_, *choices_;
  TableModel waits_model_;
  TableSorter waits_sorter_;
  QTableView* waits_;
  int waits_page_ = -1;
  QComboBox* groups_;
  int group_ = 0;  // a prof::GroupBy
  std::map<prof::GroupBy, std::vector<prof::KernelDelta>> deltas_;  // Name: by kernel
  QString baseline_, candidate_;                                    // letters
};

}  // namespace ws::app

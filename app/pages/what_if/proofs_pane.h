// How far predictions have been off: measured against predicted steps with the band of 10 %, and the errors by kind of edit.
#pragma once
#include <QString>

#include "app/core/proofs/proved_predictions.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_model.h"

class QLabel;
class QTableView;
class QVBoxLayout;

namespace ws::app {

class Plot;

class ProofsPane : public Pane {
  Q_OBJECT
 public:
  explicit ProofsPane(QWidget* parent = nullptr);
  void setProofs(const ProvedPredictions& proved);
  void addNote(QLabel* note);  // above the chart
  void mark(const Proof& proof);  // the newest one has its colour
  Plot* plot() const { return plot_; }
  const TableModel& kinds() const { return model_; }
  QString proofAt(QPointF at) const;  // what the point of the chart there is; empty if none is near

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fitTable();
  void draw();
  void drawBand(double low, double high);
  void drawPoints(const QVector<double>& predicted, const QVector<double>& measured, const QColor& colour, bool filled);

  std::vector<Proof> proofs_;
  std::optional<Proof> marked_;
  QVBoxLayout* column_;
  int notes_ = 0;
  Plot* plot_;
  QLabel* errors_;
  TableModel model_;
  TableSorter sorter_;
  QTableView* table_;
};

}  // namespace ws::app

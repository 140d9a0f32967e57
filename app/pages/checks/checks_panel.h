// How far predictions have been off: the error by the length of the measured step with the band of 10 %, and each check by kind of edit.
#pragma once
#include <QWidget>

#include "app/core/proofs/proved_predictions.h"
#include "app/widgets/table_model.h"

class QTableView;

namespace ws::app {

class Headlined;
class Plot;

class ChecksPanel : public QWidget {
  Q_OBJECT
 public:
  explicit ChecksPanel(QWidget* parent = nullptr);
  Plot* plot() const { return plot_; }
  QTableView* table() const { return table_; }
  QString headline() const;
  QString proofAt(QPointF at) const;  // what the point of the chart there is; empty if none is near

 protected:
  void showEvent(QShowEvent*) override;
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void build();
  void fill(const ProvedPredictions& proved);
  void fitTable();
  void draw();
  void drawBand(double low, double high);
  void drawPoints(const std::vector<const Proof*>& proofs, const QColor& colour, bool filled);
  bool isMarked(const Proof& proof) const;  // its row is selected, or the heading of its kind

  std::vector<Proof> proofs_;  // in the order of the rows
  std::vector<int> proof_of_row_;  // -1: a heading
  Headlined* body_;
  Plot* plot_ = nullptr;
  TableModel model_;
  QTableView* table_;
};

}  // namespace ws::app

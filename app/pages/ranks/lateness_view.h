// The map of lateness: a row for each rank, a column for each step. A click or the arrow keys choose a step.
#pragma once
#include <QImage>
#include <QWidget>

#include "app/core/report/rank_figures.h"

namespace ws::app {

class LatenessView : public QWidget {
  Q_OBJECT
 public:
  explicit LatenessView(QWidget* parent = nullptr);
  void setReport(prof::RankReport report);
  const prof::RankReport& report() const { return report_; }
  void chooseStep(int index);  // into report().steps; -1: none
  int chosenStep() const { return chosen_; }
  QRectF cellOf(size_t rank, size_t step) const;  // empty if there is no such cell
  QString tipAt(QPointF at) const;
  void render(QPainter& painter, const QRectF& area);
  QSize minimumSizeHint() const override;
  QSize sizeHint() const override;
  int mostHeight() const;  // more stays empty

 signals:
  void stepChosen(int index);
  void stepOpened(int index);  // by a double click or Enter

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override { layOut(); }
  void mousePressEvent(QMouseEvent*) override;
  void mouseDoubleClickEvent(QMouseEvent*) override;
  void keyPressEvent(QKeyEvent*) override;
  void changeEvent(QEvent*) override;
  bool event(QEvent*) override;

 private:
  struct Place {
    size_t row, column;
  };
  void layOut();
  void layOut(QSizeF size);
  void paintBars(QPainter& painter, size_t row) const;
  bool placeAt(QPointF at, Place& place) const;
  int stepAt(QPointF at) const;
  void pick(int index);

  prof::RankReport report_;
  LatenessMap map_;
  Drawing frame_;
  QImage cells_;  // one pixel a cell
  int chosen_ = -1;
};

}  // namespace ws::app

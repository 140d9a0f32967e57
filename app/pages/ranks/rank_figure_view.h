// Shows a figure about ranks in the colours of the window.
#pragma once
#include <QWidget>
#include <functional>

#include "app/core/report/rank_figures.h"

namespace ws::app {

class RankFigureView : public QWidget {
  Q_OBJECT
 public:
  using Make = std::function<Drawing(double width, double height, const FigureInk& ink)>;
  RankFigureView(const QString& name, QSize least, QWidget* parent = nullptr);
  void setFigure(Make make);
  void render(QPainter& painter, const QRectF& area) const;
  QSize minimumSizeHint() const override { return least_; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  Make make_;
  QSize least_;
};

}  // namespace ws::app

// A line of numbers above a page: a small name with its figure below.
#pragma once
#include <QWidget>
#include <vector>

namespace ws::app {

struct Figure {
  QString name, value, note;
};
class FigureStrip : public QWidget {
  Q_OBJECT
 public:
  explicit FigureStrip(QWidget* parent = nullptr);
  void setFigures(std::vector<Figure> figures);
  const std::vector<Figure>& figures() const { return figures_; }
  QSize sizeHint() const override { return {400, 58}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  std::vector<Figure> shown() const;

  std::vector<Figure> figures_;
};

}  // namespace ws::app

// One step of a kernel: a row for each multiprocessor, time from left to right. Above it the lengths of all compared
// steps: a click or the arrow keys choose one.
#pragma once
#include <QWidget>
#include <optional>

#include "app/core/report/multiprocessor_figure.h"
#include "app/workspace/report_reader.h"

namespace ws::app {

class MultiprocessorView : public QWidget {
  Q_OBJECT
 public:
  explicit MultiprocessorView(QWidget* parent = nullptr);
  void setReport(MultiprocessorReader::Report report);
  void chooseStep(size_t step);  // index into the report's steps
  size_t step() const { return map_.step; }
  void chooseBar(std::optional<prof::InnerBar> bar);  // also chooses its step
  const std::optional<prof::InnerBar>& chosenBar() const { return bar_; }
  std::optional<prof::InnerBar> barAt(QPointF at) const;  // the innermost one
  QRectF boxOf(const prof::InnerBar& bar) const;          // of the chosen step
  QRectF stepBox(size_t step) const;
  QString tipAt(QPointF at) const;
  void render(QPainter& painter, const QRectF& area);
  QSize minimumSizeHint() const override { return {260, 200}; }
  QSize sizeHint() const override { return {700, 480}; }

 signals:
  void barChosen(const ws::prof::InnerBar& bar);
  void barOpened(const ws::prof::InnerBar& bar);  // by a double click or Enter

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override { layOut(QSizeF(size())); }
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;
  void mouseDoubleClickEvent(QMouseEvent*) override;
  void keyPressEvent(QKeyEvent*) override;
  void changeEvent(QEvent*) override;
  bool event(QEvent*) override;

 private:
  void layOut(QSizeF size);
  void paintSteps(QPainter& painter) const;
  std::optional<size_t> stepAt(QPointF at) const;
  void pick(const std::optional<prof::InnerBar>& bar);
  void moveStep(int64_t to);

  MultiprocessorReader::Report report_;
  StepMap map_;
  Drawing drawing_;
  std::optional<prof::InnerBar> bar_;
  bool chosen_ = false;  // a step was chosen: a new report keeps it
};

}  // namespace ws::app

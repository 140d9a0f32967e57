// The measured and the predicted step on one axis, each with its critical path: what is on the path is strong and framed,
// the rest is faint and has no frame.
#pragma once
#include <QString>
#include <QWidget>
#include <vector>

#include "profiling/causes/span_path.h"

namespace ws::app {

// One step as bars of a few rows, in µs from its begin.
struct PathPicture {
  struct Bar {
    double begin = 0, end = 0;
    prof::Meaning meaning = prof::Meaning::Other;
    QString name;
    prof::PathOfSpan path;
    bool waits_for_data = false;
    bool made_to_fit = false;  // of a rank that an edit puts on time
    bool is_gap = false;       // time on the path before the next bar of the row: it has no block
    bool launched_before = false;  // its launch is not in the picture
  };
  struct Row {
    QString name;
    std::vector<Bar> bars;
  };
  QString title, note;  // the note stands at the right
  double length_us = 0;
  std::vector<Row> rows;
};

class StepPathView : public QWidget {
  Q_OBJECT
 public:
  explicit StepPathView(QWidget* parent = nullptr);
  void setPictures(std::vector<PathPicture> pictures);
  const std::vector<PathPicture>& pictures() const { return pictures_; }
  bool hostIsAhead() const;  // it launched the first kernels in the step before: they begin left of the launches in the picture
  QSize minimumSizeHint() const override { return {200, 180}; }

 signals:
  void barChosen(const QString& name);

 protected:
  void paintEvent(QPaintEvent*) override;
  bool event(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  double longest() const;
  double rowHeight() const;
  double x(double us) const;
  static QRectF pathName();  // in the legend
  void paintLegend(QPainter& painter) const;
  void paintAxis(QPainter& painter) const;
  double paintPicture(QPainter& painter, const PathPicture& picture, double top) const;
  void paintRow(QPainter& painter, const PathPicture::Row& row, double top) const;
  const PathPicture::Bar* barAt(QPointF at) const;

  std::vector<PathPicture> pictures_;
};

}  // namespace ws::app

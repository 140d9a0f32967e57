// One picture of what the network has learned: first-layer weights, sample predictions, confusion matrix, or the plane
// of the data with the decision boundary or the line.
#pragma once
#include <QWidget>
#include <memory>

#include "app/pages/weights/weights_probe.h"

namespace ws::app {

class LearnedView : public QWidget {
  Q_OBJECT
 public:
  enum class Kind { Filters, Samples, Confusion, Plane };
  LearnedView(Kind kind, const QString& name, QWidget* parent = nullptr);
  void setContent(std::shared_ptr<const WeightsSnapshot> snapshot, std::shared_ptr<const data::Dataset> data);
  bool hasContent() const;
  QSize sizeHint() const override { return {420, 320}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  void paintFilters(QPainter&, QRectF);
  void paintSamples(QPainter&, QRectF);
  void paintConfusion(QPainter&, QRectF);
  void paintPlane(QPainter&, QRectF);

  Kind kind_;
  std::shared_ptr<const WeightsSnapshot> snapshot_;
  std::shared_ptr<const data::Dataset> data_;
};

}  // namespace ws::app

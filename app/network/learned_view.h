// Shows one picture of what the network has learned: first-layer weights, sample predictions, wrong predictions, the
// confusion matrix, or the plane of the data with the decision boundary or the fitted line.
#pragma once
#include <QWidget>
#include <memory>

#include "app/network/weights_probe.h"

namespace ws::app {

class LearnedView : public QWidget {
  Q_OBJECT
 public:
  enum class Kind { Filters, Samples, Wrong, Confusion, Plane };
  LearnedView(Kind kind, const QString& name, QWidget* parent = nullptr);
  void setContent(std::shared_ptr<const WeightsSnapshot> snapshot, std::shared_ptr<const data::Dataset> data);
  bool hasContent() const;
  void setName(const QString& name);  // its title
  void setTight(bool tight) { tight_ = tight; }  // inside a pane: no frame, and a low title line
  QSize sizeHint() const override { return {420, 320}; }
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  void paintFilters(QPainter&, QRectF);
  void paintSamples(QPainter&, QRectF);
  void paintWrong(QPainter&, QRectF);
  void paintCaption(QPainter&, QRectF area, const QString& text);
  void paintConfusion(QPainter&, QRectF);
  void paintPlane(QPainter&, QRectF);

  Kind kind_;
  bool tight_ = false;
  std::shared_ptr<const WeightsSnapshot> snapshot_;
  std::shared_ptr<const data::Dataset> data_;
};

}  // namespace ws::app

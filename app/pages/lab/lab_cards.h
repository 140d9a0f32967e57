// Paints everything over the curves of the laboratory's chart: crossovers, the cursor and its card, the ring.
#pragma once
#include <QPainter>

#include "app/pages/lab/lab_scene.h"

namespace ws::app {

class LabCards {
 public:
  LabCards(const LabScene& scene, const LabFrame& frame, QPainter& painter) : s_(scene), f_(frame), p_(painter) {}
  void paintCrossovers();
  void paintCursor();
  void paintRing();

 private:
  QRectF besidePlace(const QPointF& at, const QSizeF& size, const std::vector<QRectF>& taken);
  bool crosses(const LabCurve& curve, const QRectF& card);
  QRectF cardPlace(double height);
  void paintCard(double size);
  void paintCardRow(const QRectF& card, double y, const LabCurve& curve, double value, double reference);

  const LabScene& s_;
  const LabFrame& f_;
  QPainter& p_;
};

}  // namespace ws::app

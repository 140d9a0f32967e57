// Paints the laboratory's chart: grid, curves, ceilings and the labels at the line ends.
#pragma once
#include <QPainter>

#include "app/pages/lab/lab_scene.h"

namespace ws::app {

class LabChartPainter {
 public:
  LabChartPainter(const LabScene& scene, const LabFrame& frame, QPainter& painter)
      : s_(scene), f_(frame), p_(painter) {}
  void paintGrid();
  void paintCurves();

 private:
  void paintCurve(const LabCurve& curve);
  void paintPitfall(const LabCurve& curve);
  void paintCeilings();
  void paintEndLabels();

  const LabScene& s_;
  const LabFrame& f_;
  QPainter& p_;
};

}  // namespace ws::app

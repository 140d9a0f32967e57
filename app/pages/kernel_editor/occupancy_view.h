// How many warps of a kernel fit into a multiprocessor, and which limit allows no more: a bar.
#pragma once
#include <QWidget>
#include <optional>

#include "engine/own_kernels/kernel_build.h"

namespace ws::app {

class OccupancyView : public QWidget {
  Q_OBJECT
 public:
  explicit OccupancyView(QWidget* parent = nullptr);
  void setOccupancy(const std::optional<own::Occupancy>& occupancy);
  QSize sizeHint() const override { return {200, 40}; }
  QSize minimumSizeHint() const override { return {120, 34}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  std::optional<own::Occupancy> occupancy_;
};

}  // namespace ws::app

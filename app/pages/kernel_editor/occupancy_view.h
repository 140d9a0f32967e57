// How much of the GPU a launch can use, as bars: the multiprocessors that get a block, and the warps that fit into one of them.
#pragma once
#include <QWidget>
#include <optional>
#include <vector>

#include "engine/own_kernels/kernel_build.h"

namespace ws::app {

class OccupancyView : public QWidget {
  Q_OBJECT
 public:
  struct Bar {
    QString name;
    int64_t used = 0, all = 0;
    bool full() const { return used >= all; }
  };
  explicit OccupancyView(QWidget* parent = nullptr);
  // `multiprocessors`: of the GPU; 0: not known, then there is no bar of them.
  void setOccupancy(const std::optional<own::Occupancy>& occupancy, int64_t blocks, int multiprocessors);
  const std::vector<Bar>& bars() const { return bars_; }
  QSize sizeHint() const override { return {200, 46}; }
  QSize minimumSizeHint() const override { return {120, 46}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  void paintBar(QPainter& painter, const Bar& bar, double top) const;

  std::vector<Bar> bars_;
};

}  // namespace ws::app

// Bars for the compared runs: the split of a step, peak memory, calls to the driver's allocator.
#pragma once
#include <QPointer>
#include <QWidget>
#include <vector>

#include "profiling/analysis/step_breakdown.h"

namespace ws::app {

struct BarRun {
  int slot = 0;
  QString title;
  prof::Breakdown parts;
  double peak_bytes = 0, calls = 0;  // NaN if unknown
};

class BarsView : public QWidget {
  Q_OBJECT
 public:
  explicit BarsView(QWidget* parent = nullptr);
  void setRuns(std::vector<BarRun> runs);
  const std::vector<BarRun>& runs() const { return runs_; }
  void render(QPainter& painter, const QRectF& area) const;
  QByteArray csv() const;
  QSize minimumSizeHint() const override { return {480, 160}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  double rowHeight(const QRectF& area) const;
  void paintSplit(QPainter& painter, const QRectF& area) const;
  void paintLegend(QPainter& painter, const QRectF& area) const;
  void paintValues(QPainter& painter, const QRectF& area, const QString& title, double BarRun::*value, int decimals,
                   double unit = 1) const;
  double most(double BarRun::*value) const;  // 0 if unknown for all runs
  void paintName(QPainter& painter, const QRectF& row, const BarRun& run, double width) const;

  std::vector<BarRun> runs_;
};

}  // namespace ws::app

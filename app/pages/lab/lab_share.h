// Where the time of one call went, for every variant at one size: copies, compute, and the remaining wait of the host.
#pragma once
#include <QWidget>
#include <vector>

#include "engine/lab/lab.h"
#include "profiling/annotate/annotate.h"

namespace ws::app {

struct LabShare {
  lab::Way way{};
  QString label;
  double copy = 0, compute = 0, rest = 0;  // shares of the host's time; they sum to 1
  double seconds = 0;
  bool known = true;  // false if copies and compute overlap
};
std::vector<LabShare> lab_shares(const lab::LabResult& result, int64_t size);

class LabShareView : public QWidget {
  Q_OBJECT
 public:
  explicit LabShareView(QWidget* parent = nullptr);
  void setShares(std::vector<LabShare> shares, lab::Operation operation);
  const std::vector<LabShare>& shares() const { return shares_; }
  QSize minimumSizeHint() const override { return {200, 100}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  void paintBar(QPainter& painter, const QRectF& bar, const LabShare& share) const;
  void paintLegend(QPainter& painter, double y) const;
  prof::Meaning work() const;

  std::vector<LabShare> shares_;
  lab::Operation operation_ = lab::Operation::MatMul;
};

}  // namespace ws::app

// From the baseline's step time to the candidate's, one bar a cause; the bars sum to the difference exactly.
#pragma once
#include <QWidget>

#include "app/compare/comparison_model.h"

namespace ws::app {

class WaterfallView : public QWidget {
  Q_OBJECT
 public:
  explicit WaterfallView(QWidget* parent = nullptr);
  // Slots −1: there are no two runs to compare.
  void setComparison(const PairComparison& comparison, int baseline_slot, int candidate_slot);
  void render(QPainter& painter, const QRectF& area) const;
  QSize minimumSizeHint() const override { return {320, 180}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  struct Bar {
    QString name;
    double from, to;
    prof::Meaning meaning;
    bool end = false;
    int slot = -1;
  };
  std::vector<Bar> bars() const;
  void paintBar(QPainter& painter, const Bar& bar, const QRectF& box, double zero, double scale) const;

  PairComparison comparison_;
  int baseline_slot_ = -1, candidate_slot_ = -1;
};

}  // namespace ws::app

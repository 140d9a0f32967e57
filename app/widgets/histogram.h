// A histogram: its bins and the widget that shows them as bars.
#pragma once
#include <QColor>
#include <QWidget>
#include <vector>

namespace ws::app {

struct HistogramData {
  double low = 0, high = 1;
  std::vector<double> counts, ghost;  // ghost: outline behind, same bins
  QString unit, caption;
  QString low_text, high_text;  // replaces number and unit at the ends
  bool log_x = false;
};
HistogramData histogram_of(const std::vector<double>& values, size_t bins, bool log_x);

class HistogramView : public QWidget {
  Q_OBJECT
 public:
  explicit HistogramView(const QString& name, QWidget* parent = nullptr);
  void setData(HistogramData data, const QColor& fill);
  const HistogramData& data() const { return data_; }
  QSize sizeHint() const override { return {240, 110}; }
  QSize minimumSizeHint() const override { return {120, 70}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  HistogramData data_;
  QColor fill_;
};

}  // namespace ws::app

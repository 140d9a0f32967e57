#include "app/widgets/histogram.h"

#include <QPainter>
#include <cmath>

#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {

HistogramData histogram_of(const std::vector<double>& values, size_t bins, bool log_x) {
  HistogramData data;
  data.log_x = log_x;
  if (values.empty() || bins == 0) return data;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  data.low = *least, data.high = *most;
  if (log_x) data.low = std::max(data.low, 1e-9), data.high = std::max(data.high, data.low * 1.0001);
  if (data.high <= data.low) data.low -= 0.5 + std::abs(data.low) * 0.01, data.high += 0.5 + std::abs(data.high) * 0.01;
  data.counts.assign(bins, 0);
  const auto place = [&](double v) {
    const double share = log_x ? std::log(std::max(v, 1e-9) / data.low) / std::log(data.high / data.low)
                               : (v - data.low) / (data.high - data.low);
    return static_cast<size_t>(std::clamp(share * static_cast<double>(bins), 0.0, static_cast<double>(bins) - 1));
  };
  for (double v : values) data.counts[place(v)] += 1;
  return data;
}

HistogramView::HistogramView(const QString& name, QWidget* parent) : QWidget(parent) { setAccessibleName(name); }

void HistogramView::setData(HistogramData data, const QColor& fill) {
  data_ = std::move(data), fill_ = fill;
  update();
}

void HistogramView::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.fillRect(rect(), t.base);
  const QRectF plot = QRectF(rect()).adjusted(10, 20, -10, -20);
  const QFont font = ui_font(11);
  painter.setFont(font);
  painter.setPen(t.secondary);
  painter.drawText(QRectF(10, 2, width() - 20, 16), Qt::AlignLeft | Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(data_.caption, Qt::ElideRight, width() - 20));
  painter.fillRect(QRectF(plot.left(), plot.bottom(), plot.width(), 1), t.strong_border);
  if (data_.counts.empty()) return;
  double top = 1;
  for (const auto* list : {&data_.counts, &data_.ghost})
    for (double c : *list) top = std::max(top, c);
  const double width = plot.width() / static_cast<double>(data_.counts.size());
  const auto box = [&](size_t i, double count) {
    const double high = count > 0 ? std::max(1.0, count / top * plot.height()) : 0;
    return QRectF(plot.left() + width * static_cast<double>(i), plot.bottom() - high, std::max(1.0, width - 1), high);
  };
  for (size_t i = 0; i < data_.counts.size(); ++i) painter.fillRect(box(i, data_.counts[i]), fill_);
  painter.setPen(QPen(t.quiet, 1));
  for (size_t i = 0; i < data_.ghost.size(); ++i) {
    const QRectF bar = box(i, data_.ghost[i]);
    painter.drawLine(bar.topLeft(), bar.topRight());
    if (i + 1 < data_.ghost.size())
      painter.drawLine(bar.topRight(), QPointF(bar.right(), box(i + 1, data_.ghost[i + 1]).top()));
  }
  painter.setPen(t.quiet);
  const QRectF axis(plot.left(), plot.bottom() + 2, plot.width(), 16);
  draw_number(painter, axis, Qt::AlignLeft | Qt::AlignVCenter,
              data_.low_text.isEmpty() ? significant_text(data_.low) : data_.low_text);
  draw_number(painter, axis, Qt::AlignRight | Qt::AlignVCenter,
              data_.high_text.isEmpty() ? significant_text(data_.high) + " " + data_.unit : data_.high_text);
}

}  // namespace ws::app

#include "app/network/learned_view.h"

#include <QPainter>
#include <QPainterPath>
#include <cmath>

#include "app/network/network_images.h"
#include "app/network/tile_view.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kMostFilters = 40, kMostPoints = 1500, kPixelsOfPoint = 55;
constexpr int kTightTop = 26, kTightBottom = 4;
constexpr int kWrongWords = 16, kLeastWrong = 34;  // of a misread picture: its words' height, its least side

// "y = 2.00 x + 0.99 · x from −1.00 to 1.00". A curve or a plane shows its y range instead of the equation.
QString plane_text(const WeightsSnapshot& s, float y_low, float y_high) {
  const auto number = [](float value) { return significant_text(static_cast<double>(value)); };
  const QString x = QObject::tr("x from %1 to %2").arg(number(s.x_low), number(s.x_high));
  const auto line = straight_line(s);
  if (!line) return x + QObject::tr(" · y from %1 to %2").arg(number(y_low), number(y_high));
  const bool below = line->at_zero < 0;
  return QObject::tr("y = %1 x %2 %3 · ")
             .arg(significant_text(line->slope), below ? QStringLiteral("−") : QStringLiteral("+"),
                  significant_text(std::abs(line->at_zero))) +
         x;
}

QString class_name(const data::Dataset& data, int index) {
  return static_cast<size_t>(index) < data.class_names.size()
             ? QString::fromStdString(data.class_names[static_cast<size_t>(index)])
             : QString::number(index);
}

}  // namespace

LearnedView::LearnedView(Kind kind, const QString& name, QWidget* parent) : QWidget(parent), kind_(kind) {
  setAccessibleName(name);
}

void LearnedView::setContent(std::shared_ptr<const WeightsSnapshot> snapshot,
                             std::shared_ptr<const data::Dataset> rows) {
  snapshot_ = std::move(snapshot), data_ = std::move(rows);
  update();
}

void LearnedView::setName(const QString& name) {
  if (name == accessibleName()) return;
  setAccessibleName(name);
  update();
}

QSize LearnedView::minimumSizeHint() const {
  return {100, kind_ == Kind::Wrong ? kTightTop + kTightBottom + kLeastWrong + kWrongWords : 50};
}

bool LearnedView::hasContent() const {
  if (!snapshot_ || !data_) return false;
  const bool pictures = data_->image_width > 0;
  switch (kind_) {
    case Kind::Filters:
      return pictures && snapshot_->model && first_filter_layer(*snapshot_->model).has_value();
    case Kind::Samples:
      return !snapshot_->samples.empty() && snapshot_->boundary.empty();  // a plane shows each row itself
    case Kind::Wrong:
      return pictures && !snapshot_->confusion.empty();
    case Kind::Confusion:
      return !snapshot_->confusion.empty();
    case Kind::Plane:
      return !snapshot_->line_x.empty() || !snapshot_->boundary.empty();
  }
  return false;
}

void LearnedView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& t = theme();
  painter.fillRect(rect(), t.base);
  if (!tight_) {
    painter.setPen(t.border);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
  painter.setPen(tight_ ? t.secondary : t.text);
  painter.setFont(tight_ ? ui_font(11) : ui_font(12.5, 600));
  const int space = width() - 20;  // the part after a colon goes first
  const QString name = painter.fontMetrics().horizontalAdvance(accessibleName()) > space ? accessibleName().section(':', 0, 0) : accessibleName();
  painter.drawText(QRectF(10, 4, space, 20), Qt::AlignVCenter, painter.fontMetrics().elidedText(name, Qt::ElideRight, space));
  if (!hasContent()) return;
  const QRectF area = QRectF(rect()).adjusted(10, tight_ ? kTightTop : 30, -10, tight_ ? -kTightBottom : -10);
  switch (kind_) {
    case Kind::Filters:
      return paintFilters(painter, area);
    case Kind::Samples:
      return paintSamples(painter, area);
    case Kind::Wrong:
      return paintWrong(painter, area);
    case Kind::Confusion:
      return paintConfusion(painter, area);
    case Kind::Plane:
      return paintPlane(painter, area);
  }
}

// Draws the caption to the right of the title, if it fits.
void LearnedView::paintCaption(QPainter& painter, QRectF area, const QString& text) {
  const double title = QFontMetricsF(tight_ ? ui_font(11) : ui_font(12.5, 600)).horizontalAdvance(accessibleName());
  painter.setFont(ui_font(11));
  painter.setPen(theme().quiet);
  if (painter.fontMetrics().horizontalAdvance(text) + title + 12 > area.width()) return;
  painter.drawText(QRectF(area.left(), 4, area.width(), 20), Qt::AlignRight | Qt::AlignVCenter, text);
}

void LearnedView::paintFilters(QPainter& painter, QRectF area) {
  const size_t layer = *first_filter_layer(*snapshot_->model);
  const int64_t all = filter_count(*snapshot_->model, layer);
  const auto& weights = (*snapshot_->parameters)[index(snapshot_->model->layer_parameters[layer][0])];
  const TileLayout by = layout_tiles(area.size(), static_cast<int>(std::min<int64_t>(kMostFilters, all)), 0, 8, 400);
  // One more column if there is space.
  const int rows = (by.shown + by.columns - 1) / std::max(1, by.columns);
  const int columns = std::max(by.columns, static_cast<int>(area.width() / (by.side + 4)));
  const int count = static_cast<int>(std::min<int64_t>(all, static_cast<int64_t>(columns) * rows));
  paintCaption(painter, area, count < all ? tr("%1 of %2 filters").arg(count).arg(all) : tr("%1 filters").arg(count));
  painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
  painter.setPen(theme().border);  // a filter of zeros has the colour of the ground
  for (int i = 0; i < count; ++i) {
    const QRectF place(area.left() + (by.side + 4) * (i % columns), area.top() + (by.side + 4) * (i / columns), by.side, by.side);
    painter.drawImage(place, filter_image(*snapshot_->model, layer, weights, i));
    painter.drawRect(place);
  }
}

void LearnedView::paintSamples(QPainter& painter, QRectF area) {
  const Theme& t = theme();
  const data::Split& part = shown_part(*data_);
  const bool pictures = data_->image_width > 0;
  constexpr double kGap = 6, kWords = 20, kMostSide = 92;
  double side = 46;  // enlarged while all of them fit
  const auto count = static_cast<double>(snapshot_->samples.size());
  while (pictures && side < kMostSide &&
         std::ceil(count / std::floor(area.width() / (side + 1 + kGap))) * (side + 1 + kWords) <= area.height())
    ++side;
  const double wide = pictures ? side + kGap : 150, high = pictures ? side + kWords : 20;
  const int columns = std::max(1, static_cast<int>(area.width() / wide));
  painter.setFont(ui_font(11));
  for (size_t i = 0; i < snapshot_->samples.size(); ++i) {
    const SamplePrediction& s = snapshot_->samples[i];
    const QPointF at(area.left() + wide * static_cast<double>(i % static_cast<size_t>(columns)),
                     area.top() + high * static_cast<double>(i / static_cast<size_t>(columns)));
    if (at.y() + high > area.bottom()) break;
    if (pictures) painter.drawImage(QRectF(at.x(), at.y(), side, side), row_image(*data_, part, s.row));
    const bool right = s.truth == s.guess;
    painter.setPen(right ? t.secondary : t.worse);
    const QString text =
        (right ? QStringLiteral("✓ ") : QStringLiteral("✗ ")) + class_name(*data_, s.guess) +
        (pictures ? QString() : QStringLiteral(" · ") + fixed_text(static_cast<double>(s.confidence) * 100, 0) + " %");
    painter.drawText(QRectF(at.x(), at.y() + (pictures ? side + 1 : 0), wide - 4, 17), Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(wide) - 4));
  }
}

// Shows each with its guess and the truth, as many as fit.
void LearnedView::paintWrong(QPainter& painter, QRectF area) {
  const Theme& t = theme();
  const data::Split& part = shown_part(*data_);
  constexpr double kGap = 6, kWords = kWrongWords, kMostSide = 42;
  const double side = std::clamp<double>(area.height() - kWords, kLeastWrong, kMostSide), wide = side + kGap;
  const auto columns = std::max<size_t>(1, static_cast<size_t>((area.width() + kGap) / wide));
  const auto rows = std::max<size_t>(1, static_cast<size_t>((area.height() + kGap) / (side + kWords)));
  const size_t shown = std::min(snapshot_->wrong.size(), columns * rows);
  painter.setFont(ui_font(10.5));
  for (size_t i = 0; i < shown; ++i) {
    const SamplePrediction& s = snapshot_->wrong[i];
    const QPointF at(area.left() + wide * static_cast<double>(i % columns),
                     area.top() + (side + kWords) * static_cast<double>(i / columns));
    painter.drawImage(QRectF(at.x(), at.y(), side, side), row_image(*data_, part, s.row));
    painter.setPen(t.worse);
    const QString words = class_name(*data_, s.guess) + " → " + class_name(*data_, s.truth);
    painter.drawText(QRectF(at.x(), at.y() + side, side, kWords), Qt::AlignCenter,
                     painter.fontMetrics().elidedText(words, Qt::ElideRight, static_cast<int>(side)));
  }
  paintCaption(painter, area,
               tr("%1 of %2").arg(count_text(snapshot_->wrong_rows), count_text(snapshot_->confusion_rows)));
}

void LearnedView::paintConfusion(QPainter& painter, QRectF area) {
  const Theme& t = theme();
  const auto& matrix = snapshot_->confusion;
  const auto n = static_cast<double>(matrix.size());
  const QRectF box = area.adjusted(66, 18, 0, 0);
  const double cell = std::min(box.width() / n, box.height() / n);
  painter.setFont(ui_font(11));
  for (size_t truth = 0; truth < matrix.size(); ++truth) {
    int total = 0;
    for (int count : matrix[truth]) total += count;
    painter.setPen(t.quiet);
    painter.drawText(QRectF(area.left(), box.top() + cell * static_cast<double>(truth), 60, cell),
                     Qt::AlignRight | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(class_name(*data_, static_cast<int>(truth)), Qt::ElideRight, 60));
    painter.drawText(QRectF(box.left() + cell * static_cast<double>(truth), box.top() - 18, cell, 16), Qt::AlignCenter,
                     painter.fontMetrics().elidedText(class_name(*data_, static_cast<int>(truth)), Qt::ElideRight,
                                                      static_cast<int>(cell) - 6));
    for (size_t guess = 0; guess < matrix.size(); ++guess) {
      const int count = matrix[truth][guess];
      const QRectF place(box.left() + cell * static_cast<double>(guess), box.top() + cell * static_cast<double>(truth),
                         cell - 2, cell - 2);
      QColor fill = truth == guess ? t.of(prof::Meaning::Matrix) : t.worse;
      fill.setAlphaF(total ? static_cast<float>(0.08 + 0.75 * std::sqrt(static_cast<double>(count) / total)) : 0.05F);
      painter.fillRect(place, count ? fill : t.header);
      if (count && cell > 15)
        painter.setPen(t.text), draw_number(painter, place, Qt::AlignCenter, QString::number(count));
    }
  }
  paintCaption(painter, area, tr("row: truth · column: predicted · %1 rows").arg(count_text(snapshot_->confusion_rows)));
}

void LearnedView::paintPlane(QPainter& painter, QRectF area) {
  const Theme& t = theme();
  const WeightsSnapshot& s = *snapshot_;
  const bool line = !s.line_x.empty();
  float low = s.y_low, high = s.y_high;
  if (line) {
    const auto [least, most] = std::minmax_element(data_->train.targets.begin(), data_->train.targets.end());
    low = *least - (*most - *least) * 0.08F, high = *most + (*most - *least) * 0.08F + 1e-6F;
  }
  const auto at = [&](float x, float y) {
    return QPointF(area.left() + static_cast<double>((x - s.x_low) / (s.x_high - s.x_low)) * area.width(),
                   area.bottom() - static_cast<double>((y - low) / (high - low)) * area.height());
  };
  if (!line) {
    QImage ground(s.boundary_side, s.boundary_side, QImage::Format_ARGB32);
    for (int i = 0; i < s.boundary_side * s.boundary_side; ++i) {
      QColor fill = t.data_class[s.boundary[static_cast<size_t>(i)] % 8];
      fill.setAlphaF(0.36F);
      ground.setPixelColor(i % s.boundary_side, i / s.boundary_side, fill);
    }
    painter.setRenderHint(QPainter::SmoothPixmapTransform);
    painter.drawImage(area, ground);
  }
  paintCaption(painter, area, plane_text(s, low, high));
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setClipRect(area);
  // In a small plane, few and small points leave the boundary in sight.
  const double radius = std::clamp(std::min(area.width(), area.height()) / 70, 1.2, 3.0);
  const auto most = std::clamp<int64_t>(std::llround(area.width() * area.height() / kPixelsOfPoint), 100, kMostPoints);
  const int64_t step = std::max<int64_t>(1, data_->train.rows / most);
  // Classes often take turns in the data: a fixed stride could meet one of them only.
  for (int64_t row = 0, drawn = 0; row < data_->train.rows; row += step, ++drawn) {
    const auto i = static_cast<size_t>(std::min(row + drawn * 7919 % step, data_->train.rows - 1));
    const QPointF place =
        line ? at(data_->train.x[i], data_->train.targets[i]) : at(data_->train.x[i * 2], data_->train.x[i * 2 + 1]);
    painter.setPen(radius < 2 ? QPen(Qt::NoPen) : QPen(t.base, 0.8));
    painter.setBrush(line ? t.quiet : t.data_class[data_->train.labels[i] % 8]);
    painter.drawEllipse(place, radius, radius);
  }
  if (!line) return;
  QPainterPath path(at(s.line_x[0], s.line_y[0]));
  for (size_t i = 1; i < s.line_x.size() && i < s.line_y.size(); ++i) path.lineTo(at(s.line_x[i], s.line_y[i]));
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(t.text, 2));
  painter.drawPath(path);
}

}  // namespace ws::app

#include "app/charts/plot.h"

#include <cmath>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr size_t kMostViews = 60;
constexpr int kOneGestureMs = 450;

QString tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) return QString::number(value / 1e6, 'g', 3) + "M";
  if (size >= 1e4) return QString::number(value / 1e3, 'g', 4) + "k";
  if (size != 0 && size < 1e-4) return QString::number(value, 'g', 3);
  return QString::number(value, 'g', 4).replace('-', QChar(0x2212));
}

constexpr int kAboveCurves = 8, kValueLine = 18;  // pixels above the curves
constexpr int kLeftOfCurves = 34, kNameSize = 11;
constexpr int kBesideName = 14;  // half of the first number of the axis

// Leaves out labels that would touch.
class LinearTicker : public QCPAxisTicker {
 public:
  explicit LinearTicker(const QCPAxis* axis) : axis_(axis) {}

 private:
  QString getTickLabel(double tick, const QLocale&, QChar, int) override { return tick_text(tick); }
  QVector<QString> createLabelVector(const QVector<double>& ticks, const QLocale& locale, QChar format,
                                     int precision) override {
    constexpr double kApart = 8;
    QVector<QString> labels = QCPAxisTicker::createLabelVector(ticks, locale, format, precision);
    if (ticks.size() < 2) return labels;
    const double pitch = std::abs(axis_->coordToPixel(ticks[1]) - axis_->coordToPixel(ticks[0]));
    const QFontMetricsF metrics(axis_->tickLabelFont());
    double longest = axis_->orientation() == Qt::Vertical ? metrics.height() - kApart / 2 : 0;
    for (const QString& label : labels)
      if (axis_->orientation() == Qt::Horizontal) longest = std::max(longest, metrics.horizontalAdvance(label));
    const int stride = static_cast<int>(std::ceil((longest + kApart) / std::max(pitch, 1.0)));
    for (int i = 0; i < labels.size(); ++i)
      if (i % stride != 0) labels[i].clear();
    return labels;
  }
  const QCPAxis* axis_;
};
class LogTicker : public QCPAxisTickerLog {
  // Within one or two decades: ticks at 1, 2 and 5, because their labels fit.
  QVector<double> createTickVector(double step, const QCPRange& range) override {
    const QVector<double> all = QCPAxisTickerLog::createTickVector(step, range);
    QVector<double> round;
    for (double power = std::pow(10, std::floor(std::log10(std::max(range.lower, 1e-300)))); power <= range.upper;
         power *= 10)
      for (double factor : {1.0, 2.0, 5.0})
        if (range.contains(factor * power)) round << factor * power;
    const bool many = range.upper > 100 * range.lower;
    return many || range.lower <= 0 || round.size() < 2 ? all : round;
  }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override { return tick_text(tick); }
};

}  // namespace

Plot::Plot(QWidget* parent) : QCustomPlot(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setPlottingHint(QCP::phCacheLabels, true);
  setNoAntialiasingOnDrag(true);
  for (QCPAxis* axis : {xAxis, yAxis}) {
    auto ticker = QSharedPointer<QCPAxisTicker>(new LinearTicker(axis));
    ticker->setTickCount(5);
    axis->setTicker(ticker);
    axis->setSubTicks(false);
    axis->setTickLength(0, 4);
    axis->setTickLabelPadding(4);
    axis->grid()->setSubGridVisible(false);
  }
  xAxis->setTickLabelPadding(2);
  axisRect()->setAutoMargins(QCP::msLeft | QCP::msBottom);
  axisRect()->setMinimumMargins(QMargins(kLeftOfCurves, kAboveCurves, 10, 20));
  setValueLine(false);
  applyTheme();
}

void Plot::applyTheme() {
  const Theme& t = theme();
  setBackground(t.base);
  for (QCPAxis* axis : {xAxis, yAxis}) {
    axis->setBasePen(QPen(t.strong_border, 1));
    axis->setTickPen(QPen(t.strong_border, 1));
    axis->setSubTickPen(Qt::NoPen);
    axis->setTickLabelColor(t.secondary);
    axis->setTickLabelFont(number_font(11));
    axis->grid()->setPen(QPen(t.grid, 1));
    axis->grid()->setSubGridPen(QPen(t.minor_grid, 1));
    axis->grid()->setZeroLinePen(QPen(t.grid, 1));
    axis->grid()->setAntialiased(false);
  }
}

void Plot::setLog(QCPAxis* axis, bool on) {
  axis->setScaleType(on ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
  auto ticker = on ? QSharedPointer<QCPAxisTicker>(new LogTicker) : QSharedPointer<QCPAxisTicker>(new LinearTicker(axis));
  ticker->setTickCount(5);
  axis->setTicker(ticker);
  axis->setSubTicks(on);
  axis->setSubTickLength(0, 0);
  axis->grid()->setSubGridVisible(on);
}

void Plot::setXName(const QString& name) {
  if (name == x_name_) return;
  x_name_ = name;
  const int wanted = static_cast<int>(std::ceil(QFontMetricsF(ui_font(kNameSize)).horizontalAdvance(name))) + kBesideName + 2;
  axisRect()->setMinimumMargins(QMargins(std::max(kLeftOfCurves, wanted), kAboveCurves, 10, 20));
  replot(rpQueuedReplot);
}

void Plot::setCursor(std::optional<double> x) {
  if (cursor_ == x) return;
  cursor_ = x;
  update();
}

void Plot::setOverlay(std::vector<PlotDot> dots, std::vector<PlotMark> marks, std::vector<PlotNote> notes) {
  dots_ = std::move(dots), marks_ = std::move(marks), notes_ = std::move(notes);
  update();
}

void Plot::setValues(std::vector<PlotValue> values) {
  values_ = std::move(values);
  update();
}

void Plot::setValueLine(bool on) {
  const QMargins before = axisRect()->margins(), margins(before.left(), on ? kValueLine + 2 : kAboveCurves, 10, before.bottom());
  if (margins == before) return;
  axisRect()->setMargins(margins);
  replot(rpQueuedReplot);
}

void Plot::setEmptyText(const QString& text) {
  empty_ = text;
  update();
}

void Plot::setCaption(const QString& text, Qt::Alignment corner) {
  caption_ = text, caption_corner_ = corner;
  update();
}

void Plot::remember(bool in_small_steps) {
  const bool same = in_small_steps && last_step_.isValid() && last_step_.elapsed() < kOneGestureMs;
  in_small_steps ? static_cast<void>(last_step_.start()) : last_step_.invalidate();
  if (same && !undo_.empty()) return;
  undo_.push_back({xAxis->range(), yAxis->range(), zoomed_});
  if (undo_.size() > kMostViews) undo_.erase(undo_.begin());
}

void Plot::zoomTo(double from, double to, bool in_small_steps) {
  if (!(to > from)) return;
  remember(in_small_steps);
  zoomed_ = true;
  xAxis->setRange(from, to);
  emit zoomChanged();
}

void Plot::fit() {
  if (zoomed_) remember(false);
  zoomed_ = false;
  emit zoomChanged();
}

void Plot::forgetZoom() {
  undo_.clear();
  zoomed_ = false;
}

void Plot::undoZoom() {
  if (undo_.empty()) return;
  const View view = undo_.back();
  undo_.pop_back();
  zoomed_ = view.zoomed;
  last_step_.invalidate();
  xAxis->setRange(view.x);
  yAxis->setRange(view.y);
  emit zoomChanged();
}

void Plot::paintCursor(QPainter& painter) {
  const QRect area = axisRect()->rect();
  if (cursor_ && xAxis->range().contains(*cursor_)) {
    const double x = std::round(xAxis->coordToPixel(*cursor_)) + 0.5;
    QPen pen(theme().text, 1);
    pen.setDashPattern({3, 2});
    painter.setPen(pen);
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  }
  painter.setRenderHint(QPainter::Antialiasing);
  for (const PlotDot& dot : dots_) {
    if (!xAxis->range().contains(dot.x)) continue;
    const QPointF at(xAxis->coordToPixel(dot.x), yAxis->coordToPixel(dot.y));
    painter.setPen(QPen(dot.open ? dot.colour : theme().base, 1.5));
    painter.setBrush(dot.open ? theme().base : dot.colour);
    painter.drawEllipse(at, dot.open ? 4 : 3.5, dot.open ? 4 : 3.5);
  }
}

void Plot::paintMarks(QPainter& painter) {
  const QRect area = axisRect()->rect();
  painter.setFont(ui_font(10.5));
  double free_from = area.left();
  std::vector<QRectF>& taken = noted_;  // a text that would cover another is left out
  taken.clear();
  for (const PlotMark& mark : marks_) {
    if (!xAxis->range().contains(mark.x)) continue;
    const double x = std::round(xAxis->coordToPixel(mark.x)) + 0.5;
    painter.setPen(QPen(theme().focus, 1, Qt::DotLine));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(mark.text);
    double left = x + 4;
    if (left + width > area.right()) left = x - 4 - width;
    if (left < free_from) continue;
    painter.setPen(theme().secondary);
    painter.drawText(QPointF(left, area.top() + 11), mark.text);
    taken.emplace_back(left, area.top() - 1.0, width, 15);
    free_from = left + width + 6;
  }
  for (const PlotNote& note : notes_) {
    if (!xAxis->range().contains(note.x)) continue;
    painter.setPen(note.colour);
    const QPointF at(xAxis->coordToPixel(note.x), yAxis->coordToPixel(note.y));
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(note.text);
    const double x =
        std::clamp(at.x() - width / 2, area.left() + 4.0, std::max(area.left() + 4.0, area.right() - width - 5.0));
    const auto place_at = [&](double y) { return QRectF(x, y - 12, width, 15); };
    const auto is_free = [&](const QRectF& place) { return std::ranges::none_of(taken, [&](const QRectF& other) { return other.intersects(place); }); };
    double y = at.y() - 7 < area.top() + 12 ? at.y() + 16 : at.y() - 7;
    if (!is_free(place_at(y)) && at.y() + 20 < area.bottom()) y = at.y() + 16;
    const QRectF place = place_at(y);
    if (!is_free(place)) continue;
    taken.push_back(place);
    QColor ground = theme().base;  // curves run behind the text
    ground.setAlphaF(0.8F);
    painter.fillRect(place.adjusted(-2, 1, 2, 0), ground);
    painter.drawText(QPointF(x, y), note.text);
  }
}

int Plot::crossings(const QRectF& box) const {
  int count = 0;
  for (int i = 0; i < graphCount(); ++i) {
    const auto points = graph(i)->data();
    QPointF last;
    bool any = false;
    for (auto at = points->findBegin(xAxis->pixelToCoord(box.left())); at != points->constEnd(); ++at) {
      const QPointF now(xAxis->coordToPixel(at->key), yAxis->coordToPixel(at->value));
      if (any) {  // the part of the line that is over the box
        const auto y = [&](double x) {
          const double share =
              now.x() > last.x() ? (std::clamp(x, last.x(), now.x()) - last.x()) / (now.x() - last.x()) : 1;
          return last.y() + (now.y() - last.y()) * share;
        };
        const auto [high, low] = std::minmax({y(box.left()), y(box.right())});
        count += low >= box.top() && high <= box.bottom();
      }
      if (now.x() > box.right()) break;
      last = now, any = true;
    }
  }
  for (const PlotDot& dot : dots_)
    count += box.contains(QPointF(xAxis->coordToPixel(dot.x), yAxis->coordToPixel(dot.y)));
  for (const QRectF& note : noted_) count += 10 * note.intersects(box);
  return count;
}

QRectF Plot::captionBox() const {
  if (caption_.isEmpty() || !empty_.isEmpty()) return {};
  const QRectF area = QRectF(axisRect()->rect()).adjusted(6, 2, -4, -3);
  const QSizeF size(QFontMetricsF(ui_font(10.5)).horizontalAdvance(caption_) + 1, 15);
  const auto box = [&](Qt::Alignment corner) {
    return QRectF(QPointF(corner & Qt::AlignRight ? area.right() - size.width() : area.left(),
                          corner & Qt::AlignBottom ? area.bottom() - size.height() : area.top()),
                  size);
  };
  QRectF best = box(caption_corner_);
  int least = crossings(best);
  for (Qt::Alignment corner : {Qt::AlignRight | Qt::AlignTop, Qt::AlignRight | Qt::AlignBottom,
                               Qt::AlignLeft | Qt::AlignBottom, Qt::AlignLeft | Qt::AlignTop}) {
    if (least == 0) break;
    if (const int count = crossings(box(corner)); count < least) best = box(corner), least = count;
  }
  // In the middle there is free space if curves run along the top and the bottom.
  const QRectF between(QPointF(area.right() - size.width(), area.center().y() - size.height() / 2), size);
  if (least > 0 && crossings(between) < least) best = between;
  return best;
}

void Plot::paintXName(QPainter& painter) const {
  const QRect area = axisRect()->rect();
  painter.setFont(ui_font(kNameSize));
  painter.setPen(theme().quiet);
  painter.drawText(QRectF(0, area.bottom() + 1, area.left() - kBesideName, height() - area.bottom() - 1.0), Qt::AlignRight | Qt::AlignVCenter, x_name_);
}

void Plot::paintCaption(QPainter& painter) {
  const QRectF box = captionBox();
  if (box.isEmpty()) return;
  QColor ground = theme().base;
  ground.setAlphaF(0.8F);
  painter.fillRect(box.adjusted(-2, 0, 2, 0), ground);
  painter.setFont(ui_font(10.5));
  painter.drawText(box, Qt::AlignLeft | Qt::AlignVCenter, caption_);
}

// In a row at the right, above the curves.
void Plot::paintLastValues(QPainter& painter) {
  constexpr double kBadge = 19, kApart = 8;
  const QFont font = ui_font(11.5, 600);
  const QRectF area(axisRect()->rect());
  double width = -kApart;
  for (const PlotValue& value : values_) width += kBadge + number_width(font, value.text) + kApart;
  if (width > this->width() - 8 || area.top() < kValueLine) return;
  painter.setClipping(false);
  double x = area.right() - width;
  for (const PlotValue& value : values_) {
    const double number = number_width(font, value.text);
    draw_badge(painter, QRectF(x, 1.5, 15, 15), value.slot);
    painter.setFont(font);
    painter.setPen(theme().text);
    draw_number(painter, QRectF(x + kBadge, 0, number, kValueLine), Qt::AlignLeft | Qt::AlignVCenter, value.text);
    x += kBadge + number + kApart;
  }
}

void Plot::paintValues(QPainter& painter) {
  if (!cursor_ && !values_.empty()) return paintLastValues(painter);
  if (values_.empty() || !xAxis->range().contains(*cursor_)) return;
  constexpr double kLine = 17, kPad = 5, kAside = 8;
  const QRectF area(axisRect()->rect());
  double width = 0;
  for (const PlotValue& value : values_) width = std::max(width, number_width(ui_font(11.5, 600), value.text));
  const double x = xAxis->coordToPixel(*cursor_);
  QRectF card(x + kAside, area.top(), width + 15 + 6 + 2 * kPad, kLine * static_cast<double>(values_.size()) + kPad);
  if (card.right() > area.right()) card.moveRight(x - kAside);
  painter.setPen(QPen(theme().strong_border, 1));
  painter.setBrush(theme().raised);
  painter.drawRoundedRect(card.adjusted(.5, .5, -.5, -.5), 4, 4);
  double y = card.top() + kPad / 2;
  for (const PlotValue& value : values_) {
    draw_badge(painter, QRectF(card.left() + kPad, y + 1, 15, 15), value.slot);
    painter.setFont(ui_font(11.5, 600));
    painter.setPen(theme().text);
    draw_number(painter, QRectF(card.left() + kPad + 21, y, width, kLine), Qt::AlignLeft | Qt::AlignVCenter, value.text);
    y += kLine;
  }
}

void Plot::paintEvent(QPaintEvent* event) {
  // QCustomPlot keeps the pixel ratio of the screen it was created on. Follow the screen that shows it.
  if (!qFuzzyCompare(bufferDevicePixelRatio(), devicePixelRatioF())) {
    setBufferDevicePixelRatio(devicePixelRatioF());
    replot(QCustomPlot::rpImmediateRefresh);
  }
  QCustomPlot::paintEvent(event);
  QPainter painter(this);
  paintXName(painter);
  painter.setClipRect(axisRect()->rect().adjusted(-5, -8, 10, 5));
  paintMarks(painter);
  paintCursor(painter);
  if (drag_ && press_) {
    QColor fill = theme().focus;
    fill.setAlphaF(0.12F);
    painter.fillRect(
        QRect(QPoint(press_->x(), axisRect()->top()), QPoint(drag_->x(), axisRect()->bottom())).normalized(), fill);
  }
  painter.setPen(theme().quiet);
  if (empty_.isEmpty()) {
    paintCaption(painter);
    return paintValues(painter);
  }
  painter.setFont(ui_font(11.5));
  painter.drawText(axisRect()->rect().adjusted(12, 0, -12, 0), Qt::AlignCenter | Qt::TextWordWrap, empty_);
}

void Plot::mouseMoveEvent(QMouseEvent* event) {
  if (press_ && (event->pos() - *press_).manhattanLength() > 4) drag_ = event->pos();
  emit cursorMoved(xAxis->pixelToCoord(event->pos().x()));
  update();
}

// The values at the cursor would cover a small chart.
void Plot::leaveEvent(QEvent* event) {
  QCustomPlot::leaveEvent(event);
  emit pointerLeft();
}

void Plot::mousePressEvent(QMouseEvent* event) {
  setFocus(Qt::MouseFocusReason);
  if (event->button() == Qt::LeftButton) press_ = event->pos();
}

void Plot::mouseReleaseEvent(QMouseEvent*) {
  if (press_ && drag_) {
    const double a = xAxis->pixelToCoord(press_->x()), b = xAxis->pixelToCoord(drag_->x());
    zoomTo(std::min(a, b), std::max(a, b));
  }
  press_.reset();
  drag_.reset();
  update();
}

void Plot::mouseDoubleClickEvent(QMouseEvent*) { fit(); }

void Plot::wheelEvent(QWheelEvent* event) {
  if (!(event->modifiers() & Qt::ControlModifier)) return event->ignore();
  const double at = xAxis->pixelToCoord(event->position().x()), factor = event->angleDelta().y() > 0 ? 0.8 : 1.25;
  zoomTo(at - (at - xAxis->range().lower) * factor, at + (xAxis->range().upper - at) * factor, true);
}

void Plot::keyPressEvent(QKeyEvent* event) {
  const QCPRange range = xAxis->range();
  const double middle = cursor_.value_or(range.center());
  switch (event->key()) {
    case Qt::Key_W:
      return zoomTo(middle - (middle - range.lower) * 0.7, middle + (range.upper - middle) * 0.7, true);
    case Qt::Key_S:
      return zoomTo(middle - (middle - range.lower) * 1.4, middle + (range.upper - middle) * 1.4, true);
    case Qt::Key_A:
      return zoomTo(range.lower - range.size() * 0.15, range.upper - range.size() * 0.15, true);
    case Qt::Key_D:
      return zoomTo(range.lower + range.size() * 0.15, range.upper + range.size() * 0.15, true);
    case Qt::Key_F:
      return fit();
    case Qt::Key_Backspace:
      return undoZoom();
    case Qt::Key_Left:
      emit cursorMoved(middle - range.size() / 100);
      return;
    case Qt::Key_Right:
      emit cursorMoved(middle + range.size() / 100);
      return;
    default:
      QCustomPlot::keyPressEvent(event);
  }
}

void Plot::changeEvent(QEvent* event) {
  QCustomPlot::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::StyleChange) return;
  applyTheme();
  emit zoomChanged();
}

void Plot::showEvent(QShowEvent* event) {
  QCustomPlot::showEvent(event);
  setBufferDevicePixelRatio(devicePixelRatioF());
}

}  // namespace ws::app

#include "app/pages/ranks/lateness_view.h"

#include <QKeyEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/report/drawing_painter.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"
#include "app/widgets/tip.h"

namespace ws::app {
namespace {

constexpr int kMapFrame = 50;  // height of the lines above and below the cells

QImage image_of(const LatenessMap& map, double clock_error_us, const FigureInk& ink) {
  QImage image(static_cast<int>(map.grid.columns), static_cast<int>(map.grid.rows), QImage::Format_ARGB32);
  for (size_t row = 0; row < map.grid.rows; ++row) {
    auto* line = reinterpret_cast<QRgb*>(image.scanLine(static_cast<int>(row)));
    for (size_t column = 0; column < map.grid.columns; ++column) {
      const float late = map.grid.at(row, column);
      line[column] = std::isnan(late) ? 0 : 0xFF000000 | lateness_colour(map, clock_error_us, late, ink);
    }
  }
  return image;
}

QString late_time(double us) { return us > 0 ? time_axis_text(us) : QStringLiteral("0 µs"); }

}  // namespace

LatenessView::LatenessView(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Lateness by rank and step"));
  layOut();
}

void LatenessView::setReport(prof::RankReport report) {
  const int64_t step = chosen_ >= 0 ? report_.steps[static_cast<size_t>(chosen_)] : -1;
  report_ = std::move(report);
  const auto at = std::ranges::find(report_.steps, step);
  chosen_ = chosen_ >= 0 && at != report_.steps.end() ? static_cast<int>(at - report_.steps.begin()) : -1;
  setAccessibleDescription(report_.any() ? text(rank_headline(report_)) : QString());
  updateGeometry();
  layOut();
}

void LatenessView::chooseStep(int index) {
  chosen_ = index < static_cast<int>(report_.steps.size()) ? index : -1;
  update();
}

QSize LatenessView::sizeHint() const {
  constexpr int kRow = 18, kFewRow = 60, kFew = 120, kMost = 300;  // few ranks have high rows
  const int ranks = std::max(1, static_cast<int>(report_.ranks.size()));
  return {700, std::min(kMost, kMapFrame + std::clamp(kFew / ranks, kRow, kFewRow) * ranks)};
}

int LatenessView::mostHeight() const {
  return kMapFrame + static_cast<int>(most_lateness_height(report_));
}

QSize LatenessView::minimumSizeHint() const {
  constexpr int kRow = 13, kMost = 170;
  return {260, std::min(kMost, kMapFrame + kRow * static_cast<int>(report_.ranks.size()))};
}

void LatenessView::layOut() { layOut(QSizeF(size())); }

void LatenessView::layOut(QSizeF size) {
  const FigureInk ink = window_ink();
  map_ = lateness_map(report_, size.width(), size.height());
  frame_ = lateness_frame(report_, map_, ink, size.width());
  cells_ = image_of(map_, report_.clock_error_us, ink);
  update();
}

QRectF LatenessView::cellOf(size_t rank, size_t step) const {
  if (rank >= report_.ranks.size() || step >= report_.steps.size()) return {};
  const size_t row = part_of(rank, map_.grid.rows, report_.ranks.size()),
               column = part_of(step, map_.grid.columns, report_.steps.size());
  return {map_.x(column), map_.tops[row], map_.x(column + 1) - map_.x(column), map_.heights[row]};
}

bool LatenessView::placeAt(QPointF at, Place& place) const {
  if (map_.grid.columns == 0 || at.x() < map_.left || at.x() >= map_.right) return false;
  size_t row = 0;
  while (row < map_.tops.size() && !(at.y() >= map_.tops[row] && at.y() < map_.tops[row] + map_.heights[row])) ++row;
  if (row == map_.tops.size()) return false;
  const double share = (at.x() - map_.left) / (map_.right - map_.left);
  place = {row, std::min(map_.grid.columns - 1, static_cast<size_t>(share * static_cast<double>(map_.grid.columns)))};
  return true;
}

// The latest step of the column: a merged column stands for several.
int LatenessView::stepAt(QPointF at) const {
  Place place{};
  if (!placeAt(at, place)) return -1;
  const size_t steps = report_.steps.size(), ranks = report_.ranks.size();
  const size_t first = first_of(place.column, map_.grid.columns, steps),
               end = first_of(place.column + 1, map_.grid.columns, steps);
  size_t best = first;
  float most = -1;
  for (size_t s = first; s < end; ++s)
    for (size_t r = 0; r < ranks; ++r)
      if (const float late = report_.late(r, s); late > most) most = late, best = s;
  return static_cast<int>(best);
}

// Names the latest rank and step of the cell.
QString LatenessView::tipAt(QPointF at) const {
  Place place{};
  if (!placeAt(at, place)) return {};
  const size_t steps = report_.steps.size(), ranks = report_.ranks.size();
  const size_t first_rank = first_of(place.row, map_.grid.rows, ranks),
               end_rank = first_of(place.row + 1, map_.grid.rows, ranks);
  const size_t first = first_of(place.column, map_.grid.columns, steps),
               end = first_of(place.column + 1, map_.grid.columns, steps);
  size_t rank = first_rank, step = first;
  for (size_t r = first_rank; r < end_rank; ++r)
    for (size_t s = first; s < end; ++s)
      if (const float late = report_.late(r, s), known = report_.late(rank, step); std::isnan(known) || late > known)
        rank = r, step = s;
  const prof::RankRow& row = report_.ranks[rank];
  QString words = text(rank_name(report_, rank)) + (row.host.empty() ? QString() : " · " + text(row.host)) +
                  tr(" · step %1").arg(count_text(report_.steps[step]));
  const float late = report_.late(rank, step);
  if (!row.recorded) return words + "\n" + tr("This rank was not recorded.");
  if (std::isnan(late)) return words + "\n" + tr("Not known.");
  words += "\n" + tr("%1 after the first rank").arg(late_time(late));
  constexpr double kShownError = 0.05;  // µs; less would be "± 0.0 µs"
  if (report_.clock_error_us >= kShownError) {
    words += "\n" + tr("clock error ± %1").arg(late_time(report_.clock_error_us));
    if (late <= report_.clock_error_us) words += tr(": not late");
  }
  if (end_rank - first_rank > 1 || end - first > 1)
    words += "\n" + tr("the latest of %1 ranks and %2 steps").arg(end_rank - first_rank).arg(end - first);
  return words + "\n" + tr("Click: move the timeline here. Double-click: show the timeline.");
}

void LatenessView::render(QPainter& painter, const QRectF& area) {
  const Theme& t = theme();
  painter.fillRect(area, t.base);
  if (!report_.any()) return;
  if (area.size() != QSizeF(size()) || frame_.shapes.empty()) layOut(area.size());
  painter.save();
  painter.translate(area.topLeft());
  constexpr double kApart = 5;
  const size_t rows = map_.grid.rows;
  const bool wide = map_.row_height >= kApart && map_.grid.columns > 0 && map_.x(1) - map_.x(0) >= kApart;
  for (size_t begin = 0, end = 0; begin < rows; begin = end) {  // rows without a gap between them
    for (end = begin + 1; end < rows && map_.tops[end] - map_.tops[end - 1] < map_.heights[end - 1] + 1;) ++end;
    const QRectF band(map_.left, map_.tops[begin], map_.right - map_.left,
                      map_.tops[end - 1] + map_.heights[end - 1] - map_.tops[begin]);
    if (map_.bars()) {
      for (size_t row = begin; row < end; ++row) paintBars(painter, row);
      continue;
    }
    painter.fillRect(band, t.idle);
    const double first = static_cast<double>(begin), count = static_cast<double>(end - begin);
    if (!wide) painter.drawImage(band, cells_, QRectF(0, first, cells_.width(), count));
    for (size_t c = 0; wide && c < map_.grid.columns; ++c)  // their edges are whole pixels
      painter.drawImage(QRectF(map_.x(c), band.top(), map_.x(c + 1) - map_.x(c), band.height()), cells_,
                        QRectF(static_cast<double>(c), first, 1, count));
  }
  const double right = map_.right, bottom = map_.bottom();
  if (map_.row_height >= kApart && !map_.bars())
    for (const double top : map_.tops)
      painter.fillRect(QRectF(map_.left, top + map_.row_height - 1, right - map_.left, 1), t.base);
  if (wide && !map_.bars())
    for (size_t c = 0; c < map_.grid.columns; ++c)
      painter.fillRect(QRectF(map_.x(c + 1) - 1, map_.tops.front(), 1, bottom - map_.tops.front()), t.base);
  paint_drawing(painter, frame_, {0, 0}, 1);
  if (chosen_ >= 0) {
    const QRectF cell = cellOf(0, static_cast<size_t>(chosen_));
    const double width = std::max(kApart, cell.width());
    painter.setPen(QPen(t.focus, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(
        QRectF(cell.center().x() - width / 2 - 1.5, map_.tops.front() - 2, width + 2, bottom - map_.tops.front() + 3));
  }
  painter.restore();
  if (area.size() != QSizeF(size())) layOut();
}

void LatenessView::paintBars(QPainter& painter, size_t row) const {
  if (map_.heights[row] <= 0) return;
  const Theme& t = theme();
  const double ground = map_.tops[row] + map_.heights[row] - 1;
  for (size_t c = 0; c < map_.grid.columns; ++c) {
    const QColor colour = cells_.pixelColor(static_cast<int>(c), static_cast<int>(row));
    const auto [left, width] = map_.bar(c);
    const double high = colour.alpha() == 0 ? map_.heights[row] - 4 : map_.bar_height(static_cast<double>(map_.grid.at(row, c))) - 1;
    painter.fillRect(QRectF(left, ground - high, width, high), colour.alpha() == 0 ? t.idle : QBrush(colour));
  }
  painter.fillRect(QRectF(map_.left, ground, map_.right - map_.left, 1), t.strong_border);
}

void LatenessView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render(painter, rect());
  if (!hasFocus()) return;
  painter.setPen(QPen(theme().focus, 1));
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void LatenessView::pick(int index) {
  if (index < 0 || index >= static_cast<int>(report_.steps.size())) return;
  chooseStep(index);
  emit stepChosen(index);
}

void LatenessView::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) pick(stepAt(event->position()));
}

void LatenessView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int step = stepAt(event->position()); step >= 0) emit stepOpened(step);
}

void LatenessView::keyPressEvent(QKeyEvent* event) {
  const int last = static_cast<int>(report_.steps.size()) - 1;
  switch (event->key()) {
    case Qt::Key_Left:
      return pick(chosen_ < 0 ? last : std::max(0, chosen_ - 1));
    case Qt::Key_Right:
      return pick(std::min(last, chosen_ + 1));
    case Qt::Key_Home:
      return pick(0);
    case Qt::Key_End:
      return pick(last);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (chosen_ >= 0) emit stepOpened(chosen_);
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

void LatenessView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) layOut();
  QWidget::changeEvent(event);
}

bool LatenessView::event(QEvent* event) {
  return showed_tip(event, this, [this](QPointF at) { return tipAt(at); }) || QWidget::event(event);
}

}  // namespace ws::app

#include "app/pages/what_if/step_path_view.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/core/report/drawing.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/glossary.h"
#include "app/widgets/theme.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/base/table.h"

namespace ws::app {
namespace {

constexpr double kLeft = 116, kRight = 14, kLegend = 20, kAxis = kLegend + 22, kTitle = 22, kLeastRow = 13, kMostRow = 120, kBarSpace = 6, kSpace = 10;
constexpr double kFrame = 1.5, kSideFrom = 24, kThinnest = 1.5;  // px; a narrower bar has no sides, so that its colour is seen
constexpr double kShortName = 34, kCutName = 62;  // px; a bar that is narrower has no name, or none that is cut
constexpr int kFewestLetters = 6;

QString where_text(const PathPicture::Bar& bar) {
  if (bar.made_to_fit) return QObject::tr("Drawn as short as it must be, so that no other rank waits for it.");
  const QString ahead = bar.launched_before ? QObject::tr(" Launched in the step before.") : QString();
  return QObject::tr("Critical path: %1.").arg(text(prof::path_text(bar.path))) + ahead;
}

// A line above and below the path joins its bars; a wide bar has sides, too.
void paint_frame(QPainter& painter, const QRectF& box, bool sides) {
  const QColor ink = theme().text;
  painter.fillRect(QRectF(box.left(), box.top(), box.width(), kFrame), ink);
  painter.fillRect(QRectF(box.left(), box.bottom() - kFrame, box.width(), kFrame), ink);
  if (!sides) return;
  painter.fillRect(QRectF(box.left(), box.top(), 1, box.height()), ink);
  painter.fillRect(QRectF(box.right() - 1, box.top(), 1, box.height()), ink);
}

// What is on the path has its colour and a frame. What has time to spare is faint.
void paint_bar(QPainter& painter, const QRectF& box, const QBrush& fill, bool on_path) {
  painter.setOpacity(on_path ? 1 : kOffPath);
  draw_fill(painter, box, fill);
  painter.setOpacity(1);
  if (on_path) paint_frame(painter, box, box.width() >= kSideFrom);
}

constexpr QRectF kSwatch(8, 4, kSideFrom, 12);
constexpr double kAfterSwatch = 6, kApart = 18;

QString path_name() { return QObject::tr("critical path"); }
QFont legend_font() { return ui_font(11); }
QString before_path_name() { return QObject::tr("on the "); }
double legend_width(const QString& words, const QFont& font = legend_font()) { return std::ceil(QFontMetricsF(font).horizontalAdvance(words)); }

// Empty if too few letters fit to know the name by.
QString name_in(const QFontMetrics& metrics, const QString& name, double width) {
  if (width < kShortName) return {};
  const QString fitting = metrics.elidedText(name, Qt::ElideRight, static_cast<int>(width - 6));
  return fitting == name || (width >= kCutName && fitting.size() > kFewestLetters) ? fitting : QString();
}

}  // namespace

StepPathView::StepPathView(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setAccessibleName(tr("The measured and the predicted step"));
}

void StepPathView::setPictures(std::vector<PathPicture> pictures) {
  pictures_ = std::move(pictures);
  QStringList words;
  for (const PathPicture& picture : pictures_) words << tr("%1: %2").arg(picture.title, step_time_text(picture.length_us));
  setAccessibleDescription(words.join(QStringLiteral("; ")));
  update();
}

double StepPathView::longest() const {
  double longest = 1e-3;
  for (const PathPicture& picture : pictures_) longest = std::max(longest, picture.length_us);
  return 1.04 * longest;
}

// The rows share the height.
double StepPathView::rowHeight() const {
  double rows = 0;
  for (const PathPicture& picture : pictures_) rows += static_cast<double>(picture.rows.size());
  const double titles = (kTitle + kSpace) * static_cast<double>(pictures_.size());
  return std::clamp((height() - kAxis - titles) / std::max(1.0, rows), kLeastRow, kMostRow);
}

double StepPathView::x(double us) const { return kLeft + us / longest() * std::max(10.0, width() - kLeft - kRight); }

void StepPathView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  if (pictures_.empty()) return;
  paintLegend(painter);
  paintAxis(painter);
  double top = kAxis;
  for (const PathPicture& picture : pictures_) top = paintPicture(painter, picture, top) + kSpace;
}

QRectF StepPathView::pathName() {
  return {kSwatch.right() + kAfterSwatch + legend_width(before_path_name()), 0, legend_width(path_name(), word_font(legend_font(), path_name())), kLegend};
}

bool StepPathView::hostIsAhead() const {
  for (const PathPicture& picture : pictures_)
    for (const PathPicture::Row& row : picture.rows)
      if (std::ranges::any_of(row.bars, &PathPicture::Bar::launched_before)) return true;
  return false;
}

// Both kinds of bars as they are drawn below, and what may look like a fault.
void StepPathView::paintLegend(QPainter& painter) const {
  const QRectF name = pathName();
  double left = kSwatch.right() + kAfterSwatch;
  const auto put = [&](const QString& words) {
    const double width = legend_width(words);
    if (left + width < this->width() - kRight) painter.drawText(QRectF(left, 0, width, kLegend), Qt::AlignLeft | Qt::AlignVCenter, words);
    left += width;
  };
  paint_bar(painter, kSwatch, meaning_brush(prof::Meaning::Sync), true);
  painter.setPen(theme().secondary);
  painter.setFont(legend_font());
  put(before_path_name());
  painter.setFont(word_font(legend_font(), path_name()));
  painter.drawText(name, Qt::AlignLeft | Qt::AlignVCenter, path_name());
  painter.setFont(legend_font());
  left = name.right();
  put(tr(", which decides how long a step takes"));
  const QRectF faint = kSwatch.translated(left + kApart - kSwatch.left(), 0);
  if (faint.right() + kAfterSwatch < width() - kRight) paint_bar(painter, faint, meaning_brush(prof::Meaning::Sync), false);
  painter.setPen(theme().secondary);
  left = faint.right() + kAfterSwatch;
  put(tr("has time to spare"));
  left += kApart;
  if (hostIsAhead()) put(tr("The host is ahead: it launched the first kernels in the step before."));
}

void StepPathView::paintAxis(QPainter& painter) const {
  painter.setFont(ui_font(11));
  const StepUnit of_step(longest());
  const double unit = of_step.ms ? 1e3 : 1;
  const QString unit_name = QString(" ") + of_step.name();
  for (const double shown : ticks(0, longest() / unit, false, std::max(2, width() / 110))) {
    const double tick = shown * unit;
    painter.setPen(theme().grid);
    painter.drawLine(QPointF(x(tick), kAxis), QPointF(x(tick), height()));
    painter.setPen(theme().quiet);
    painter.drawText(QRectF(x(tick) - 50, kLegend, 100, kAxis - kLegend), Qt::AlignCenter, text(tick_text(shown)) + (tick > 0 ? QString() : unit_name));
  }
}

double StepPathView::paintPicture(QPainter& painter, const PathPicture& picture, double top) const {
  painter.setFont(ui_font(12, 600));
  painter.setPen(theme().text);
  const double note = picture.note.isEmpty() ? 0 : QFontMetricsF(ui_font(12)).horizontalAdvance(picture.note) + 16;
  const QRectF line(8, top, width() - 8 - kRight, kTitle);
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, painter.fontMetrics().elidedText(picture.title, Qt::ElideRight, static_cast<int>(line.width() - note)));
  painter.setFont(ui_font(12));
  painter.setPen(theme().secondary);
  painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, picture.note);
  const double row_height = rowHeight(), bottom = top + kTitle + row_height * static_cast<double>(picture.rows.size());
  double row_top = top + kTitle;
  painter.save();
  for (const PathPicture::Row& row : picture.rows) {
    paintRow(painter, row, row_top);
    row_top += row_height;
  }
  painter.restore();
  painter.setPen(QPen(theme().text, 1.5));
  painter.drawLine(QPointF(x(picture.length_us), top + kTitle), QPointF(x(picture.length_us), bottom));
  return bottom;
}

void StepPathView::paintRow(QPainter& painter, const PathPicture::Row& row, double top) const {
  const double height = rowHeight(), space = std::min(kBarSpace, height / 4);
  painter.setFont(ui_font(height < 16 ? 10.5 : 11));
  painter.setPen(theme().secondary);
  painter.drawText(QRectF(8, top, kLeft - 14, height), Qt::AlignLeft | Qt::AlignVCenter, painter.fontMetrics().elidedText(row.name, Qt::ElideRight, static_cast<int>(kLeft - 14)));
  for (const PathPicture::Bar& bar : row.bars) {
    const QRectF box(x(bar.begin), top + space / 2, std::max(kThinnest, x(bar.end) - x(bar.begin)), height - space);
    if (bar.is_gap) paint_frame(painter, box, false);
    else paint_bar(painter, box, bar.waits_for_data ? QBrush(part_colour({.kind = prof::PartKind::HostData})) : meaning_brush(bar.meaning), bar.path.on_path());
    const QString name = name_in(painter.fontMetrics(), bar.name, box.width());
    if (name.isEmpty()) continue;
    painter.setPen(bar.path.on_path() && !bar.is_gap ? theme().ink_on(theme().of(bar.meaning)) : theme().secondary);
    painter.drawText(box.adjusted(4, 0, -2, 0), Qt::AlignLeft | Qt::AlignVCenter, name);
  }
}

const PathPicture::Bar* StepPathView::barAt(QPointF at) const {
  double top = kAxis;
  for (const PathPicture& picture : pictures_) {
    double row_top = top + kTitle;
    for (const PathPicture::Row& row : picture.rows) {
      if (at.y() >= row_top && at.y() < row_top + rowHeight())
        for (const PathPicture::Bar& bar : row.bars)
          if (at.x() >= x(bar.begin) - 1 && at.x() <= x(bar.end) + 1) return &bar;
      row_top += rowHeight();
    }
    top = row_top + kSpace;
  }
  return nullptr;
}

bool StepPathView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const PathPicture::Bar* bar = barAt(help->pos());
  const Word* word = pathName().contains(help->pos()) ? word_of(path_name()) : nullptr;
  if (bar) setToolTip(tr("%1: %2. %3").arg(bar->name, step_time_text(bar->end - bar->begin), where_text(*bar)));
  else setToolTip(word ? word_tip(*word) : QString());
  return QWidget::event(event);
}

void StepPathView::mousePressEvent(QMouseEvent* event) {
  if (const PathPicture::Bar* bar = barAt(event->position())) emit barChosen(bar->name);
}

}  // namespace ws::app

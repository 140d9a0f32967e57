#include "app/pages/what_if/step_path_view.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

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
constexpr double kUnderline = 2, kThinnest = 1.5;  // px
constexpr double kShortName = 34, kCutName = 62;  // px; a bar that is narrower has no name, or none that is cut
constexpr int kFewestLetters = 6;

QString where_text(const PathPicture::Bar& bar) {
  if (bar.made_to_fit) return QObject::tr("Drawn as short as it must be, so that no other rank waits for it.");
  const QString ahead = bar.launched_before ? QObject::tr(" Launched in the step before.") : QString();
  return QObject::tr("Critical path: %1.").arg(text(prof::path_text(bar.path))) + ahead;
}

// The line below what is on the path.
void underline(QPainter& painter, const QRectF& box, double width) {
  painter.fillRect(QRectF(box.left(), box.bottom() + 0.5, box.width(), width), theme().text);
}

constexpr QRectF kSwatch(8, 5, 14, 9);
constexpr double kAfterSwatch = 6;

QString path_name() { return QObject::tr("critical path"); }
QFont legend_font() { return ui_font(11); }

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

QRectF StepPathView::pathName() const { return {kSwatch.right() + kAfterSwatch, 0, QFontMetricsF(word_font(legend_font(), path_name())).horizontalAdvance(path_name()), kLegend}; }

bool StepPathView::hostIsAhead() const {
  for (const PathPicture& picture : pictures_)
    for (const PathPicture::Row& row : picture.rows)
      if (std::ranges::any_of(row.bars, &PathPicture::Bar::launched_before)) return true;
  return false;
}

// What is on the path, what is not, and what may look like a fault.
void StepPathView::paintLegend(QPainter& painter) const {
  const QRectF name = pathName();
  draw_fill(painter, kSwatch, meaning_brush(prof::Meaning::Sync));
  underline(painter, kSwatch, kUnderline);
  painter.setPen(theme().secondary);
  painter.setFont(word_font(legend_font(), path_name()));
  painter.drawText(name, Qt::AlignLeft | Qt::AlignVCenter, path_name());
  painter.setFont(legend_font());
  double left = name.right();
  const auto put = [&](const QString& words) {
    const double width = painter.fontMetrics().horizontalAdvance(words);
    if (left + width < this->width() - kRight) painter.drawText(QRectF(left, 0, width, kLegend), Qt::AlignLeft | Qt::AlignVCenter, words);
    left += width;
  };
  put(tr(", which decides how long a step takes"));
  const QRectF faint = kSwatch.translated(left + 18 - kSwatch.left(), 0);
  if (faint.right() + kAfterSwatch < width() - kRight) {
    painter.setOpacity(kOffPath);
    draw_fill(painter, faint, meaning_brush(prof::Meaning::Sync));
    painter.setOpacity(1);
  }
  painter.setPen(theme().secondary);
  left = faint.right() + kAfterSwatch;
  put(tr("has time to spare"));
  left += 18;
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
    painter.setOpacity(bar.path.on_path() ? 1 : kOffPath);
    if (!bar.is_gap) draw_fill(painter, box, bar.waits_for_data ? QBrush(part_colour({.kind = prof::PartKind::HostData})) : meaning_brush(bar.meaning));
    painter.setOpacity(1);
    if (bar.path.on_path()) underline(painter, box, std::min(kUnderline, space / 2));
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

#include "app/timeline/hover_card.h"

#include <QFontMetricsF>

#include "app/widgets/theme.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/workspace/card_limits.h"
#include "app/timeline/block_label.h"
#include "app/timeline/span_colour.h"
#include "profiling/analysis/collective_waits.h"
#include "profiling/analysis/kernel_table.h"

namespace ws::app {
namespace {

using prof::SpanKind;

constexpr int kRow = 17, kHead = 30, kFoot = 8, kLabelWidth = 94;

QString dims(const int (&d)[3]) { return QString("%1 × %2 × %3").arg(d[0]).arg(d[1]).arg(d[2]); }

bool is_call(SpanKind kind) {
  return kind == SpanKind::Api || kind == SpanKind::Alloc || kind == SpanKind::Free || kind == SpanKind::Sync ||
         kind == SpanKind::GraphLaunch;
}

QString rate_text(double per_second, const char* unit) {
  if (per_second >= 1e12) return fixed_text(per_second / 1e12, 2) + " T" + unit;
  if (per_second >= 1e9) return fixed_text(per_second / 1e9, 1) + " G" + unit;
  return fixed_text(per_second / 1e6, 1) + " M" + unit;
}

void add_launch(HoverCard& card, const prof::Detail& detail, const QString& device) {
  if (detail.block[0] == 0) return;
  card.rows.push_back({"grid", dims(detail.grid) + " of " + dims(detail.block)});
  const int shared = detail.static_shared + detail.dynamic_shared;
  card.rows.push_back({"per thread", QString("%1 registers").arg(detail.registers) +
                                         (shared ? " · " + bytes_text(shared) + " shared" : QString())});
  if (device.isEmpty()) return;
  const auto limits = card_limits(device.toStdString());
  if (!limits) return card.rows.push_back({"theoretical", "occupancy not known for this card"});
  card.rows.push_back({"theoretical", "occupancy " + text(prof::occupancy_text(prof::occupancy_of(detail, *limits)))});
}

void add_rates(HoverCard& card, const prof::OpInfo* op, const prof::Span& span) {
  if (!op || span.duration == 0 || span.flags & prof::kEstimated) return;
  const double seconds = static_cast<double>(span.duration) * 1e-9;
  QStringList parts;
  if (op->flops > 0) parts << rate_text(static_cast<double>(op->flops) / seconds, "FLOP/s");
  if (op->bytes > 0) parts << rate_text(static_cast<double>(op->bytes) / seconds, "B/s");
  if (!parts.isEmpty()) card.rows.push_back({"rate", parts.join(" · ")});
}

void add_purpose(HoverCard& card, const prof::Trace& trace, const prof::Span& span) {
  const prof::OpInfo* op = op_of(trace, prof::charged_tag(trace, span));
  QStringList parts;
  if (op) {
    parts << op_text(trace, span.op);
    const QString where =
        QString::fromStdString(op->phase) + (op->layer.empty() ? QString() : " / " + QString::fromStdString(op->layer));
    if (!where.isEmpty()) parts << where;
  }
  if (const uint64_t bytes = trace.detail(span.detail).bytes; bytes > 0)
    parts << bytes_text(static_cast<double>(bytes));
  if (!parts.isEmpty()) card.rows.push_back({"for", parts.join(" · ")});
  if (span.flags & prof::kUnjoined) card.rows.push_back({"for", "not matched to an op"});
}

void add_partner(HoverCard& card, const prof::Trace& trace, size_t track, const prof::Span& span) {
  const auto other = partner(trace, track, span);
  if (!other) return;
  const bool gpu = on_gpu(trace.tracks()[track]);
  const prof::TimeNs delay = gpu ? span.start - other->span.start : other->span.start - span.start;
  card.rows.push_back({gpu ? "launched" : "GPU begins",
                       span_time(delay) + (gpu ? " earlier by " + QString::fromStdString(trace.name(other->span.name))
                                               : QString(" after the call"))});
}

void add_meanwhile(HoverCard& card, const prof::Trace& trace, int rank, const prof::Span& span) {
  if (!first_track(trace, prof::TrackKind::Stream)) return;
  const prof::Busy busy = gpu_during(trace, {span.start, std::max(span.end(), span.start + 1)}, rank);
  card.rows.push_back({"GPU meanwhile", busy.busy == 0
                                            ? "idle " + span_time(busy.idle)
                                            : "busy " + span_time(busy.busy) + ", idle " + span_time(busy.idle)});
}

}  // namespace

HoverCard span_card(const prof::Trace& trace, size_t index, const prof::Span& span, const QString& device, prof::TimeNs clock_error) {
  const prof::Track& track = trace.tracks()[index];
  HoverCard card;
  card.title = block_names(trace, track, span).full;
  card.value = span_time(static_cast<prof::TimeNs>(span.duration));
  const QColor colour = span_colour(trace, track, span, span.span_meaning());
  card.swatch = colour.isValid() ? colour : theme().strong_border;
  add_purpose(card, trace, span);
  add_launch(card, trace.detail(span.detail), device);
  add_rates(card, op_of(trace, span.op), span);
  if (track.kind == prof::TrackKind::Samples) card.rows.push_back({"sampled", "a stack lasts until the next sample"});
  if (const auto parts = prof::parts_of_collective(trace, track, span, clock_error))
    card.rows.push_back({"ranks", QString::fromStdString(prof::parts_text(*parts))});
  add_partner(card, trace, index, span);
  if (is_call(span.span_kind())) add_meanwhile(card, trace, track.rank, span);
  if (span.span_kind() != SpanKind::Step) {
    const prof::SameName same = same_in_step(trace, track, span);
    if (same.count > 1)
      card.rows.push_back({"this step", QString("%1 of them, %2 in all").arg(same.count).arg(span_time(same.total))});
  }
  card.keys = {".", "same name", "Click", "select"};
  return card;
}

void add_path(HoverCard& card, const prof::PathOfSpan& span) { card.rows.push_back({"critical path", text(prof::path_text(span))}); }

HoverCard folded_card(const prof::Trace& trace, size_t index, const prof::LodRect& rect, TimeRange column) {
  HoverCard card;
  card.title = count_text(rect.count) + " spans, " + fixed_text(rect.busy * 100.0, 0) + " % busy";
  card.value = span_time(column.length());
  card.swatch = theme().of(rect.meaning);
  card.rows.push_back({"most of it", ws::app::meaning_name(rect.meaning)});
  constexpr uint32_t kCountedByName = 200'000;
  if (rect.count <= kCountedByName && !prof::in_memory(trace.tracks()[index], column.begin, column.end))
    card.rows.push_back({"by name", "not in memory: zoom in"});
  else if (rect.count <= kCountedByName) {
    auto sums = prof::sum_by_name(trace.tracks()[index], column.begin, column.end);
    for (size_t i = 0; i < std::min<size_t>(3, sums.size()); ++i)
      card.rows.push_back({QString("%1 ×").arg(sums[i].count),
                           short_kernel_name(trace.name(sums[i].name)) + "  " + span_time(sums[i].total_ns)});
  }
  card.keys = {"W", "zoom in", "Click", "zoom here"};
  return card;
}

int card_height(const HoverCard& card) {
  return kHead + static_cast<int>(card.rows.size()) * kRow + (card.keys.isEmpty() ? 0 : kRow + 2) + kFoot;
}

QRect card_place(QSize size, QRect viewport, QRect lane, QPoint pointer) {
  constexpr int kGap = 6;
  int x = pointer.x() + 16;
  if (x + size.width() > viewport.right()) x = pointer.x() - 16 - size.width();
  x = std::clamp(x, viewport.left(), std::max(viewport.left(), viewport.right() - size.width()));
  const int below = lane.bottom() + kGap, above = lane.top() - kGap - size.height();
  const bool fits_below = below + size.height() <= viewport.bottom();
  const bool fits_above = above >= viewport.top();
  const bool more_below = viewport.bottom() - lane.bottom() >= lane.top() - viewport.top();
  return {QPoint(x, fits_below || (!fits_above && more_below) ? below : above), size};
}

void paint_card(QPainter& painter, QRect box, const HoverCard& card) {
  const Theme& t = theme();
  painter.setRenderHint(QPainter::Antialiasing);
  for (int i = 4; i > 0; --i) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(QColor(0, 0, 0, t.dark() ? 22 : 9));
    painter.drawRoundedRect(QRectF(box).adjusted(-i, -i + 2, i, i + 2), 4 + i, 4 + i);
  }
  painter.setPen(QPen(t.strong_border, 1));
  painter.setBrush(t.raised);
  painter.drawRoundedRect(QRectF(box).adjusted(.5, .5, -.5, -.5), 4, 4);
  painter.setRenderHint(QPainter::Antialiasing, false);
  draw_fill(painter, QRectF(box.left() + 10, box.top() + 11, 9, 9), card.swatch);
  const QFont bold = ui_font(12, 600), plain = ui_font(11);
  const auto elided = [](const QFont& font, const QString& text, double width) {
    return QFontMetricsF(font).elidedText(text, Qt::ElideRight, width);
  };
  painter.setFont(bold);
  painter.setPen(t.text);
  const double value_width = QFontMetricsF(bold).horizontalAdvance(card.value);
  painter.drawText(QRectF(box.right() - 10 - value_width, box.top() + 6, value_width + 1, 20), Qt::AlignVCenter,
                   card.value);
  painter.drawText(QRectF(box.left() + 26, box.top() + 6, box.width(), 20), Qt::AlignVCenter,
                   elided(bold, card.title, box.width() - 46 - value_width));
  painter.setFont(plain);
  int y = box.top() + kHead;
  const auto put = [&](const QString& name, const QString& text) {
    painter.setPen(t.quiet);
    painter.drawText(QRectF(box.left() + 10, y, kLabelWidth, kRow), Qt::AlignVCenter, name);
    painter.setPen(t.text);
    const double space = box.width() - kLabelWidth - 20;
    painter.drawText(QRectF(box.left() + 10 + kLabelWidth, y, space, kRow), Qt::AlignVCenter, elided(plain, text, space));
    y += kRow;
  };
  for (const auto& [name, text] : card.rows) put(name, text);
  if (card.keys.isEmpty()) return;
  put("next", {});
  y -= kRow;
  double x = box.left() + 10 + kLabelWidth;
  for (qsizetype i = 0; i < card.keys.size(); ++i) {
    const double width = QFontMetricsF(plain).horizontalAdvance(card.keys[i]);
    if (i % 2 == 0) {
      painter.setPen(t.strong_border);
      painter.drawRect(QRectF(x + .5, y + 1.5, width + 8, kRow - 3));
    }
    painter.setPen(i % 2 == 0 ? t.text : t.secondary);
    painter.drawText(QRectF(x + (i % 2 == 0 ? 4 : 0), y, width + 2, kRow), Qt::AlignVCenter, card.keys[i]);
    x += width + (i % 2 == 0 ? 14 : 10);
  }
}

}  // namespace ws::app

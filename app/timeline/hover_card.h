// The card beside the pointer: what a span is, what for, what the GPU did meanwhile. Content pure, painting below.
#pragma once
#include <QPainter>
#include <QString>
#include <utility>
#include <vector>

#include "app/timeline/timeline_model.h"
#include "profiling/trace/lod.h"

namespace ws::app {

struct HoverCard {
  QString title, value;
  QColor swatch;
  std::vector<std::pair<QString, QString>> rows;
  QStringList keys;  // key caps and words, alternating: ".", "same name", "Enter", "select"
};

// `device`: its name; without it nothing is said about occupancy.
HoverCard span_card(const prof::Trace& trace, size_t track, const prof::Span& span, const QString& device = {});
HoverCard folded_card(const prof::Trace& trace, size_t track, const prof::LodRect& rect, TimeRange column);

constexpr int kCardWidth = 310;
int card_height(const HoverCard& card);
// Below the lane, or above when there is no room; never under the pointer and never over its own lane.
QRect card_place(QSize size, QRect viewport, QRect lane, QPoint pointer);
void paint_card(QPainter& painter, QRect box, const HoverCard& card);

}  // namespace ws::app

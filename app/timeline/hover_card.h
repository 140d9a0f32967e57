// The card beside the pointer: what a span is, its purpose, and what the GPU did meanwhile. The
// content is pure; painting is below.
#pragma once
#include <QPainter>
#include <QString>
#include <utility>
#include <vector>

#include "app/timeline/timeline_model.h"
#include "profiling/causes/span_path.h"
#include "profiling/trace/lod.h"

namespace ws::app {

struct HoverCard {
  QString title, value;
  QColor swatch;
  std::vector<std::pair<QString, QString>> rows;
  QStringList keys;  // key caps and text, alternating: ".", "same name", "Enter", "select"
};

// `device`: name of the GPU; empty: no occupancy is shown.
HoverCard span_card(const prof::Trace& trace, size_t track, const prof::Span& span, const QString& device = {},
                    prof::TimeNs clock_error = 0);
void add_path(HoverCard& card, const prof::PathOfSpan& span);  // its part of the critical path, or its slack
HoverCard folded_card(const prof::Trace& trace, size_t track, const prof::LodRect& rect, TimeRange column);

constexpr int kCardWidth = 310;
int card_height(const HoverCard& card);
// Returns a place below the lane, or above it if there is no space. The card never covers the pointer or its own lane.
QRect card_place(QSize size, QRect viewport, QRect lane, QPoint pointer);
void paint_card(QPainter& painter, QRect box, const HoverCard& card);

}  // namespace ws::app

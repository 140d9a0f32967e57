// The samples of a source line as a bar: its parts have the colours of the five groups of reasons, in their order.
#pragma once
#include <QColor>
#include <QString>

#include "profiling/analysis/stalls.h"

class QPainter;
class QRect;
class QRectF;

namespace ws::app {

QColor stall_colour(prof::StallGroup group);  // the same in both themes
QColor stall_ground();                        // behind bars: in the dark theme a light strip
QColor stall_ink();                           // for text on it
// `most`: the samples of the longest bar, which is as wide as the box.
void draw_stall_bar(QPainter& painter, const QRectF& box, const prof::StallRow& row, uint64_t most);
// A cell of a table: the number of samples and their bar. `row`: nullptr: none were taken there.
void draw_stall_cell(QPainter& painter, const QRect& cell, const prof::StallRow* row, uint64_t most);
QString stall_share_text(uint64_t part, uint64_t whole);  // "38.8 %"
QString stall_tip(const prof::StallRow& row);             // the five counts, and the reason that most wait for

}  // namespace ws::app

// The colour of a block in the timeline and of its card. Meanings come first. A phase of a program has the colour of its part
// of the step. Work without a meaning gets a colour from its name.
#pragma once
#include <QColor>

#include "profiling/trace/trace.h"

namespace ws::app {

// `meaning`: of the span, or of the greatest share of folded spans. Invalid if the block has the neutral fill of ranges.
QColor span_colour(const prof::Trace& trace, const prof::Track& track, const prof::Span& span, prof::Meaning meaning);
QColor rank_wait_colour();  // the part of a collective in which a rank waits for the last one

}  // namespace ws::app

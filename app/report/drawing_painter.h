// Paints a Drawing. Qt's SVG renderer turns text into outlines; this keeps text as text, also in a PDF.
#pragma once
#include "app/core/report/figure_ink.h"

class QPainter;
class QPointF;

namespace ws::app {

void paint_drawing(QPainter& painter, const Drawing& drawing, const QPointF& at, double scale = 1);
FigureInk window_ink();  // of the current theme

}  // namespace ws::app

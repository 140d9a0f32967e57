// How the laboratory shows a variant: its colour, line and label.
#pragma once
#include <QIcon>
#include <QPen>

#include "engine/lab/lab.h"

namespace ws::app {

QColor lab_colour(lab::Way way);
QPen lab_pen(lab::Way way, double width);  // variants with the same colour have different patterns
QIcon lab_way_icon(lab::Way way);          // its line
QString lab_label(lab::Way way, const lab::LabSpec& spec = {});        // `spec` names a person's kernels
QString lab_short_label(lab::Way way, const lab::LabSpec& spec = {});  // only CPU variants say where they run
QString lab_size_text(double size);

}  // namespace ws::app

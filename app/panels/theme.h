// The colours and type of the window: one palette a theme, one colour a meaning, one colour a run.
#pragma once
#include <QBrush>
#include <QColor>
#include <QFont>

#include "profiling/annotate.h"

class QApplication;

namespace ws::app {

enum class ThemeName { Dark, Light };

struct Theme {
  ThemeName name;
  QColor window, base, header, raised, button, input, border, strong_border, field_outline;
  QColor grid, minor_grid, text, secondary, quiet, focus, primary, chosen, selected_row, better, worse, fill_ink, fill_edge;
  QColor meaning[10];  // by prof::Meaning
  QColor run[8];       // A … H
  QBrush idle;         // 45° hatch

  QColor of(prof::Meaning m) const { return meaning[static_cast<int>(m)]; }
};

const Theme& theme();  // the current one
void set_theme(QApplication& app, ThemeName name);  // palette and style sheet; widgets get a PaletteChange event

QFont ui_font(double px, int weight = 400);      // Inter, else DejaVu Sans
QFont number_font(double px, int weight = 400);  // tabular figures
QFont mono_font(double px);

}  // namespace ws::app

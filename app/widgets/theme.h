// Colours and fonts of the window: one palette per theme, one colour per meaning, one colour per run.
#pragma once
#include <QBrush>
#include <QColor>
#include <QFont>
#include <QIcon>
#include <QRectF>
#include <QString>
#include <string_view>

#include "profiling/annotate/annotate.h"

class QApplication;
class QPainter;

namespace ws::prof {
struct PartId;
}

namespace ws::app {

enum class ThemeName { Dark, Light };

struct Theme {
  ThemeName name;
  QColor window, base, header, raised, button, input, border, strong_border, field_outline;
  QColor grid, minor_grid, text, secondary, quiet, focus, primary, chosen, selected_row, better, worse, late, fill_ink,
      fill_edge;  // late: ranks and multiprocessors; no run and no kind of work has it
  QColor meaning[prof::kMeanings];  // by prof::Meaning
  QColor run[8];         // A … H
  QColor data_class[8];  // of points of the data; no run and no kind has them
  QColor hatch;
  QBrush idle;       // 45° hatch

  QColor of(prof::Meaning m) const { return meaning[static_cast<int>(m)]; }
  bool dark() const { return name == ThemeName::Dark; }
  QColor ink_on(const QColor& fill) const;  // for text on a fill; contrast at least 4.5 : 1
};

QColor mixed(const QColor& top, const QColor& ground, double share);  // `share` of the first colour
// Colours of names that have no meaning: the same name has the same colour everywhere. Muted ones for what is not the user's own.
enum class Hashed { Strong, Muted };
QColor hashed_colour(std::string_view name, Hashed strength = Hashed::Strong);
double luminance(const QColor& colour);             // relative, as WCAG defines it
const Theme& theme();                               // the current one
void set_theme(QApplication& app, ThemeName name);  // palette and style sheet; widgets get a PaletteChange event

// Painting uses this theme while the object lives, whatever theme the window has. For pictures on paper.
class PaintTheme {
 public:
  explicit PaintTheme(ThemeName name);
  ~PaintTheme();
  PaintTheme(const PaintTheme&) = delete;
  PaintTheme& operator=(const PaintTheme&) = delete;

 private:
  Theme before_;
};

QFont ui_font(double px, int weight = 400);      // Inter, otherwise DejaVu Sans
QFont number_font(double px, int weight = 400);  // tabular figures
QFont mono_font(double px);

// An SVG icon from resources/icons. It is drawn in its colour of the current theme, and greyed on disabled buttons,
// so a theme change needs no new icon. `fixed`: one colour in both themes.
QIcon theme_icon(const QString& name, QColor Theme::*colour = &Theme::text);
QIcon theme_icon(const QString& name, Qt::GlobalColor fixed);

// Text in the painter's font with equal width for all digits, so that a live number does not jitter.
double number_width(const QFont& font, const QString& text);
void draw_number(QPainter& painter, const QRectF& box, Qt::Alignment align, const QString& text);

// The letter square of a run. Not filled: the run is not ticked. An empty outline: it never was.
void draw_badge(QPainter& painter, const QRectF& box, int slot, bool filled = true);
QIcon badge_icon(int slot);  // follows the theme
inline constexpr QSize kBadgeBesideText{20, 16};
// A fill with an edge that separates pale colours from the background.
void draw_fill(QPainter& painter, const QRectF& box, const QBrush& fill);
inline constexpr double kOffPath = 0.35;  // how strong what is not on the critical path is drawn
QBrush meaning_brush(prof::Meaning meaning);
QBrush part_brush(const prof::PartId& part);  // as meaning_brush; gaps are hatched, and what the host did has its own
QColor part_colour(const prof::PartId& part);  // for the ink on it
QString meaning_name(prof::Meaning meaning);  // "matrix product"

}  // namespace ws::app

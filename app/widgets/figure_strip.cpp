#include "app/widgets/figure_strip.h"

#include <QPainter>
#include <QRegularExpression>
#include <algorithm>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr double kEdge = 18;

QFont small_font() { return ui_font(11); }
QFont big_font() { return ui_font(17, 600); }

double width_of(const Figure& figure) {
  const QFontMetricsF small(small_font());
  const double value = number_width(big_font(), figure.value) + 6 + small.horizontalAdvance(figure.note);
  return std::max({small.horizontalAdvance(figure.name), value, 60.0});
}

}  // namespace

FigureStrip::FigureStrip(QWidget* parent) : QWidget(parent) { setFixedHeight(58); }

void FigureStrip::setFigures(std::vector<Figure> figures) {
  figures_ = std::move(figures);
  QStringList words;
  for (const Figure& f : figures_) words << f.name + " " + f.value + " " + f.note;
  setAccessibleName(words.join(", "));
  setToolTip(words.join("\n"));
  update();
}

// Where all do not fit, the longest notes keep their first words; the tip has them whole.
std::vector<Figure> FigureStrip::shown() const {
  std::vector<Figure> shown = figures_;
  const auto brief = [](const QString& note) { return note.section(QRegularExpression("[:,]"), 0, 0); };
  const auto all = [&shown] {
    double width = kEdge;
    for (const Figure& figure : shown) width += width_of(figure) + 2 * kEdge;
    return width - kEdge;
  };
  while (all() > width()) {
    const auto longest = std::ranges::max_element(shown, {}, [&](const Figure& f) { return f.note.size() - brief(f.note).size(); });
    if (longest == shown.end() || brief(longest->note) == longest->note) break;
    longest->note = brief(longest->note);
  }
  return shown;
}

void FigureStrip::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.fillRect(rect(), t.base);
  painter.setPen(t.border);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
  double x = kEdge;
  const QFont small = small_font(), big = big_font();
  for (const Figure& figure : shown()) {
    const double width = width_of(figure);
    if (x + width > this->width()) break;
    painter.setFont(small);
    painter.setPen(t.quiet);
    painter.drawText(QRectF(x, 9, width + 4, 16), Qt::AlignVCenter, figure.name);
    painter.drawText(QRectF(x + number_width(big, figure.value) + 6, 30, width + 20, 18), Qt::AlignVCenter,
                     figure.note);
    painter.setFont(big);
    painter.setPen(t.text);
    draw_number(painter, QRectF(x, 26, width, 24), Qt::AlignLeft | Qt::AlignVCenter, figure.value);
    x += width + kEdge;
    painter.fillRect(QRectF(x, 10, 1, height() - 20), t.border);
    x += kEdge;
  }
}

}  // namespace ws::app

#include "app/pages/experiments/parallel_coordinates.h"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// The choices that the experiment varies, in order of first appearance.
std::vector<std::string> varied_keys(const ExperimentResult& result) {
  std::vector<std::string> keys;
  for (const TrialResult& t : result.trials)
    for (const Setting& setting : t.trial.set)
      if (std::ranges::find(keys, setting.first) == keys.end()) keys.push_back(setting.first);
  return keys;
}

QColor between(const QColor& a, const QColor& b, double share) {
  const auto part = [share](int x, int y) { return static_cast<int>(std::lround(x + (y - x) * share)); };
  return {part(a.red(), b.red()), part(a.green(), b.green()), part(a.blue(), b.blue())};
}

}  // namespace

ParallelCoordinates::Coordinate ParallelCoordinates::choiceCoordinate(const std::string& key) const {
  Coordinate line;
  line.name = QString::fromUtf8(field(key).label.data());
  std::vector<int> at;
  for (const TrialResult& t : result_.trials) {
    const QString value = QString::fromStdString(field_text(t.trial.spec, key));
    if (!line.values.contains(value)) line.values << value;
    at.push_back(static_cast<int>(line.values.indexOf(value)));
  }
  const double steps = std::max<double>(1, static_cast<double>(line.values.size()) - 1);
  for (const int index : at) line.place.push_back(line.values.size() < 2 ? 0.5 : index / steps);
  return line;
}

ParallelCoordinates::Coordinate ParallelCoordinates::numberCoordinate(Outcome outcome) const {
  Coordinate line;
  const OutcomeInfo& about = info(outcome);
  line.name = about.unit.isEmpty() ? about.name : about.name + ", " + about.unit;
  std::vector<double> values;
  for (const TrialResult& t : result_.trials) {
    const auto m = measured(t, outcome);
    values.push_back(m ? m->median : kNotMeasured);
  }
  line.low = std::numeric_limits<double>::max(), line.high = std::numeric_limits<double>::lowest();
  for (const double v : values)
    if (std::isfinite(v)) line.low = std::min(line.low, v), line.high = std::max(line.high, v);
  line.log = line.low > 0 && line.high / line.low > 10;
  for (const double v : values) {
    const double range = line.log ? std::log(line.high / line.low) : line.high - line.low;
    const double part = line.log ? std::log(v / line.low) / range : (v - line.low) / range;
    const double place = !std::isfinite(v) ? kNotMeasured : range <= 0 ? 0.5 : part;
    line.place.push_back(place);
  }
  return line;
}

// The choices, then their results. Measures that no trial has are left out.
std::vector<ParallelCoordinates::Coordinate> ParallelCoordinates::coordinates() const {
  std::vector<Coordinate> lines;
  for (const std::string& key : varied_keys(result_)) lines.push_back(choiceCoordinate(key));
  std::vector<Outcome> order{Outcome::DriverCalls, Outcome::Peak, Outcome::FirstLoss, Outcome::Accuracy,
                             Outcome::StepTime};
  std::erase(order, outcome_);
  order.push_back(outcome_);  // the main measure is last, where the eye ends
  for (const Outcome outcome : order) {
    Coordinate line = numberCoordinate(outcome);
    const bool known = std::ranges::any_of(line.place, [](double p) { return std::isfinite(p); });
    if (known && (line.high > line.low || outcome == outcome_)) lines.push_back(std::move(line));
  }
  return lines;
}

void ParallelCoordinates::paintCoordinate(QPainter& painter, const Coordinate& line, double x, const QRectF& plot,
                                          bool last) const {
  painter.setPen(QPen(theme().strong_border, 1));
  painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
  const double space = last ? 110 : 96;
  painter.setFont(ui_font(11, 600));
  painter.setPen(theme().text);
  painter.drawText(QRectF(x - 70, plot.top() - 30, 140, 18), Qt::AlignCenter,
                   painter.fontMetrics().elidedText(line.name, Qt::ElideRight, 136));
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  const auto write = [&](double share, const QString& text) {
    const double y = plot.bottom() - share * plot.height();
    painter.drawLine(QPointF(x - 3, y), QPointF(x + 3, y));
    const QString fits = painter.fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(space));
    QColor behind = theme().base;  // threads run behind the text
    behind.setAlphaF(0.8F);
    painter.fillRect(QRectF(x + 5, y - 8, painter.fontMetrics().horizontalAdvance(fits) + 5, 16), behind);
    painter.drawText(QRectF(x + 7, y - 8, space, 16), Qt::AlignLeft | Qt::AlignVCenter, fits);
  };
  if (line.values.isEmpty()) {
    write(0, significant_text(line.low));
    if (line.high > line.low) write(1, significant_text(line.high));
    return;
  }
  const double steps = std::max<double>(1, static_cast<double>(line.values.size()) - 1);
  for (int i = 0; i < line.values.size(); ++i) write(line.values.size() < 2 ? 0.5 : i / steps, line.values[i]);
}

void ParallelCoordinates::render(QPainter& painter, const QRectF& area) const {
  const std::vector<Coordinate> lines = coordinates();
  const QRectF plot = area.adjusted(80, 40, -130, -18);
  if (lines.size() < 2) return;
  const auto x = [&](size_t i) {
    return plot.left() + plot.width() * static_cast<double>(i) / static_cast<double>(lines.size() - 1);
  };
  const Coordinate& looked_at = lines.back();
  painter.setRenderHint(QPainter::Antialiasing);
  for (size_t trial = 0; trial < result_.trials.size(); ++trial) {
    const double place = looked_at.place[trial];
    if (!std::isfinite(place)) continue;
    const bool low_is_good = outcome_ != Outcome::Accuracy && outcome_ != Outcome::Throughput;
    const QColor colour = between(theme().better, theme().worse, low_is_good ? place : 1 - place);
    QPolygonF thread;
    for (size_t i = 0; i < lines.size(); ++i)
      if (std::isfinite(lines[i].place[trial]))
        thread << QPointF(x(i), plot.bottom() - lines[i].place[trial] * plot.height());
    painter.setPen(QPen(colour, 1.7));
    painter.drawPolyline(thread);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    for (const QPointF& p : thread) painter.drawEllipse(p, 2.6, 2.6);
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setBrush(Qt::NoBrush);
  for (size_t i = 0; i < lines.size(); ++i) paintCoordinate(painter, lines[i], x(i), plot, i + 1 == lines.size());
}

}  // namespace ws::app

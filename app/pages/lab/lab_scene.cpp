#include "app/pages/lab/lab_scene.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <set>

#include "app/pages/lab/lab_way_style.h"
#include "app/text/units.h"
#include "engine/lab/correctness.h"

namespace ws::app {
namespace {

// Notes why a curve has no point where others have one.
QString end_note(const lab::LabResult& result, lab::Way way) {
  for (const lab::LabPoint& p : result.points) {
    if (p.way != way) continue;
    if (!p.ok && p.note.find("largest that fits") != std::string::npos)
      return QObject::tr("%1 does not fit").arg(lab_size_text(static_cast<double>(p.size)));
    if (!p.ok && (p.note.starts_with(lab::kWrong) || p.note.starts_with(lab::kWrongKernel)))
      return QObject::tr("wrong at %1").arg(lab_size_text(static_cast<double>(p.size)));
    if (!p.ok && p.note.find("left out") != std::string::npos) return QObject::tr("then too slow");
    if (!p.ok) return QObject::tr("ended by an error");
    if (p.median_s > result.spec.longest_call_s) return QObject::tr("then too slow");
  }
  return {};
}

// The CPU has no events. For a pitfall, events would hide the pitfall.
bool by_events(const LabScene& scene, const lab::LabPoint& point) {
  return scene.clock == LabClock::Events && point.device_s > 0 && !lab::info(point.way).pitfall;
}

double value_of(const LabScene& scene, const lab::LabPoint& point, double seconds) {
  if (seconds <= 0) return 0;
  if (scene.axis == LabAxis::Time) return seconds;
  return static_cast<double>(scene.axis == LabAxis::Flops ? point.flops : point.bytes) / seconds;
}

void add_curves(LabScene& scene, size_t index) {
  const LabShown& shown = scene.shown[index];
  for (const lab::WayInfo& way : lab::ways()) {
    if (way.pitfall && scene.axis != LabAxis::Time) continue;  // its work was not waited for, so it has no throughput
    LabCurve curve{.way = way.way, .label = lab_label(way.way, shown.result.spec)};
    curve.pitfall = way.pitfall;
    curve.shown = index;
    if (index > 0) curve.label = QObject::tr("%1: %2").arg(shown.name, lab_short_label(way.way, shown.result.spec));
    curve.end_note = end_note(shown.result, way.way);
    for (const lab::LabPoint& p : shown.result.points) {
      const bool events = by_events(scene, p);
      const double value = p.way == way.way && p.ok ? value_of(scene, p, events ? p.device_s : p.median_s) : 0;
      if (value <= 0) continue;
      const double low = value_of(scene, p, events ? p.device_low_s : p.low_s),
                   high = value_of(scene, p, events ? p.device_high_s : p.high_s);
      const bool known = low > 0 && high > 0;
      curve.points.emplace_back(static_cast<double>(p.size), value);
      curve.spread.emplace_back(known ? std::min(low, high) : value, known ? std::max(low, high) : value);
    }
    const auto none = [](const auto& band) { return band.first == band.second; };
    if (std::ranges::all_of(curve.spread, none)) curve.spread.clear();
    if (!curve.points.empty()) scene.curves.push_back(std::move(curve));
  }
}

}  // namespace

void LabScene::rebuild() {
  curves.clear();
  crossovers.clear();
  ceilings = {};
  for (size_t i = shown.size(); i-- > 0;) add_curves(*this, i);  // the sweep itself is on top
  if (!shown.empty()) {
    ceilings = shown[0].result.ceilings;
    if (axis == LabAxis::Time && clock == LabClock::Host) crossovers = lab::crossovers(shown[0].result);
  }
  std::erase_if(crossovers, [](const lab::Crossover& c) {
    return lab::info(c.slower_below).gpu || !lab::info(c.faster_above).gpu;
  });
  if (crossovers.size() > 3) crossovers.resize(3);
}

QString LabScene::valueText(double value) const {
  if (axis == LabAxis::Time) return time_axis_text(value * 1e6);
  const bool flops = axis == LabAxis::Flops;
  if (value >= 1e12) return significant_text(value / 1e12) + (flops ? " TFLOP/s" : " TB/s");
  if (value >= 1e9) return significant_text(value / 1e9) + (flops ? " GFLOP/s" : " GB/s");
  return significant_text(value / 1e6) + (flops ? " MFLOP/s" : " MB/s");
}

std::optional<int64_t> LabScene::cursorPoint() const {
  std::optional<int64_t> nearest;
  if (!cursor) return nearest;
  const auto away = [this](double size) { return std::abs(std::log(size / *cursor)); };
  for (const LabCurve& curve : curves)
    for (const QPointF& p : curve.points)
      if (!nearest || away(p.x()) < away(static_cast<double>(*nearest))) nearest = static_cast<int64_t>(p.x());
  return nearest;
}

std::vector<double> LabScene::sizes() const {
  std::set<double> all;
  for (const LabCurve& curve : curves)
    for (const QPointF& p : curve.points) all.insert(p.x());
  if (all.empty()) return {16, 4096};  // nothing is drawn
  return {all.begin(), all.end()};
}

QString LabScene::sizeTitle() const {
  if (shown.empty()) return QObject::tr("size");
  const lab::LabSpec& spec = shown[0].result.spec;
  if (spec.operation != lab::Operation::MatMul) return QObject::tr("N, elements");
  if (spec.m == 0 && spec.k == 0) return QObject::tr("N, side of the matrices");
  const auto side = [](int64_t n) { return n > 0 ? QString::number(n) : QString("N"); };
  return QObject::tr("N of a product %1 × %2 × N").arg(side(spec.m), side(spec.k));
}

QPointF LabFrame::at(const QPointF& p) const {
  return {plot.left() + (std::log10(p.x()) - x0) / (x1 - x0) * plot.width(),
          plot.bottom() - (std::log10(p.y()) - y0) / (y1 - y0) * plot.height()};
}
double LabFrame::sizeAt(double x) const { return std::pow(10, x0 + (x - plot.left()) / plot.width() * (x1 - x0)); }

LabFrame LabScene::frame(const QRectF& area) const {
  LabFrame f;
  f.plot = area.adjusted(axis == LabAxis::Time ? 66 : 88, 10, compact ? -14 : -kLabLabelWidth, compact ? -24 : -38);
  const std::vector<double> all = sizes();
  const double x0 = all.front(), x1 = all.back();
  double y0 = 1e300, y1 = 0;
  for (const LabCurve& curve : curves)
    for (const QPointF& p : curve.points) y0 = std::min(y0, p.y()), y1 = std::max(y1, p.y());
  if (curves.empty())
    y0 = axis == LabAxis::Time ? 1e-6 : 1e8, y1 = axis == LabAxis::Time ? 1 : 1e13;
  for (const auto& [value, name] : ceilingLines())
    if (value < 20 * y1) y1 = std::max(y1, value);  // show a ceiling that is close enough
  f.x0 = std::log10(x0) - 0.03, f.x1 = std::log10(std::max(x1, x0 * 1.01)) + 0.03;
  f.y0 = std::floor(std::log10(y0) * 2 - 0.2) / 2, f.y1 = std::ceil(std::log10(y1) * 2 + 0.2) / 2;
  return f;
}

std::vector<std::pair<double, QString>> LabScene::ceilingLines() const {
  std::vector<std::pair<double, QString>> lines;
  const lab::Ceilings& c = ceilings;
  if (axis == LabAxis::Flops) lines = {{c.fp32_flops_s, "fp32"}, {c.tf32_flops_s, "tf32"}, {c.fp16_flops_s, "fp16"}};
  if (axis == LabAxis::Bytes)
    lines = {{c.read_write_bytes_s, compact ? QObject::tr("memory") : QObject::tr("device memory")},
             {c.pinned_bytes_s, compact ? QObject::tr("pinned") : QObject::tr("pinned copy")}};
  std::erase_if(lines, [](const auto& line) { return line.first <= 0; });
  return lines;
}

}  // namespace ws::app

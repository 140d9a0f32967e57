#include "app/core/report/drawing.h"

#include <cmath>

#include "profiling/base/safe_text.h"

namespace ws::app {
namespace {

constexpr const char* kAnchors[] = {"start", "middle", "end"};

std::string shown(const Drawing::Rect& r) {
  return formatted("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" stroke=\"{}\"{}/>\n",
                   r.x, r.y, r.width, r.height, r.fill, r.stroke,
                   r.opacity < 1 ? formatted(" fill-opacity=\"{:.2f}\"", r.opacity) : "");
}

std::string shown(const Drawing::Line& l) {
  std::string points, dash;
  for (const auto& [x, y] : l.points) points += formatted("{:.2f},{:.2f} ", x, y);
  for (const double length : l.dash) dash += formatted("{}{:g}", dash.empty() ? "" : " ", length);
  return formatted("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2f}\"{}{}/>\n", points,
                   l.stroke, l.width, dash.empty() ? "" : " stroke-dasharray=\"" + dash + "\"",
                   l.opacity < 1 ? formatted(" stroke-opacity=\"{:.2f}\"", l.opacity) : "");
}

std::string shown(const Drawing::Text& t) {
  return formatted("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\" font-size=\"{:.2f}\" fill=\"{}\"{}>{}</text>\n",
                   t.x, t.y, kAnchors[static_cast<size_t>(t.anchor)], t.size, t.ink,
                   t.weight != 400 ? formatted(" font-weight=\"{}\"", t.weight) : "", escape_xml(t.text));
}

}  // namespace

std::string to_svg(const Drawing& drawing) {
  std::string svg = formatted(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.2f} {1:.2f}\" width=\"{0:.2f}\" height=\"{1:.2f}\" "
      "font-family=\"Inter, DejaVu Sans, sans-serif\">\n",
      drawing.width, drawing.height);
  for (const auto& shape : drawing.shapes) svg += std::visit([](const auto& one) { return shown(one); }, shape);
  return svg + "</svg>";
}

std::vector<double> ticks(double low, double high, bool log, int about) {
  std::vector<double> out;
  if (!(high > low)) return {low};
  if (log) {
    const int first = static_cast<int>(std::ceil(std::log10(low))),
              last = static_cast<int>(std::floor(std::log10(high)));
    for (int d = first; d <= last; ++d) out.push_back(std::pow(10.0, d));
    return out;
  }
  const double raw = (high - low) / about, decade = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * decade;
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * decade >= raw) {
      step = factor * decade;
      break;
    }
  for (double t = std::ceil(low / step) * step; t <= high + step * 1e-9; t += step) out.push_back(t);
  return out;
}

std::string tick_text(double value) {
  return std::abs(value) >= 10000 ? formatted("{:.3g}k", value / 1000) : formatted("{:.4g}", value);
}

}  // namespace ws::app

#include "app/core/report/svg.h"

#include <cmath>

#include "profiling/base/text.h"

namespace ws::app {
namespace {

std::string number(double value) { return formatted("{:.2f}", value); }

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}

}  // namespace

std::string escape_xml(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n')
      out += c;
  }
  return out;
}

Svg::Svg(double width, double height) {
  const std::string w = number(width), h = number(height);
  body_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + w + " " + h + "\" width=\"" + w +
          "\" height=\"" + h + "\" font-family=\"Inter, DejaVu Sans, sans-serif\">\n";
}

void Svg::rect(double x, double y, double w, double h, const std::string& fill, const std::string& stroke,
               double opacity) {
  body_ += "<rect" + attribute("x", number(x)) + attribute("y", number(y)) + attribute("width", number(w)) +
           attribute("height", number(h)) + attribute("fill", fill) + attribute("stroke", stroke) +
           (opacity < 1 ? attribute("fill-opacity", number(opacity)) : "") + "/>\n";
}

void Svg::line(double x0, double y0, double x1, double y1, const std::string& stroke, double width,
               const std::string& dash) {
  polyline({{x0, y0}, {x1, y1}}, stroke, width, dash);
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, const std::string& stroke, double width,
                   const std::string& dash, double opacity) {
  std::string list;
  for (const auto& [x, y] : points) list += number(x) + "," + number(y) + " ";
  body_ += "<polyline" + attribute("points", list) + attribute("fill", "none") + attribute("stroke", stroke) +
           attribute("stroke-width", number(width)) + (dash.empty() ? "" : attribute("stroke-dasharray", dash)) +
           (opacity < 1 ? attribute("stroke-opacity", number(opacity)) : "") + "/>\n";
}

void Svg::text(double x, double y, const std::string& text, const std::string& anchor, double size,
               const std::string& fill, int weight) {
  body_ += "<text" + attribute("x", number(x)) + attribute("y", number(y)) + attribute("text-anchor", anchor) +
           attribute("font-size", number(size)) + attribute("fill", fill) +
           (weight != 400 ? attribute("font-weight", std::to_string(weight)) : "") + ">" + escape_xml(text) +
           "</text>\n";
}

std::string Svg::done() && { return std::move(body_) + "</svg>"; }

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

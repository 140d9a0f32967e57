// Just enough SVG to draw a chart: shapes, text, axes with sensible ticks.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace ws::app {

std::string escape_xml(const std::string& text);

inline constexpr const char* kInk = "#191C22";  // text that is read first, on white

class Svg {
 public:
  Svg(double width, double height);
  void rect(double x, double y, double w, double h, const std::string& fill, const std::string& stroke = "none",
            double opacity = 1);
  void line(double x0, double y0, double x1, double y1, const std::string& stroke, double width = 1,
            const std::string& dash = "");
  void polyline(const std::vector<std::pair<double, double>>& points, const std::string& stroke, double width,
                const std::string& dash = "", double opacity = 1);
  void text(double x, double y, const std::string& text, const std::string& anchor = "start", double size = 11,
            const std::string& fill = "#48505D", int weight = 400);
  std::string done() &&;

 private:
  std::string body_;
};

// Ticks at 1, 2 or 5 times a power of ten, or at powers of ten on a log axis.
std::vector<double> ticks(double low, double high, bool log, int about);
std::string tick_text(double value);

}  // namespace ws::app

// A drawing as a list of shapes, used for figures. This file writes it as SVG; app/report paints it on paper.
#pragma once
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ws::app {

inline constexpr const char* kInk = "#191C22";  // text to read first, on white

enum class Anchor { Start, Middle, End };

struct Drawing {
  struct Rect {
    double x, y, width, height;
    std::string fill, stroke;
    double opacity;  // applies to the fill
  };
  struct Line {
    std::vector<std::pair<double, double>> points;
    std::string stroke;
    double width;
    std::vector<double> dash;
    double opacity;
  };
  struct Text {
    double x, y;  // y of the baseline
    std::string text;
    Anchor anchor;
    double size;
    std::string ink;
    int weight;
  };

  void rect(double x, double y, double w, double h, const std::string& fill, const std::string& stroke = "none",
            double opacity = 1) {
    shapes.push_back(Rect{x, y, w, h, fill, stroke, opacity});
  }
  void line(double x0, double y0, double x1, double y1, const std::string& stroke, double line_width = 1) {
    polyline({{x0, y0}, {x1, y1}}, stroke, line_width);
  }
  void polyline(std::vector<std::pair<double, double>> points, const std::string& stroke, double line_width,
                std::vector<double> dash = {}, double opacity = 1) {
    shapes.push_back(Line{std::move(points), stroke, line_width, std::move(dash), opacity});
  }
  void text(double x, double y, const std::string& text, Anchor anchor = Anchor::Start, double size = 11,
            const std::string& ink = "#48505D", int weight = 400) {
    shapes.push_back(Text{x, y, text, anchor, size, ink, weight});
  }

  double width = 0, height = 0;
  std::vector<std::variant<Rect, Line, Text>> shapes;
};

std::string to_svg(const Drawing& drawing);  // a complete element with vector text, usable as a file

// Ticks at 1, 2 or 5 times a power of ten, or at powers of ten on a log axis.
std::vector<double> ticks(double low, double high, bool log, int about);
std::string tick_text(double value);

}  // namespace ws::app

// The data of the laboratory's chart: curves, crossovers, ceilings, and the cursor position. Pure.
#pragma once
#include <QPointF>
#include <QRectF>
#include <QString>
#include <optional>
#include <vector>

#include "engine/lab/lab.h"

namespace ws::app {

enum class LabAxis { Time, Flops, Bytes };
enum class LabClock { Host, Events };

// One result in the chart: the sweep itself, or an overlay.
struct LabShown {
  lab::LabResult result;
  QString name;  // for an overlay: "PyTorch 2.11", "earlier 14:41"
  QString path;  // its run file; empty if there is none
  QString shipped = {};  // of a result that comes with the program: what it is. It stands there until there is another
  bool other_settings = false;  // of the shipped result: the form has choices of its own
};

// One curve. A pitfall curve is dashed and excluded from comparisons.
struct LabCurve {
  lab::Way way;
  QString label, end_note;  // why it ends before the last size
  bool pitfall = false;
  size_t shown = 0;                               // 0: the sweep itself, then the overlays
  std::vector<QPointF> points;                    // size, value in the axis' unit
  std::vector<std::pair<double, double>> spread;  // 5th and 95th percentile of the clock shown; empty if unknown
  bool earlier() const { return shown > 0; }
};

struct LabPick {
  size_t shown = 0;
  lab::Way way{};
  int64_t size = 0;
  bool operator==(const LabPick&) const = default;
};

// The plot in an area; both axes are logarithmic.
struct LabFrame {
  QRectF plot;
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;  // decades
  QPointF at(const QPointF& p) const;
  double sizeAt(double x) const;
};

struct LabScene {
  LabAxis axis = LabAxis::Time;
  LabClock clock = LabClock::Host;
  bool compact = false;          // no labels at the line ends, no crossovers
  std::vector<LabShown> shown;   // the first is the sweep itself
  std::optional<double> cursor;  // a size
  std::optional<LabPick> ring;

  // rebuild() makes these from the members above.
  std::vector<LabCurve> curves;
  std::vector<lab::Crossover> crossovers;
  lab::Ceilings ceilings;
  void rebuild();

  LabFrame frame(const QRectF& area) const;
  std::vector<double> sizes() const;           // measured, ascending; never empty
  std::optional<int64_t> cursorPoint() const;  // the measured size nearest to the cursor
  std::vector<std::pair<double, QString>> ceilingLines() const;
  QString valueText(double value) const;
  QString sizeTitle() const;
};

constexpr double kLabLabelWidth = 186;  // for the labels at the line ends

}  // namespace ws::app

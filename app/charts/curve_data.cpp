#include "app/charts/curve_data.h"

#include <algorithm>

#include "app/charts/driver_calls.h"

namespace ws::app {
namespace {

double meter_value(Gauge measure, const MeterPoint& p, double byte_unit) {
  if (measure == Gauge::AllocatorCalls) return p.allocate + p.free;
  if (measure == Gauge::Throughput) return p.samples_per_s;
  return p.reserved / byte_unit;
}

}  // namespace

CurveData::CurveData(Run* run, Gauge measure, XAxis x, double smoothing, double byte_unit)
    : run_(run), measure_(measure), x_(x), smoothing_(smoothing), byte_unit_(byte_unit), ema_(smoothing) {}

double CurveData::xOf(double step, double wall) const {
  if (x_ == XAxis::Wall) return wall;
  if (x_ == XAxis::Step) return step;
  return run_->stepsPerEpoch() > 0 ? step / run_->stepsPerEpoch() : 0;
}

double CurveData::xOfStep(double step) const { return xOf(step, static_cast<double>(run_->timeOfStep(step)) * 1e-9); }

double CurveData::stepOf(double x) const {
  if (x_ == XAxis::Step) return x;
  return x_ == XAxis::Epoch ? x * run_->stepsPerEpoch() : run_->stepAt(static_cast<prof::TimeNs>(x * 1e9));
}

const MinMaxSeries& CurveData::shown() const {
  if (measure_ == Gauge::Accuracy) return test_;
  return measure_ == Gauge::Loss && smoothing_ > 0 ? smooth_ : raw_;
}

void CurveData::take() {
  if (!run_) return;
  measure_ == Gauge::Loss || measure_ == Gauge::Accuracy ? takeSteps() : takeMeters();
}

void CurveData::takeSteps() {
  const Run& run = *run_;
  const double scale = measure_ == Gauge::Accuracy ? 100 : 1;
  if (thinned_ != run.stepsThinned()) {  // old points have new positions now
    thinned_ = run.stepsThinned();
    raw_.clear(), smooth_.clear();
    ema_ = Ema(smoothing_);
    taken_ = 0;
  }
  for (; taken_ < run.steps.size(); ++taken_) {
    const StepPoint& p = run.steps[taken_];
    const double x = xOf(p.step, p.wall_s), y = measure_ == Gauge::Loss ? p.loss : p.accuracy * scale;
    raw_.append(x, y);
    smooth_.append(x, ema_.add(y));
  }
  for (; taken_test_ < run.evals.size(); ++taken_test_) {
    const EvalPoint& p = run.evals[taken_test_];
    test_.append(xOf(p.step, p.wall_s), measure_ == Gauge::Loss ? p.loss : p.accuracy * scale);
  }
  if (measure_ == Gauge::Loss) takeLosses();
}

const MinMaxSeries& CurveData::shown(const LossLine& line) const {
  if (line.first) return line.test ? test_ : shown();
  return smoothing_ > 0 && !line.test ? line.smooth : line.raw;
}

// A further loss has the time when it was read, and the losses of the steps show which step that was. The newest step may still
// be on its way.
void CurveData::takeLosses() {
  const Run& run = *run_;
  const std::vector<LossCurve> curves = run.lossCurves();
  losses_.resize(curves.size(), LossLine{{}, false, false, {}, {}, Ema(smoothing_)});
  for (size_t i = 0; i < curves.size(); ++i) {
    LossLine& line = losses_[i];
    const bool first = !curves[i].points;
    if (line.name != curves[i].name || line.first != first || (!first && curves[i].points->points.size() < line.taken))
      line = {curves[i].name, curves[i].test, first, {}, {}, Ema(smoothing_)};
    if (first) continue;
    const auto& points = curves[i].points->points;
    for (; line.taken < points.size(); ++line.taken) {
      const double wall = static_cast<double>(points[line.taken].time) * 1e-9, y = points[line.taken].value;
      const auto after = std::ranges::upper_bound(run.steps, wall, {}, &StepPoint::wall_s);
      if (after == run.steps.end() && run.live()) break;
      const double step = after == run.steps.begin() ? run.stepAt(points[line.taken].time) : std::prev(after)->step;
      line.raw.append(xOf(step, wall), y);
      if (!line.test) line.smooth.append(xOf(step, wall), line.ema.add(y));
    }
  }
}

// Groups of steps are merged as a run grows, so these curves are rebuilt each time.
bool CurveData::takeDriverCalls() {
  const Run& run = *run_;
  const bool time = measure_ == Gauge::AllocatorTime;
  if (!time && (measure_ != Gauge::AllocatorCalls || !counted_by_driver_alone(run))) return false;
  const auto points = driver_calls_over(run);
  if (points.empty()) return time;
  raw_.clear();
  double last = 0;
  for (const DriverPoint& p : points) {
    const double y = time ? p.us : p.calls;
    if (raw_.empty()) raw_.append(p.first > 0 ? last = xOfStep(p.first) : 0, y);
    raw_.append(last = std::max(last, xOf(p.step, p.wall_s)), y);
  }
  return true;
}

void CurveData::takeMeters() {
  if (takeDriverCalls()) return;
  const Run& run = *run_;
  for (; taken_ < run.meters.size(); ++taken_) {
    const MeterPoint& p = run.meters[taken_];
    if (measure_ == Gauge::Memory && p.reserved <= 0 && p.used <= 0) continue;  // not recorded
    if (raw_.empty()) raw_.append(0, meter_value(measure_, p, byte_unit_));
    raw_.append(xOf(p.step, p.wall_s), meter_value(measure_, p, byte_unit_));
    if (measure_ == Gauge::Memory) smooth_.append(xOf(p.step, p.wall_s), p.used / byte_unit_);
  }
}

}  // namespace ws::app

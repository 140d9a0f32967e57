#include "app/workspace/closing_line.h"

#include "app/text/units.h"

namespace ws::app {
namespace {

// Compares speeds only if a step of both does the same work.
QString against(const Run& run, const Run& before) {
  const auto work = [](const Run& r) {
    RunSpec spec = spec_now(r);
    spec.exec = {};
    return std::pair(spec.data, std::pair(spec.model, spec.train.batch));
  };
  if (!(work(run) == work(before))) return {};
  const Difference speeds = difference(before.step_time.us, run.step_time.us);
  if (!(speeds.delta == speeds.delta)) return {};
  if (!speeds.beyond_noise) return QObject::tr("as fast as the run before, within noise");
  const double ratio = before.stepUs() / run.stepUs();
  return ratio > 1 ? QObject::tr("%1× faster than the run before").arg(fixed_text(ratio, 2))
                   : QObject::tr("%1× slower than the run before").arg(fixed_text(1 / ratio, 2));
}

}  // namespace

QString closing_line(const Run& run, const Run* before) {
  const double accuracy = run.testAccuracy(), loss = run.testLoss();
  QString text = accuracy == accuracy ? fixed_text(100 * accuracy, 2) + " %"
                 : loss == loss       ? QObject::tr("test loss %1").arg(significant_text(loss))
                                      : QObject::tr("%1 steps").arg(count_text(run.stepsMade()));
  if (run.summary) text += QObject::tr(" in %1").arg(duration_text(run.summary->wall_s));
  if (run.stepUs() > 0) text += QObject::tr(", step time %1").arg(step_time_text(run.stepUs()));
  if (!before) return text;
  if (const QString speed = against(run, *before); !speed.isEmpty()) text += ", " + speed;
  const RunSpec was = spec_now(*before);
  const QString differs = changes_between(was, spec_now(run));
  return differs.isEmpty() ? text : text + ": " + differs;
}

}  // namespace ws::app

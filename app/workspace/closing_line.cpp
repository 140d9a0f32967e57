#include "app/workspace/closing_line.h"

#include "app/core/comparison/comparison_text.h"
#include "app/core/comparison/mismatches.h"
#include "app/text/units.h"

namespace ws::app {

bool comparable(const Run& baseline, const Run& run) {
  const auto usable = [](const Run& r) { return r.hasChoices() && !r.lab; };
  return usable(baseline) && usable(run) && baseline.stepsMade() > 0 && baseline.spec.data.name == run.spec.data.name &&
         baseline.spec.data.path == run.spec.data.path;
}

QString speed_against(const Run& run, const Run& baseline, const QString& name) {
  const auto choices = [](const Run& r) { return r.hasChoices() ? &r.spec : nullptr; };
  if (!same_task(choices(run), choices(baseline))) return {};
  const std::string within = verdict_text(Verdict::WithinNoise);
  const MeasureValue before = step_time_measure(baseline.step_time), now = step_time_measure(run.step_time);
  const std::string text = pace_text(before, now, QObject::tr(" than %1").arg(name).toStdString());
  if (text == within && noise_hides_all(before, now)) return QObject::tr("too much noise to compare with %1").arg(name);
  return text == within ? QObject::tr("as fast as %1, %2").arg(name, QString::fromStdString(within))
                        : QString::fromStdString(text);
}

QString closing_line(const Run& run, const Run* baseline) {
  const double accuracy = run.testAccuracy(), loss = run.testLoss();
  QString text = accuracy == accuracy ? fixed_text(100 * accuracy, 2) + " %"
                 : loss == loss       ? QObject::tr("test loss %1").arg(significant_text(loss))
                                      : QObject::tr("%1 steps").arg(count_text(run.stepsMade()));
  if (run.summary) text += QObject::tr(" in %1").arg(duration_text(run.summary->wall_s));
  if (run.stepUs() > 0) text += ", " + step_time_name() + " " + step_time_text(run.stepUs());
  const QString busy = run.machineBusy() ? QObject::tr(". Something else used this machine") : QString();
  if (!baseline) return text + busy;
  const QString name = run_letter(baseline->letter);
  if (const QString speed = speed_against(run, *baseline, name); !speed.isEmpty()) text += ", " + speed;
  if (const QString differs = changes_between(baseline->spec, run.spec); !differs.isEmpty()) text += ": " + differs;
  return busy.isEmpty() && baseline->machineBusy() ? text + QObject::tr(". Something else used this machine while %1 trained").arg(name) : text + busy;
}

}  // namespace ws::app

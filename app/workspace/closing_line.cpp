#include "app/workspace/closing_line.h"

#include "app/core/comparison/comparison_text.h"
#include "app/core/comparison/comparison.h"
#include "app/text/units.h"
#include "app/workspace/compared_live_run.h"

namespace ws::app {

bool comparable(const Run& baseline, const Run& run) {
  const auto usable = [](const Run& r) { return r.hasChoices() && !r.lab; };
  return usable(baseline) && usable(run) && baseline.stepsMade() > 0 && baseline.spec.data.name == run.spec.data.name &&
         baseline.spec.data.path == run.spec.data.path;
}

QString speed_against(const Run& run, const Run& baseline, const QString& name) {
  const auto choices = [](const Run& r) { return r.hasChoices() ? &r.spec : nullptr; };
  if (!same_task(choices(run), choices(baseline))) return {};
  const std::string within = kWithinNoise;
  const MeasureValue before = step_time_measure(baseline.step_time), now = step_time_measure(run.step_time);
  const std::string text = pace_text(before, now, QObject::tr(" than %1").arg(name).toStdString());
  if (text == within && noise_hides_all(before, now)) return QObject::tr("too much noise to compare with %1").arg(name);
  return text == within ? QObject::tr("as fast as %1, %2").arg(name, QString::fromStdString(within))
                        : QString::fromStdString(text);
}

QString judged_by(const Run& run, const Run& pinned) {
  if (&run == &pinned || run.lab || pinned.lab || run.hasChoices() != pinned.hasChoices()) return {};
  const bool same = run.hasChoices() ? same_task(&pinned.spec, &run.spec) : program_of(run) == program_of(pinned);
  if (!same || !(run.stepUs() > 0)) return {};
  const StepVerdict judged = judge_step(step_time_measure(pinned.step_time), step_time_measure(run.step_time));
  return QObject::tr("pinned baseline %1: %2").arg(run_letter(pinned.letter), QString::fromStdString(judged_text(judged)));
}

QString closing_line(const Run& run, const Run* baseline, const Run* pinned) {
  const double accuracy = run.testAccuracy(), loss = run.testLoss();
  QString text = accuracy == accuracy ? fixed_text(100 * accuracy, 2) + " %"
                 : loss == loss       ? QObject::tr("test loss %1").arg(significant_text(loss))
                                      : QObject::tr("%1 steps").arg(count_text(run.stepsMade()));
  if (run.summary) text += QObject::tr(" in %1").arg(duration_text(run.summary->wall_s));
  if (run.stepUs() > 0) text += ", " + step_time_name() + " " + step_time_text(run.stepUs());
  const QString judged = pinned ? judged_by(run, *pinned) : QString();
  if (!judged.isEmpty()) text += ", " + judged;
  const Run* const compared = judged.isEmpty() ? baseline : pinned;
  const QString name = compared ? run_letter(compared->letter) : QString();
  if (baseline && baseline != pinned)
    if (const QString speed = speed_against(run, *baseline, run_letter(baseline->letter)); !speed.isEmpty()) text += ", " + speed;
  const QString differs = baseline ? changes_between(baseline->spec, run.spec) : QString();
  if (!differs.isEmpty()) text += ": " + differs;
  if (run.machineBusy()) return text + QObject::tr(". Something else used this machine");
  return compared && compared->machineBusy() ? text + QObject::tr(". Something else used this machine while %1 trained").arg(name) : text;
}

}  // namespace ws::app

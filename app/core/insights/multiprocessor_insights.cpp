#include "app/core/insights/trace_insights.h"
#include "profiling/base/text.h"

namespace ws::app {

std::optional<Insight> late_multiprocessor(const prof::MultiprocessorReport& report) {
  constexpr double kWorthALook = 0.02;  // share of a step inside the kernel
  if (report.late.empty() || report.late[0].cost_us < kWorthALook * report.step_us) return std::nullopt;
  const prof::LateMultiprocessor& late = report.late[0];
  const prof::InnerStep& step = report.steps[late.step];
  Insight insight{"late multiprocessor", late.name + " ends " + late.phase + " late and costs " + time_text(late.cost_us) + " of a step",
                  "The other multiprocessors wait for it. It may have more work than the others, read from farther "
                  "memory, or share its time with another program."};
  insight.more = with_capital(late_text(late)) + ".";
  insight.how = "Look at each step on the page Multiprocessors.";
  insight.look_at = report.phases[late.part].meaning;
  insight.around = {step.begin, step.end};
  insight.cost_ns = late.cost_us * 1e3 * static_cast<double>(report.steps.size());
  return insight;
}

}  // namespace ws::app

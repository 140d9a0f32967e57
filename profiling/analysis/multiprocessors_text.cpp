#include <nlohmann/json.hpp>

#include "profiling/analysis/multiprocessors.h"
#include "profiling/base/text.h"

namespace ws::prof {

std::string late_text(const LateMultiprocessor& late) {
  return late.name + " ends " + late.phase + " " + fixed(late.late_us, 2) + " µs later than the median in " +
         percent(late.share, 0) + " of the steps: costs " + fixed(late.cost_us, 2) + " µs a step";
}

std::string to_text(const MultiprocessorReport& report) {
  if (!report.any())
    return "No kernel of this run shows its inside. Train with exec.launch=persistent and a trace, or put the ranges "
           "of profiling/annotate/kernel_ranges.cuh into a kernel.\n";
  std::string text;
  for (const LateMultiprocessor& late : report.late) text += late_text(late) + "\n";
  if (report.late.empty()) text = "No multiprocessor is late by more than the usual spread.\n";
  text += "\n" + std::to_string(report.multiprocessors) + " multiprocessors · " + std::to_string(report.steps) +
          (report.steps == 1 ? " step · " : " steps · ") + time_text(report.step_us) + " a step inside the kernel\n\n";
  text +=
      formatted("{:>10} {:>10} {:>10} {:>8}  {:<20} {}\n", "min µs", "median µs", "max µs", "on", "slowest", "part");
  for (const InnerPhase& phase : report.phases)
    text += formatted("{:>10} {:>10} {:>10} {:>8}  {:<20} {}\n", fixed(phase.least, 3), fixed(phase.median, 3),
                      fixed(phase.most, 3), phase.multiprocessors, phase.slowest, phase.name);
  return text;
}

std::string to_json(const MultiprocessorReport& report) {
  nlohmann::json parts = nlohmann::json::array(), late = parts;
  for (const InnerPhase& phase : report.phases)
    parts.push_back({{"name", phase.name},
                     {"multiprocessors", phase.multiprocessors},
                     {"min_us", phase.least},
                     {"median_us", phase.median},
                     {"max_us", phase.most},
                     {"slowest", phase.slowest}});
  for (const LateMultiprocessor& one : report.late)
    late.push_back({{"name", one.name},
                    {"part", one.phase},
                    {"late_us", one.late_us},
                    {"share", one.share},
                    {"cost_us", one.cost_us},
                    {"text", late_text(one)}});
  const nlohmann::json json{{"multiprocessors", report.multiprocessors},
                            {"steps", report.steps},
                            {"step_us", report.step_us},
                            {"parts", parts},
                            {"late", late}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::prof

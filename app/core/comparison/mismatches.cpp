#include "app/core/comparison/mismatches.h"

namespace ws::app {
namespace {

std::string text_of(Traced traced) {
  switch (traced) {
    case Traced::No:
      return "not traced";
    case Traced::StepsOnly:
      return "traced by steps only";
    case Traced::Phases:
      return "traced by phases";
    case Traced::Kernels:
      return "traced by kernels";
  }
  return {};
}

// The run by kernels if the other one is by phases of a CPU.
const ComparedRun* against_cpu(const ComparedRun& a, const ComparedRun& b) {
  if (a.traced == Traced::Phases && b.traced == Traced::Kernels) return &b;
  return a.traced == Traced::Kernels && b.traced == Traced::Phases ? &a : nullptr;
}

bool same_model(const RunSpec& a, const RunSpec& b) {
  const bool same_kind = a.model.kind == b.model.kind && a.model.layers == b.model.layers;
  return same_kind && (!a.model.layers.empty() || a.model.hidden == b.model.hidden);
}

void name_choices(std::vector<std::string>& out, const RunSpec& a, const RunSpec& b) {
  if (!same_model(a, b)) out.emplace_back("the models differ: their kernels cannot be compared one by one");
  if (a.data.name != b.data.name) out.emplace_back("the data sets differ: losses are not comparable");
  if (a.train.batch != b.train.batch) out.emplace_back("the batches differ: compare samples a second, not steps");
  if (a.exec.precision != b.exec.precision) out.emplace_back("precision differs: losses are close, not equal");
}

}  // namespace

std::vector<std::string> mismatches(const ComparedRun& a, const ComparedRun& b) {
  std::vector<std::string> out;
  if (a.spec && b.spec) name_choices(out, *a.spec, *b.spec);
  if (a.device != b.device && !a.device.empty() && !b.device.empty())
    out.push_back("trained on different devices: " + a.device + " and " + b.device);
  if (a.steps > 0 && b.steps > 0 && a.steps != b.steps)
    out.push_back(std::to_string(a.steps) + " and " + std::to_string(b.steps) +
                  " steps: compare losses at the same step");
  if (const ComparedRun* gpu = against_cpu(a, b))
    out.push_back("one ran on the CPU alone, the other on " + (gpu->device.empty() ? "a GPU" : gpu->device) +
                  ": phases of the CPU stand beside kernels");
  else if (a.traced != b.traced)
    out.push_back("one was " + text_of(a.traced) + ", the other " + text_of(b.traced) + ": tracing costs time");
  if (other_program(a, b))
    out.push_back("different programs, " + a.program + " and " + b.program + ": the figures stand side by side, and neither is better");
  else if ((a.imported && !a.spec) || (b.imported && !b.spec))
    out.emplace_back("trained by another program: its choices are not known here");
  if (!a.python_level.empty() && !b.python_level.empty() && a.python_level != b.python_level)
    out.push_back("recorded at level " + a.python_level + " and at level " + b.python_level + ": a higher level slows Python more");
  return out;
}

bool other_program(const ComparedRun& a, const ComparedRun& b) { return !a.program.empty() && !b.program.empty() && a.program != b.program; }

bool same_task(const RunSpec* a, const RunSpec* b) {
  return !a || !b || (same_work_a_sample(a, b) && a->train.batch == b->train.batch);
}

bool same_work_a_sample(const RunSpec* a, const RunSpec* b) {
  return !a || !b || (same_model(*a, *b) && a->data.name == b->data.name);
}

}  // namespace ws::app

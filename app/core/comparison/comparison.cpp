#include "app/core/comparison/comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "app/core/runs/data_shape.h"
#include "profiling/base/statistics.h"

namespace ws::app {
namespace {

// "cnn.py and a training of Warpsight"
std::string programs_of(const ComparedRun& a, const ComparedRun& b) {
  const auto name = [](const ComparedRun& run) { return run.program.empty() ? std::string("a training of Warpsight") : run.program; };
  return name(a) + " and " + name(b);
}

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
  if (a.train.batch != b.train.batch) out.emplace_back("the batches differ: compare samples per second, not steps");
  if (a.exec.precision != b.exec.precision) out.emplace_back("precision differs: losses are close, not equal");
}

// Sentences on what makes a comparison unfair.
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
    out.push_back("different programs, " + programs_of(a, b) + ": the figures stand side by side, and neither is better");
  else if ((a.imported && !a.spec) || (b.imported && !b.spec))
    out.emplace_back("trained by another program: its settings are not known here");
  if (!a.python_level.empty() && !b.python_level.empty() && a.python_level != b.python_level)
    out.push_back("recorded at level " + a.python_level + " and at level " + b.python_level + ": a higher level slows Python more");
  return out;
}

std::vector<ComparedMeasure> compared_measures(const ComparedRun& a, const ComparedRun& b) {
  const std::vector<Measures> both = measures_of(std::vector{&a, &b});
  std::vector<ComparedMeasure> all;
  for (size_t i = 0; i < both[0].size(); ++i)
    all.push_back({both[0][i], both[1][i], compared_delta(a, b, both[0][i], both[1][i])});
  return all;
}

bool same_results(const RunSpec* a, const RunSpec* b) {
  return !a || !b || (a->data.name == b->data.name && a->model.loss == b->model.loss);
}

bool can_be_better(const RunSpec* a, const RunSpec* b, MeasureKind kind) {
  switch (kind) {
    case MeasureKind::FirstLoss:
    case MeasureKind::TestLoss:
    case MeasureKind::TestAccuracy:
    case MeasureKind::TimeToAccuracy:
      return same_results(a, b);
    case MeasureKind::Throughput:
      return same_work_a_sample(a, b);
    case MeasureKind::Busy:
    case MeasureKind::HiddenCopies:
    case MeasureKind::LaunchDelay:
    case MeasureKind::TracingCost:
    case MeasureKind::BusBandwidth:
      return true;
    default:
      return same_task(a, b);
  }
}

// True if the mean changes opposite to the median, beyond noise. A few slow steps can cause it. Both runs
// must have the same trace detail.
bool mean_goes_the_other_way(const ComparedRun& a, const ComparedRun& b) {
  const Difference median = difference(a.time.us, b.time.us);
  const prof::Waterfall mean = prof::waterfall(a.sample.parts, b.sample.parts);
  return median.beyond_noise && median.delta * static_cast<double>(mean.b_ps - mean.a_ps) < 0;
}

}  // namespace

bool other_program(const ComparedRun& a, const ComparedRun& b) {
  const auto foreign = [](const ComparedRun& run) { return !run.program.empty() && !run.spec; };
  if (foreign(a) != foreign(b)) return (foreign(a) ? b : a).spec.has_value();
  return !a.program.empty() && !b.program.empty() && a.program != b.program;
}

bool same_task(const RunSpec* a, const RunSpec* b) {
  return !a || !b || (same_work_a_sample(a, b) && a->train.batch == b->train.batch);
}

bool same_work_a_sample(const RunSpec* a, const RunSpec* b) {
  return !a || !b || (same_model(*a, *b) && a->data.name == b->data.name);
}

const ComparedMeasure& Comparison::of(MeasureKind kind) const {
  return *std::ranges::find(measures, kind, [](const ComparedMeasure& m) { return m.a.kind; });
}

MeasureDelta compared_delta(const ComparedRun& a, const ComparedRun& b, const MeasureValue& of_a, const MeasureValue& of_b) {
  MeasureDelta delta = delta_of(of_a, of_b);
  if (other_program(a, b) || !can_be_better(a.choices(), b.choices(), of_a.kind)) delta.verdict = Verdict::Neutral;
  return delta;
}

bool splits_compare(const ComparedRun& a, const ComparedRun& b) {
  const bool whole = std::min(a.traced, b.traced) >= Traced::Phases;
  return a.sample.traced() && b.sample.traced() && (whole || a.traced == b.traced);
}

Speed speed_of(const ComparedRun& a, const ComparedRun& b, const MeasureDelta& step_time) {
  if (other_program(a, b) || !same_work_a_sample(a.choices(), b.choices())) return Speed::OtherWork;
  if (!step_time.known()) return Speed::Unknown;
  if (!same_task(a.choices(), b.choices())) return Speed::OtherBatch;
  return step_time.verdict == Verdict::WithinNoise ? Speed::WithinNoise : Speed::Differs;
}

StepVerdict judge_step(const MeasureValue& baseline, const MeasureValue& candidate, double limit) {
  StepVerdict judged{.limit = limit};
  const MeasureDelta delta = delta_of(baseline, candidate);
  const double step = baseline.value.value;
  if (!delta.known() || !(step > 0)) return judged;
  judged.change = delta.delta / step;
  if (!std::isfinite(delta.noise)) return judged;
  judged.low = (delta.delta - delta.noise) / step, judged.high = (delta.delta + delta.noise) / step;
  judged.verdict = verdict_of(judged.low, judged.high, limit);
  return judged;
}

std::vector<std::string> warnings_of(const ComparedRun& a, const ComparedRun& b, const std::string& name_a,
                                     const std::string& name_b) {
  std::vector<std::string> warnings = mismatches(a, b);
  const auto names = [&](bool of_a, bool of_b) { return of_a && of_b ? name_a + " and " + name_b : of_a ? name_a : name_b; };
  const bool busy_a = a.machine_busy(), busy_b = b.machine_busy();
  if (busy_a || busy_b)
    warnings.push_back("something else used the machine while " + names(busy_a, busy_b) + (busy_a && busy_b ? " were" : " was") +
                       " measured: measure again when it is quiet");
  const bool varies_a = prof::varies_widely(a.time) && !busy_a, varies_b = prof::varies_widely(b.time) && !busy_b;
  if (varies_a || varies_b)
    warnings.push_back("the steps of " + names(varies_a, varies_b) +
                       " vary: record again to see how much the median moves from one recording to the next");
  if (!splits_compare(a, b))
    warnings.emplace_back("the causes are not known: both runs need the same trace level");
  else if (mean_goes_the_other_way(a, b))
    warnings.emplace_back("a few slow steps move the mean, but not the median; the causes are those of the median step");
  if (a.one_step || b.one_step) warnings.emplace_back("a trace without step marks counts as one step");
  return warnings;
}

namespace {

// The time of each block of layers, and of each layer outside of blocks. Empty without blocks.
prof::StepSample by_block(const ComparedRun& run) {
  prof::StepSample joined;
  const auto layers = run.sample.grouped.find(prof::GroupBy::Layer);
  const auto blocks = run.spec ? blocks_of(*run.spec) : std::map<std::string, std::string>();
  if (layers == run.sample.grouped.end() || blocks.empty()) return joined;
  for (const auto& [layer, use] : layers->second) {
    const auto block = blocks.find(layer);
    prof::WorkUse& sum = joined.grouped[prof::GroupBy::Block][block == blocks.end() ? layer : block->second];
    sum.count += use.count, sum.us += use.us;
  }
  return joined;
}

}  // namespace

Comparison compare(const ComparedRun& a, const ComparedRun& b) {
  Comparison c;
  c.a_name = a.name, c.b_name = b.name;
  if (other_program(a, b)) c.programs = programs_of(a, b);
  c.measures = compared_measures(a, b);
  c.asked = asked_of({&a, &b}), c.gpu = a.sample.gpu || b.sample.gpu;
  c.speed = speed_of(a, b, c.of(MeasureKind::StepTime).delta);
  c.split = splits_compare(a, b);
  if (c.split) {
    c.steps_used = steps_text({{"A", &a}, {"B", &b}});
    c.by_kind = prof::waterfall(a.sample.median_parts, b.sample.median_parts);
    c.by_op = prof::waterfall_by_op(a.sample, b.sample);
    c.kernels = prof::kernel_deltas(a.sample, b.sample);
  }
  for (const prof::GroupBy by : {prof::GroupBy::Op, prof::GroupBy::Layer, prof::GroupBy::Line})
    if (auto rows = prof::grouped_deltas(a.sample, b.sample, by); c.split && !rows.empty()) c.grouped[by] = std::move(rows);
  if (auto rows = prof::grouped_deltas(by_block(a), by_block(b), prof::GroupBy::Block); c.split && !rows.empty())
    c.grouped[prof::GroupBy::Block] = std::move(rows);
  c.stalls = prof::compare_stalls(a.stalls, b.stalls);
  c.choices_known = a.spec && b.spec;
  if (c.choices_known) c.choices = choices_between(*a.spec, *b.spec);
  c.warnings = warnings_of(a, b);
  return c;
}

std::vector<ChoiceRow> differing_choices(const std::vector<const RunSpec*>& runs) {
  std::vector<ChoiceRow> rows;
  for (const Field& f : fields()) {
    ChoiceRow row{std::string(f.key), {}};
    std::set<std::string> different;
    bool used = false;
    for (const RunSpec* spec : runs) {
      row.values.push_back(spec ? field_text(*spec, f.key) : "–");
      if (spec) different.insert(row.values.back()), used = used || relevant(*spec, f.key);
    }
    if (used && different.size() > 1) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace ws::app

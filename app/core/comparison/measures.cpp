#include "app/core/comparison/measures.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "app/core/runs/data_shape.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/statistics.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

constexpr double kUnknown = ComparedRun::kUnknown;
constexpr const char *kTime = "Time", *kRanks = "Ranks", *kGpu = "GPU and host", *kResult = "Result";

// Half width of the 95 % interval of an accuracy, from the number of test rows. Both are shares.
double accuracy_half_width(const ComparedRun& run, double accuracy) {
  const auto rows = run.spec ? static_cast<double>(data_shape(run.spec->data).test) : 0.0;
  if (rows <= 0) return 0;
  const double share = std::clamp(accuracy, 0.0, 1.0);
  return 1.96 * std::sqrt((share * (1 - share) + 0.96 / rows) / rows);
}

// The time of the first evaluation that reached the accuracy. The noise of the test rows may move that to another
// evaluation: this is the uncertainty.
Interval time_to(const ComparedRun& run, double accuracy) {
  double at = kUnknown, early = kUnknown, late = kUnknown;
  for (const prof::Evaluation& e : run.evaluations) {
    const double noise = accuracy_half_width(run, e.test_accuracy);
    if (std::isnan(early) && e.test_accuracy + noise >= accuracy) early = e.wall_s;
    if (std::isnan(at) && e.test_accuracy >= accuracy) at = e.wall_s;
    if (std::isnan(late) && e.test_accuracy - noise >= accuracy) late = e.wall_s;
  }
  if (std::isnan(at)) return {};
  if (std::isnan(late)) late = run.evaluations.back().wall_s;
  return {at, std::max(at - early, late - at)};
}

double best_accuracy(const ComparedRun& run) {
  double best = kUnknown;
  for (const prof::Evaluation& e : run.evaluations) best = std::fmax(best, e.test_accuracy);
  return run.has_accuracy() ? best : kUnknown;
}

class List {
 public:
  Measures all;
  void group(const char* name) { group_ = name; }
  void add(MeasureValue value) { all.push_back(std::move(value)); all.back().group = group_; }
  void add(MeasureKind kind, std::string name, const char* unit, Interval value, Better better, int decimals) {
    all.push_back({kind, group_, std::move(name), unit, value, better, decimals});
    if (no_noise_) all.back().no_noise = no_noise_;
  }
  // The reason of all values that are added from now on; nullptr: the usual one.
  void no_noise(const char* reason) { no_noise_ = reason; }

 private:
  std::string group_;
  const char* no_noise_ = nullptr;
};

void add_steps(List& list, const ComparedRun& run) {
  const bool sampled = !run.sample.step_us.empty();  // otherwise the noise of these figures is unknown
  const bool busy = run.machine_busy();              // others make the slow steps
  const auto tail = [&](double share) {
    Interval value = sampled ? percentile_of_blocks(run.sample.step_us, share) : Interval{kUnknown, kUnknown};
    if (busy) value.half_width = kUnknown;
    return value;
  };
  const double of_means = sampled ? interval_of_blocks(run.sample.step_us).half_width : 0;
  const double mean_noise = sampled && !busy ? of_means : kUnknown;
  const double whole = run.whole_run_us > 0 ? run.whole_run_us : kUnknown;
  const MeasureValue time = step_time_measure(run);
  // Single long steps hardly move the median, but they move a mean.
  const double whole_noise = busy || std::isnan(time.value.half_width) ? kUnknown : std::max(time.value.half_width, of_means);
  list.add(time);
  list.no_noise(busy ? "machine busy" : nullptr);
  list.add(MeasureKind::StepP5, "step time, P5", "µs", {run.time.p5_us, tail(0.05).half_width},
           Better::Lower, 1);
  list.add(MeasureKind::StepP95, "step time, P95", "µs", {run.time.p95_us, tail(0.95).half_width},
           Better::Lower, 1);
  list.add(MeasureKind::StepP99, "step time, P99", "µs", tail(0.99), Better::Lower, 1);
  list.add(MeasureKind::SampleMean, "mean step", "µs", {run.mean_step_us, mean_noise}, Better::Lower, 1);
  list.add(MeasureKind::WholeRunMean, "mean with pauses", "µs", {whole, whole_noise}, Better::Lower, 1);
  list.no_noise(nullptr);
}

void add_times(List& list, const ComparedRun& run, double reached) {
  list.group(kTime);
  add_steps(list, run);
  const auto [us, noise] = step_time_measure(run.time).value;
  const double samples = run.samples_per_s();
  // The noise is how much a slower step lowers the throughput. With large noise, the upper limit is further away.
  list.add(MeasureKind::Throughput, "throughput", "samples/s", {samples, samples * noise / (us + noise)},
           Better::Higher, 0);
  const auto decimals = [](double seconds) { return seconds < 0.1 ? 4 : 2; };
  // A run with more steps takes longer, so neither value is better.
  list.add(MeasureKind::TrainingTime, run.imported ? "program ran" : "training time", "s", {run.wall_s, run.wall_s * noise / us}, Better::Neither, decimals(run.wall_s));
  if (reached <= 0) return;
  const Interval at = time_to(run, reached);
  list.add(MeasureKind::TimeToAccuracy, "time to " + fixed(100 * reached, 1) + " % accuracy", "s",
           {at.value, std::hypot(at.half_width, at.value * noise / us)}, Better::Lower, decimals(at.value));
}

void add_gpu(List& list, const ComparedRun& run) {
  // A recorded program may use the host only, or only its collectives were recorded.
  const bool works = run.sample.parts.busy > 0 && !run.sample.parts.only_collectives;
  const bool traced = run.sample.traced() && !run.one_step && works;
  const double busy = works && run.sample.gpu ? run.busy_percent() : kUnknown;
  list.group(kGpu);
  list.add(MeasureKind::Kernels, run.sample.gpu || !works ? "kernels per step" : "ops per step", "", {traced ? run.sample.kernels_per_step : kUnknown},
           Better::Lower, 1);
  list.add(MeasureKind::Allocations, "allocations per step", "",
           {traced ? run.sample.allocations_per_step : kUnknown}, Better::Lower, 1);
  list.add(MeasureKind::DriverAllocations, "driver allocations per step", "",
           {traced ? run.sample.driver_allocations_per_step : kUnknown}, Better::Lower, 1);
  list.add(MeasureKind::Busy, "GPU busy", "%",
           {busy, busy * interval_of_blocks(run.sample.step_us).half_width / run.sample.mean_step_us()},
           Better::Higher, 1);
  // A host that is far ahead is not a problem.
  list.add(MeasureKind::LaunchDelay, "launch delay, median", "µs", {run.launch_delay_us}, Better::Neither, 2);
  list.add(MeasureKind::HiddenCopies, "copies beside kernels", "%", {run.hidden_copies}, Better::Higher, 1);
  // A cost within its noise is not stated as a number.
  const bool seen = prof::tracing_cost_seen(run.tracing_cost);
  list.add(MeasureKind::TracingCost, "tracing costs", "%",
           {seen ? 100 * run.tracing_cost.value : kUnknown, 100 * run.tracing_cost.half_width}, Better::Neither, 1);
}

// From one run we cannot know how much they move.
void add_ranks(List& list, const ComparedRun& run) {
  list.group(kRanks);
  list.no_noise("one value a run");
  list.add(MeasureKind::RankWait, "longest wait for a rank", "µs", {run.rank_wait_us, kUnknown}, Better::Lower, 1);
  list.add(MeasureKind::ExposedTransfer, "longest exposed transfer", "µs", {run.exposed_us, kUnknown}, Better::Lower, 1);
  list.add(MeasureKind::BusBandwidth, "bus bandwidth", "GB/s", {run.bus_gb_s, kUnknown}, Better::Higher, 1);
  list.no_noise(nullptr);
}

void add_results(List& list, const ComparedRun& run) {
  list.group("Memory");
  list.add(MeasureKind::DriverCalls, "allocator calls per step", "", {run.driver_calls}, Better::Lower, 1);
  list.add(MeasureKind::PeakMemory, "peak memory", "KiB", {run.peak_bytes / 1024}, Better::Lower, 1);
  list.group(kResult);
  list.add(MeasureKind::FirstLoss, "first loss", "", {run.first_loss}, Better::Lower, 4);
  const bool tested = !run.evaluations.empty();
  list.add(MeasureKind::TestLoss, "test loss, last", "", {tested ? run.evaluations.back().test_loss : kUnknown},
           Better::Lower, 4);
  const double accuracy = tested && run.has_accuracy() ? run.evaluations.back().test_accuracy : kUnknown;
  list.add(MeasureKind::TestAccuracy, "test accuracy, last", "%",
           {100 * accuracy, 100 * accuracy_half_width(run, accuracy)}, Better::Higher, 2);
}

// If one of the runs reaches `from`, all values are shown in the larger unit.
struct LargerUnit {
  const char *small, *large;
  double from, factor;
  int decimals;
};
constexpr LargerUnit kLargerUnits[] = {{"KiB", "MiB", 1024, 1024, 2},
                                       {"samples/s", "M samples/s", 1e6, 1e6, 3}};

void convert(MeasureValue& m, const LargerUnit& unit) {
  m.unit = unit.large, m.decimals = unit.decimals;
  m.value.value /= unit.factor, m.value.half_width /= unit.factor;
}

// All times of a group have one unit: 9.8 ms beside 10,200 µs is hard to compare. The shortest one keeps its digits. Returns
// true if they got the larger unit.
bool share_time_unit(std::vector<Measures>& runs, const char* group, const LargerUnit& unit, double longest = 0) {
  double shortest = INFINITY;
  const auto each = [&](const auto& use) {
    for (Measures& run : runs)
      for (MeasureValue& m : run)
        if (m.unit == unit.small && m.group == group) use(m);
  };
  each([&](const MeasureValue& m) {
    longest = std::fmax(longest, m.value.value);
    if (m.value.value > 0) shortest = std::min(shortest, m.value.value);
  });
  const bool large = longest >= unit.from && shortest >= unit.factor;
  if (large) each([&](MeasureValue& m) { convert(m, unit); });
  return large;
}

void share_units(std::vector<Measures>& runs) {
  for (size_t row = 0; !runs.empty() && row < runs.front().size(); ++row)
    for (const LargerUnit& unit : kLargerUnits) {
      if (runs.front()[row].unit != unit.small) continue;
      if (std::ranges::none_of(runs, [&](const Measures& run) { return run[row].value.value >= unit.from; })) continue;
      for (Measures& run : runs) convert(run[row], unit);
    }
  for (const LargerUnit& unit : {LargerUnit{"µs", "ms", 1e4, 1e3, 2}, LargerUnit{"ms", "s", 1e4, 1e3, 2}}) {
    const bool large = share_time_unit(runs, kTime, unit);
    share_time_unit(runs, kRanks, unit, large ? unit.from : 0);  // a wait is read beside the step
    share_time_unit(runs, kGpu, unit);
  }
}

// A run of a GPU beside a run of a CPU.
void share_name_of_work(std::vector<Measures>& runs) {
  std::set<std::string> names;
  for (const Measures& run : runs) names.insert(measure(run, MeasureKind::Kernels).name);
  for (Measures& run : runs)
    if (names.size() > 1) std::ranges::find(run, MeasureKind::Kernels, &MeasureValue::kind)->name = "kernels, or ops of a CPU, per step";
}

}  // namespace

Measures measures_of(const ComparedRun& run, double reached) {
  List list;
  add_times(list, run, reached);
  add_ranks(list, run);
  add_gpu(list, run);
  add_results(list, run);
  return std::move(list.all);
}

Asked asked_of(const std::vector<const ComparedRun*>& runs) {
  bool result = false, time = false;
  for (const ComparedRun* run : runs) {
    if (!run->spec || !runs.front()->spec) continue;
    for (const FieldChange& change : diff(*runs.front()->spec, *run->spec)) {
      const bool execution = change.key.starts_with("exec.");
      time |= execution;
      result |= !execution || change.key == "exec.precision" || change.key == "exec.accumulate";
    }
  }
  return {result, time || !result};
}

std::vector<Measures> measures_of(const std::vector<const ComparedRun*>& runs) {
  const double reached = shared_accuracy(runs);
  const bool result_first = asked_of(runs).result;
  std::vector<Measures> all;
  for (const ComparedRun* run : runs) {
    all.push_back(measures_of(*run, reached));
    if (result_first) std::ranges::stable_partition(all.back(), [](const MeasureValue& m) { return m.group == kResult; });
  }
  share_units(all);
  share_name_of_work(all);
  return all;
}

double shared_accuracy(const std::vector<const ComparedRun*>& runs) {
  double least = 1;
  for (const ComparedRun* run : runs) {
    const double best = best_accuracy(*run);
    if (!std::isfinite(best)) return 0;
    least = std::min(least, best);
  }
  return runs.empty() ? 0 : 0.99 * least;
}

const MeasureValue& measure(const Measures& all, MeasureKind kind) { return *std::ranges::find(all, kind, &MeasureValue::kind); }

// Without samples the noise of the step time is unknown, not 0.
MeasureValue step_time_measure(const prof::StepTime& time) {
  const bool noise_known = time.us.half_width > 0 || time.has_spread();
  return {MeasureKind::StepTime, {}, "step time, median", "µs",
          {time.us.value, noise_known ? time.us.half_width : kUnknown}, Better::Lower, 1};
}

MeasureValue step_time_measure(const ComparedRun& run) {
  MeasureValue time = step_time_measure(run.time);
  if (run.sample.step_us.size() <= kFewSamples) time.few = run.sample.step_us;
  return time;
}

MeasureDelta delta_of(const MeasureValue& a, const MeasureValue& b) {
  Difference difference = ws::difference(a.value, b.value);
  if (const auto noise = noise_of_few(a.few, b.few, difference.delta))
    difference.noise = *noise, difference.beyond_noise = std::abs(difference.delta) > *noise;
  MeasureDelta d{difference.delta, difference.noise, kUnknown, Verdict::Neutral};
  if (!d.known()) return d;
  if (a.value.value != 0 && a.unit != "%") d.percent = 100 * d.delta / a.value.value;  // no percent of a percentage
  constexpr double kNothing = 0.05;  // percent; a smaller change prints as zero
  const bool shown = std::abs(d.delta) > 0.5 * std::pow(10.0, -a.decimals) && !(std::abs(d.percent) < kNothing);
  const bool exact = a.value.half_width == 0 && b.value.half_width == 0;
  if (!shown && exact)
    d.verdict = Verdict::Equal;
  else if (!shown || (std::isfinite(d.noise) && !difference.beyond_noise))
    d.verdict = Verdict::WithinNoise;
  else if (!std::isfinite(d.noise))
    d.verdict = Verdict::NoiseUnknown, d.no_noise = std::isfinite(a.value.half_width) ? b.no_noise : a.no_noise;
  else if (a.better != Better::Neither)
    d.verdict = (d.delta < 0) == (a.better == Better::Lower) ? Verdict::Better : Verdict::Worse;
  return d;
}

}  // namespace ws::app

#include "profiling/analysis/step_time.h"

namespace ws::prof {
namespace {

StepTime of_samples(const std::vector<double>& us, double half_width) {
  return {{median(us), half_width}, percentile(us, 0.05), percentile(us, 0.95)};
}

StepTime without_spread(double us) {
  StepTime time;
  if (us > 0) time.us.value = us;
  return time;
}

}  // namespace

StepTime step_time(const StepSample& sample, const std::vector<double>& stretches_us, double whole_run_us) {
  if (!sample.step_us.empty()) return of_samples(sample.step_us, percentile_of_blocks(sample.step_us, 0.5).half_width);
  if (sample.traced()) return without_spread(sample.mean_step_us());  // a trace without step marks
  if (stretches_us.empty()) return without_spread(whole_run_us);
  return of_samples(stretches_us, mean_with_interval(stretches_us).half_width);  // a stretch is a block of steps
}

}  // namespace ws::prof

#include "tests/bench/turns.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

namespace ws::bench {

void Turns::add(const std::vector<StepResult>& steps, double now) {
  if (!steps.empty()) origin_ = std::min(origin_, now - steps.back().finished_s);
  for (const StepResult& step : steps) {
    const double at = origin_ + step.finished_s;
    while (at_ < all_.size() && all_[at_].until < at) ++at_;
    if (at_ < all_.size() && all_[at_].from <= at) all_[at_].add(at);
  }
}

double Turns::late_share(const std::vector<std::pair<double, double>>& arrived) const {
  double late = 0, sum = 0;
  for (const auto& [at, count] : arrived) {
    const auto turn = std::ranges::lower_bound(all_, at, {}, &Turn::until);
    sum += count;
    if (turn != all_.end() && !turn->watched && turn->from <= at) late += count;
  }
  return sum > 0 ? late / sum : 0;
}

Interval trimmed_mean_of_blocks(std::vector<double> samples, double share) {
  const double low = percentile(samples, share), high = percentile(samples, 1 - share);
  double sum = 0, kept = 0;
  for (double& sample : samples) {
    if (low <= sample && sample <= high) sum += sample, ++kept;
    sample = std::clamp(sample, low, high);
  }
  // A sample moves a trimmed mean by what is left of it after clamping, over the share that is kept.
  return {sum / kept, interval_of_blocks(samples).half_width / (1 - 2 * share)};
}

Cost cost_of(const std::vector<Turn>& turns) {
  std::vector<double> file, watched, ratios;
  for (const Turn& turn : turns)
    if (turn.counts()) (turn.watched ? watched : file).push_back(turn.us_each());
  for (size_t i = 0; i + 1 < turns.size(); ++i) {
    const Turn &a = turns[i], &b = turns[i + 1];
    if (a.counts() && b.counts()) ratios.push_back((b.watched ? 1 : -1) * std::log(b.us_each() / a.us_each()));
  }
  return {median_with_interval(file), median_with_interval(watched), trimmed_mean_of_blocks(ratios, 0.1),
          trimmed_mean_of_blocks(ratios, 0)};
}

void write_turns(const std::vector<Turn>& turns, const std::filesystem::path& path) {
  std::ofstream out(path);
  out.precision(12);
  out << "watched,from_s,until_s,first_s,last_s,steps\n";
  for (const Turn& turn : turns)
    out << turn.watched << ',' << turn.from << ',' << turn.until << ',' << turn.first << ',' << turn.last << ','
        << turn.steps << '\n';
  if (!out.flush()) throw std::runtime_error(path.string() + " cannot be written");
}

}  // namespace ws::bench

#include "engine/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace ws {
namespace {

double scheduled(const TrainSpec& spec, int64_t step, int64_t steps_per_epoch) {
  if (spec.schedule == Schedule::Step) {
    const int64_t drops = step / steps_per_epoch / spec.step_epochs;
    return std::pow(spec.step_factor, static_cast<double>(drops));
  }
  if (spec.schedule == Schedule::Constant) return 1;
  const double total = static_cast<double>(spec.epochs) * static_cast<double>(steps_per_epoch);
  const double warmup = static_cast<double>(spec.warmup_steps);
  const double done = std::clamp((static_cast<double>(step) - warmup) / std::max(1.0, total - warmup), 0.0, 1.0);
  return spec.schedule == Schedule::Linear ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
}

uint64_t mix(uint64_t& state) {  // splitmix64
  uint64_t z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace

double learning_rate(const TrainSpec& spec, int64_t step, int64_t steps_per_epoch) {
  if (step < spec.warmup_steps) return spec.lr * static_cast<double>(step + 1) / static_cast<double>(spec.warmup_steps);
  return spec.lr * scheduled(spec, step, std::max<int64_t>(1, steps_per_epoch));
}

std::vector<uint32_t> epoch_order(const TrainSpec& spec, int64_t rows, int64_t epoch) {
  std::vector<uint32_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0u);
  // The gradient of one batch with all rows does not depend on the order.
  if (!spec.shuffle || spec.batch == 0 || spec.batch >= rows) return order;
  uint64_t state = spec.seed * 0xD1342543DE82EF95ull + static_cast<uint64_t>(epoch);
  for (size_t i = order.size(); i > 1; --i) {
    const uint64_t bounded = ((mix(state) >> 32) * i) >> 32;
    std::swap(order[i - 1], order[bounded]);
  }
  return order;
}

}  // namespace ws

// Compares a few samples with a few others by their order alone.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace ws {


inline constexpr size_t kFewSamples = 10;
// The noise of a difference of medians from few samples, whose own intervals would be too wide: exact, from the ranks of all
// samples (Mann-Whitney). Returns nullopt for more than kFewSamples, and for so few that no difference could count.
std::optional<double> noise_of_few(const std::vector<double>& baseline, const std::vector<double>& candidate, double delta);

}  // namespace ws

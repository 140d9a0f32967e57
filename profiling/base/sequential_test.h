// Judges two programs by pairs of measurements, with as many pairs as the answer needs. The rate of false alarms is fixed
// before, however often one looks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ws {

// One measurement of each side, taken right after each other, in an order drawn by lot.
struct MeasuredPair {
  double a = 0, b = 0;
  bool busy = false;  // something else used the machine meanwhile
};

enum class GateVerdict : uint8_t { CannotTell, NoDifference, Slower, Faster };
inline constexpr double kUsualLimit = 0.02;  // how much slower something may be if nobody says it, as a share
// The change lies between `low` and `high`, shares.
GateVerdict verdict_of(double low, double high, double limit);

struct GateState {
  GateVerdict verdict = GateVerdict::CannotTell;
  bool decided = false;            // no further pair is needed
  double change = 0;               // median of b / a − 1
  double low = 0, high = 0;        // it lies between them; only with at least one look
  bool looked = false;
  size_t pairs = 0, used = 0;      // measured; used for the verdict
  // Left out: the machine was busy; the two sides were in different modes; the change is far from all others.
  size_t busy = 0, mixed = 0, outliers = 0;
  bool two_modes = false;
  double mode_ratio = 1;           // slow mode by fast mode
  size_t slow_a = 0, slow_b = 0;   // measurements in the slow mode
};

// The verdict uses the signs and ranks of the logarithms of b / a (Wilcoxon), which are symmetric around 0 for equal programs
// whatever their noise is, because the order in each pair is drawn by lot. It looks after 9, 12, 16, 22, 30, 40, 56, 80, 112, 160
// and 224 pairs; the probabilities of a false alarm at all looks sum to 1 %.
inline constexpr double kFalseAlarms = 0.01;
inline constexpr size_t kMostPairs = 224;

// `limit`: how much slower b may be, as a share. Slower: b is slower by more than that. Faster: by more than the limit, too.
// NoDifference: the change is within the limit on both sides.
GateState judge(const std::vector<MeasuredPair>& pairs, double limit);

// The interval of the median of symmetric values, at a probability of `outside` that it lies outside. Exact.
struct RankInterval {
  double low, middle, high;
};
RankInterval rank_interval(const std::vector<double>& values, double outside);

}  // namespace ws

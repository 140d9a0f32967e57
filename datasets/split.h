// Splits rows into a training and a test part, and scales features to a common range.
#pragma once
#include <cstdint>

#include "datasets/dataset.h"

namespace ws::data {

// Moves a random `share` of the training rows to the test part and shuffles the rest; each class keeps its share.
void hold_out(Dataset& set, double share, uint64_t seed);

// Takes mean and standard deviation from the training rows and scales both parts. A constant column becomes zero.
void standardise_features(Dataset& set);
void standardise_targets(Dataset& set);
// Measures the channels of the training pictures with the same rule. It changes no value: the network's plan does that.
void measure_channels(Dataset& set);

// Keeps the first `limit` training rows; 0 keeps all.
void keep_first(Dataset& set, int64_t limit);

}  // namespace ws::data

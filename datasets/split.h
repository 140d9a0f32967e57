// Cutting rows into a training and a test part, and bringing features to one scale.
#pragma once
#include <cstdint>

#include "datasets/dataset.h"

namespace ws::data {

// Moves a random `share` of the training rows to the test part and shuffles the rest; each class keeps its share.
void hold_out(Dataset& set, double share, uint64_t seed);

// Takes mean and deviation from the training rows and applies them to both parts. A constant column becomes zero.
void standardise_features(Dataset& set);
void standardise_targets(Dataset& set);

// Keeps the first `limit` training rows; 0 keeps all.
void keep_first(Dataset& set, int64_t limit);

}  // namespace ws::data

// A training saved on disk, with all that is needed to continue with identical losses.
#pragma once
#include <string>
#include <string_view>

#include "engine/executor/executor.h"

namespace ws {

struct Checkpoint {
  RunSpec spec;
  TrainState state;
  int64_t epoch = 0, row = 0;  // position in the epoch
  double wall_s = 0;
  double epoch_loss = 0, epoch_correct = 0;  // sums over the rows of the running epoch
};
void save_checkpoint(const Checkpoint&, const std::string& path);  // writes a temporary file, syncs it, renames it
Checkpoint load_checkpoint(const std::string& path);
Checkpoint parse_checkpoint(std::string_view bytes, const std::string& name);  // name: for messages

}  // namespace ws

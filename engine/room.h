// Whether a run fits into the memory there is, asked before anything is allocated: the system would grant the memory
// and end the program when it is touched.
#pragma once
#include <optional>
#include <string>

#include "engine/model.h"

namespace ws {

struct Room {
  int64_t host_bytes = 0;    // free
  int64_t device_bytes = 0;  // of the GPU; 0: the run is on the CPU
};
Room room_for(const RunSpec& spec);  // of this machine, now

// The most that is alive at once while the run trains, the data set excepted, which is there already.
int64_t host_bytes_needed(const RunSpec& spec, const Model& model, const data::Dataset& data);
int64_t device_bytes_needed(const RunSpec& spec, const Model& model, const data::Dataset& data);

// One sentence; empty when the run fits.
std::optional<std::string> why_no_room(const RunSpec& spec, const Model& model, const data::Dataset& data, Room room);

}  // namespace ws

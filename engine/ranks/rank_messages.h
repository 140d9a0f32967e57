// What rank 0 and the other ranks write to each other, as bytes. Both are the same version of this program.
#pragma once
#include <string>
#include <string_view>

#include "engine/cpu/rank_average.h"
#include "engine/executor/executor.h"

namespace ws {

// How the other process makes its executor.
struct RankRequest {
  RunSpec spec;         // with the device that rank 0 uses
  std::string nccl_id;  // empty: gradients travel through the channel
};
std::string encode(const RankRequest& request);
RankRequest decode_request(std::string_view bytes);

std::string encode(const TrainState& state);
TrainState decode_state(std::string_view bytes);

// Sent with every answer.
struct RankUse {
  MemoryUse memory;
  AllocatorCalls calls;
};

// The gradients of one average.
std::string encode(double share, const cpu::RankAverage::Tensors<float>& tensors);
std::string encode(double share, const cpu::RankAverage::Tensors<double>& tensors);
// Calls average() with the gradients of a message. Returns the averages as values without anything else.
std::string average_for(int rank, std::string_view bytes, cpu::RankAverage& average);

}  // namespace ws

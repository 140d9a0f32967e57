// Runs many steps in one kernel that keeps the weights on the chip, if the network fits.
//
// A launch reads weights and optimizer state from the storage and writes them back at its end, so another launch mode
// can continue from there. A launch lasts at most about 20 ms.
#pragma once
#include <atomic>
#include <map>
#include <memory>

#include "engine/cuda/executor/stamp_reader.h"
#include "engine/cuda/executor/stream_executor.h"
#include "engine/cuda/persistent/arguments.h"
#include "engine/cuda/persistent/compiled_kernel.h"

namespace ws::cuda {

class PersistentExecutor {
 public:
  PersistentExecutor(Workplace& place, const Model& model, const data::Dataset& data)
      : place_(place), model_(model), data_(data) {}

  // Places the network, compiles its kernel and prepares the rows. Throws Failure with the reason and its numbers if
  // the network does not fit.
  void bind(DevicePlan& bound) { bind(bound, false); }
  // Like bind(), but also throws if a CUDA graph is at least as fast.
  void bind_if_fastest(DevicePlan& bound) { bind(bound, true); }
  void run(const DevicePlan& bound, int64_t first_step, int64_t row, int64_t steps);
  // Throws Failure if a wait in the kernel exceeded its limit. The state is then the state after the last complete launch.
  void check_fault();
  int64_t bytes() const;

  // For tests: block 1 sends nothing in the step with this number within each launch. -1: sends all messages.
  static std::atomic<int> lose_message_at;
  static std::atomic<double> seconds_to_wait;  // limit of each wait in the kernel

 private:
  struct Bound {
    persistent::Placement placement;
    std::shared_ptr<persistent::CompiledKernel> kernel;
    const void* rows = nullptr;
    StepParts parts;
  };
  struct PreparedRows {
    Precision precision;
    persistent::Residency residency;
    int64_t row_bytes;
    DeviceBlock<char> bytes;
  };
  void bind(DevicePlan& bound, bool only_if_fastest);
  const persistent::CompiledKernel& kernel_of(Bound& found, bool stamped);
  void find_input_range(persistent::Network& network);
  const void* rows_for(const Bound& bound, Precision precision);
  void make_buffers(const persistent::Placement& placement);
  persistent::Arguments arguments(const DevicePlan& bound, const Bound& found) const;

  Workplace& place_;
  const Model& model_;
  const data::Dataset& data_;
  std::map<std::string, std::shared_ptr<persistent::CompiledKernel>> kernels_;  // by source
  std::map<std::string, Bound> bound_;                                          // by plan id
  std::vector<PreparedRows> prepared_;
  float largest_input_ = -1, smallest_input_ = 0;  // see Network; found when first asked for
  DeviceBlock<float> partials_;
  DeviceBlock<char> exchange_;
  unsigned exchanged_ = 0;  // steps whose messages went through exchange_
  std::string exchanging_;  // id of the plan that used exchange_ last
  PinnedBlock<persistent::FaultReport> fault_;
  StampReader stamps_;
};

}  // namespace ws::cuda

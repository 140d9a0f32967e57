// The only place that knows which devices exist.
#pragma once
#include <memory>
#include <string>

#include "engine/executor/device_info.h"
#include "engine/executor/executor.h"
#include "engine/passes/memory_need.h"
#include "engine/plan/plan.h"
#include "engine/ranks/rank_worker.h"

namespace ws {

const DeviceInfo& device_info();                               // queried once
bool gpu_lost();                                               // true if a fault made the GPU unusable for this process
bool wants_cuda(const RunSpec& spec);                          // after resolving Device::Auto
int64_t steps_at_once(const RunSpec& spec);                    // steps of a CUDA graph where there may be one, else 1
int ranks_of(const RunSpec& spec);                             // throws Failure if the machine has too few GPUs
// Throws Failure with the sentence of why_invalid. `processes`: the ranks are these processes, and this one is rank 0.
std::unique_ptr<Executor> make_executor(const RunSpec& spec, RankProcesses* processes = nullptr);
// Prepares the executor of this process, which is another rank than rank 0. Throws Failure if it cannot run here.
RankWorker::Connect prepare_rank(const RankRequest& request, RankProcesses& processes);
FreeMemory free_memory_for(const RunSpec& spec);               // free memory of this machine now

// What one kernel for a whole training would keep where on this machine's GPU. Needs no GPU.
// Returns lines: where the network lives and how much of each memory it takes, or why it does not fit. Empty if the
// launch mode is neither persistent nor auto. Without a GPU the numbers describe an H200.
std::string persistent_budget(const RunSpec& spec, const Plan& plan, int64_t train_rows);

}  // namespace ws

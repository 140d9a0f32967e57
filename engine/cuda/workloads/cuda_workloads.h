// The laboratory's door to the GPU; no CUDA header is needed to pass it.
#pragma once
#include "engine/workloads/workload.h"

namespace ws::lab {

// Throws Failure when the machine cannot.
std::unique_ptr<Workload> make_cuda_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs);
// Those that the sweep is held against and that are not known yet.
void measure_cuda_ceilings(Ceilings& known, const LabSpec& sweep, const std::atomic<bool>& cancel);
int64_t free_cuda_bytes();
void release_cuda_memory();  // what workloads share; none may be left
bool run_cuda_cold_call_if_asked();

}  // namespace ws::lab

// The laboratory's interface to the GPU. Users of this header need no CUDA header.
#pragma once
#include "engine/workloads/workload.h"

#include <memory>

namespace ws::lab {

// Throws Failure if the machine cannot run the way.
std::unique_ptr<Workload> make_cuda_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs);
// Measures the ceilings that the sweep needs and that are still unknown.
void measure_cuda_ceilings(Ceilings& known, const LabSpec& sweep, const std::atomic<bool>& cancel);
int64_t free_cuda_bytes();
void release_cuda_memory();  // frees memory that workloads share; no workload may exist
bool run_cuda_cold_call_if_asked();

// Measures the first call in a fresh process: this program starts itself again, and the child makes only that call.
std::unique_ptr<Workload> make_cold_workload(const LabSpec& spec, int64_t size);
// Makes the workload that the child process runs: in this process, without trials for the fastest product.
std::unique_ptr<Workload> make_first_call(const LabSpec& spec, int64_t size, const Inputs& inputs);

}  // namespace ws::lab

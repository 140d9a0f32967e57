// Workloads of whichever device a way runs on. Without CUDA built in, a way of the GPU is refused with a sentence.
#pragma once
#include "engine/workloads/workload.h"

namespace ws::lab {

// A call of the CPU's that was cancelled returns early with a wrong result. Throws Failure when the machine cannot.
std::unique_ptr<Workload> make_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs,
                                        const std::atomic<bool>& cancel);

// Those ceilings of the GPU that the sweep is held against and that are not known yet. Does nothing without a GPU.
void measure_device_ceilings(Ceilings& known, const LabSpec& sweep, const std::atomic<bool>& cancel);
int64_t free_device_bytes();   // of the GPU; 0 without one
void release_device_memory();  // what workloads share on the GPU; none may be left

// A program that offers the laboratory calls this first and ends when it says true: the process was started by the
// sweep to make one first call.
bool run_cold_call_if_asked();

}  // namespace ws::lab

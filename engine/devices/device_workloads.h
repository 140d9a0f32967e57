// Makes laboratory workloads for the CPU or the GPU. In a build without CUDA, a GPU way throws a Failure.
#pragma once
#include "engine/own_kernels/own_kernel_verdict.h"
#include "engine/workloads/workload.h"

namespace ws::lab {

// A cancelled CPU call returns early with a wrong result. Throws Failure if the machine cannot run the way.
std::unique_ptr<Workload> make_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs,
                                        const std::atomic<bool>& cancel);

// Compares a person's kernel with the operation, computed on the CPU; for arrays of more than a million numbers, it only looks at
// the memory that the kernel writes.  Throws OwnKernelRefused if it cannot be launched.
// A wrong kernel can end this process, or never return: call it in a process that may end.
OwnKernelVerdict check_lab_kernel(const LabSpec& spec, Way way, int64_t size, const OnLaunch& on_launch);

// Measures the GPU ceilings that the sweep needs and that are still unknown. Does nothing without a GPU.
void measure_device_ceilings(Ceilings& known, const LabSpec& sweep, const std::atomic<bool>& cancel);
// How fast so many GPUs of this machine average; see link_peak.h. Throws Failure in a build without CUDA.
std::vector<BusRate> measure_bus_rates(int gpus, const std::atomic<bool>& cancel);
int64_t free_device_bytes();   // free GPU memory; 0 without a GPU
void release_device_memory();  // frees GPU memory that workloads share; no workload may exist

// A program with the laboratory calls this first and exits if it returns true. True means that a sweep started the
// process to make one first call.
bool run_cold_call_if_asked();

}  // namespace ws::lab

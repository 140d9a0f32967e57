// Kernels that a person wrote for an operation of the laboratory: further ways to run it.
#pragma once
#include <map>
#include <utility>

#include "engine/own_kernels/kernel_contract.h"
#include "engine/workloads/lab_spec.h"

namespace ws::lab {

// What such a kernel gets and must do at this size. Throws Failure for a size that it cannot run.
own::KernelContract kernel_contract(const LabSpec& spec, int64_t size);
const OwnKernelSource* kernel_of(const LabSpec& spec, Way way);  // nullptr: a built-in way
inline Way own_way(size_t kernel) { return static_cast<Way>(static_cast<size_t>(Way::GpuOwn) + kernel); }
void read_kernels(LabSpec& spec);  // the texts that are missing; throws Failure

constexpr int64_t kWholeCheckBytes = 4 << 20;  // operands up to this size are compared value by value, and several times
// What a check found before the sweep, by way and size; an empty text: the kernel is right.
inline constexpr std::string_view kWrongKernel = "the kernel is wrong: ";  // the text of each wrong one begins with this
using KernelChecks = std::map<std::pair<Way, int64_t>, std::string>;

}  // namespace ws::lab

// Reports that the driver must compile our kernels first, on a GPU for which the build has only PTX. The driver keeps the
// result, so the notice comes once.
#pragma once
#include <string>

#include "engine/executor/device_info.h"
#include "engine/plan/run_spec.h"

namespace ws {

// True if this build has no machine code for GPUs of this compute capability, such as "9.0".
bool driver_compiles_for(const std::string& compute);

// The sentence for a training with these choices; empty if nothing must be compiled any more.
std::string compile_notice(const RunSpec& spec, const DeviceInfo& device);
std::string compile_notice(const RunSpec& spec);  // on this machine's GPU
// A step was made: the kernels of these choices are compiled and kept.
void remember_compiled(const RunSpec& spec, const DeviceInfo& device);
void remember_compiled(const RunSpec& spec);

}  // namespace ws

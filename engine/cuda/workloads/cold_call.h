// The first call in a fresh process: this program starts itself once more, and that child does nothing but the call.
#pragma once
#include <memory>

#include "engine/workloads/workload.h"

namespace ws::lab {

std::unique_ptr<Workload> make_cold_workload(const LabSpec& spec, int64_t size);
// In this process, and without a trial of what is fastest: what the child runs.
std::unique_ptr<Workload> make_first_call(const LabSpec& spec, int64_t size, const Inputs& inputs);

}  // namespace ws::lab

// Measures the first call in a fresh process: this program starts itself again, and the child makes only that call.
#pragma once
#include <memory>

#include "engine/workloads/workload.h"

namespace ws::lab {

std::unique_ptr<Workload> make_cold_workload(const LabSpec& spec, int64_t size);
// Makes the workload that the child process runs: in this process, without trials for the fastest product.
std::unique_ptr<Workload> make_first_call(const LabSpec& spec, int64_t size, const Inputs& inputs);

}  // namespace ws::lab

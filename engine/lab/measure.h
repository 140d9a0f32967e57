// Times one point: warms up, repeats until the time is stable, then measures where the time went.
#pragma once
#include "engine/lab/lab.h"
#include "engine/workloads/workload.h"

namespace ws::lab {

// Fills in the times and the repeats. Zero repeats: cancelled before the first.
void time_point(const LabSpec& spec, Workload& work, LabPoint& point, const std::atomic<bool>& cancel);

// Throws Failure that names the largest size that fits in memory. Call it before anything is allocated.
void must_fit(const LabSpec& spec, Way way, int64_t size);

}  // namespace ws::lab

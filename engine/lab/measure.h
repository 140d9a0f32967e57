// Times one point: warms up, repeats until the figure is steady, then asks where the time went.
#pragma once
#include "engine/workloads/workload.h"

namespace ws::lab {

// Fills in the times and repeats; no repeats: it was cancelled before the first.
void time_point(const LabSpec& spec, Workload& work, LabPoint& point, const std::atomic<bool>& cancel);

// Throws Failure that names the largest size that fits. Asked before anything is allocated.
void must_fit(const LabSpec& spec, Way way, int64_t size);

}  // namespace ws::lab

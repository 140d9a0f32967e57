// What the card of a run can do at most, as it was measured: kept with the run, so that its roofline is known
// elsewhere.
#pragma once
#include <optional>
#include <string>

#include "engine/executor/device_info.h"
#include "engine/lab/lab.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {

struct RunCeilings {
  lab::Ceilings ceilings;
  std::string driver;  // that they were measured with
};

// Of a run that is recorded on this machine: nothing where its card was never measured with this driver.
void keep_ceilings(prof::RunSummary& run);
void keep_ceilings(prof::RunSummary& run, const DeviceInfo& here);
void keep_ceilings(const std::string& path);  // in its file, once nobody writes it any more
std::optional<RunCeilings> kept_ceilings(const prof::RunSummary& run);

}  // namespace ws::app

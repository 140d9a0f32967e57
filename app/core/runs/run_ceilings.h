// The measured peak rates of the GPU of a run. They are stored with the run, so that its roofline
// can be drawn on another machine.
#pragma once
#include <optional>
#include <string>

#include "engine/executor/device_info.h"
#include "engine/lab/lab.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {

struct RunCeilings {
  lab::Ceilings ceilings;
  std::string driver;  // driver of the measurement
};

// For a run recorded on this machine. Does nothing if its GPU was never measured with this driver.
void keep_ceilings(prof::RunSummary& run);
void keep_ceilings(prof::RunSummary& run, const DeviceInfo& here);
void keep_ceilings(const std::string& path);  // updates the file; call it once nobody writes the file
std::optional<RunCeilings> kept_ceilings(const prof::RunSummary& run);

}  // namespace ws::app

#include "app/core/runs/run_ceilings.h"

#include <nlohmann/json.hpp>

#include "engine/devices/devices.h"
#include "engine/lab/ceilings.h"
#include "profiling/analysis/ranks.h"
#include "profiling/base/failure.h"
#include "profiling/base/file_identity.h"
#include "profiling/base/json_input.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

constexpr const char* kCeilings = "ceilings";  // key in the summary's extra texts

// A sweep measures only what it needs: perhaps only one precision of the arithmetic.
bool known(const lab::Ceilings& c) {
  return c.read_write_bytes_s > 0 && (c.fp32_flops_s > 0 || c.tf32_flops_s > 0 || c.fp16_flops_s > 0);
}

}  // namespace

// Asking the GPU starts the driver, so do it only if there is something to store.
void keep_ceilings(prof::RunSummary& run) {
  if (known(lab::remembered_ceilings(without_count(run.device)))) keep_ceilings(run, device_info());
}

void keep_ceilings(prof::RunSummary& run, const DeviceInfo& here) {
  if (!here.cuda || here.name != without_count(run.device)) return;
  const lab::Ceilings measured = lab::remembered_ceilings(here.name, here.driver);
  if (!known(measured)) return;
  nlohmann::json kept = to_json(measured);
  kept["driver"] = here.driver;
  run.extra[kCeilings] = kept.dump();
  if (!measured.bus_rates.empty()) run.extra[prof::kBusRatesKey] = to_json(measured.bus_rates).dump();
}

void keep_ceilings(const std::string& path) {
  try {
    const auto file = FileIdentity::of(path);
    prof::RunSummary run = prof::read_run_summary(path);
    keep_ceilings(run);
    for (const char* key : {kCeilings, prof::kBusRatesKey})
      if (const auto kept = run.extra.find(key); kept != run.extra.end() && FileIdentity::of(path) == file) prof::keep_with_run(path, key, kept->second);
  } catch (const Failure&) {  // the recording is complete without them
  }
}

std::optional<RunCeilings> kept_ceilings(const prof::RunSummary& run) {
  const auto text = run.extra.find(kCeilings);
  if (text == run.extra.end()) return std::nullopt;
  const auto kept = parse_json_or_null(text->second);
  if (!kept.is_object()) return std::nullopt;
  const auto driver = kept.find("driver");
  return RunCeilings{lab::ceilings_from_json(kept),
                     driver != kept.end() && driver->is_string() ? driver->get<std::string>() : std::string()};
}

}  // namespace ws::app

#include "engine/devices/kernel_code.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/devices/devices.h"
#include "profiling/base/paths.h"
#include "profiling/base/version.h"
#ifdef WARPSIGHT_HAVE_CUDA
#include "engine/cuda/kernels/machine_code.h"
#endif

namespace ws {
namespace {

bool has_code_for([[maybe_unused]] const std::string& compute) {
#ifdef WARPSIGHT_HAVE_CUDA
  const size_t dot = compute.find('.');
  return dot == std::string::npos || cuda::made_for(std::atoi(compute.c_str()), std::atoi(compute.c_str() + dot + 1));
#else
  return true;
#endif
}

std::filesystem::path compiled_file() {
  const std::filesystem::path cache = cache_folder();
  return cache.empty() ? cache : cache / "compiled_kernels";
}

// Each mode and precision has kernels of its own, which the driver compiles when they are first used.
std::string line_of(const RunSpec& spec, const DeviceInfo& device) {
  std::string line = device.name;
  for (const std::string_view part : {std::string_view(device.driver), std::string_view(version()), to_string(spec.exec.launch), to_string(spec.exec.precision)})
    line += " | " + std::string(part);
  return line + (spec.model.layers.empty() ? "" : " | layers");
}

bool is_compiled(const RunSpec& spec, const DeviceInfo& device) {
  const std::string wanted = line_of(spec, device);
  std::ifstream file(compiled_file());
  for (std::string line; std::getline(file, line);)
    if (line == wanted) return true;
  return false;
}

bool must_compile(const RunSpec& spec, const DeviceInfo& device) {
  return spec.exec.device != Device::Cpu && device.cuda && driver_compiles_for(device.compute) && !is_compiled(spec, device);
}

}  // namespace

bool driver_compiles_for(const std::string& compute) { return !has_code_for(compute); }

std::string compile_notice(const RunSpec& spec, const DeviceInfo& device) {
  if (!must_compile(spec, device)) return {};
  return "The driver compiles the kernels for this GPU, because this build has none for compute capability " + device.compute +
         ". It keeps them: this wait comes once.";
}

void remember_compiled(const RunSpec& spec, const DeviceInfo& device) {
  if (!must_compile(spec, device) || compiled_file().empty()) return;
  std::error_code failed;  // without the folder, the notice comes again
  std::filesystem::create_directories(compiled_file().parent_path(), failed);
  std::ofstream(compiled_file(), std::ios::app) << line_of(spec, device) + "\n";
}

std::string compile_notice(const RunSpec& spec) { return compile_notice(spec, device_info()); }
void remember_compiled(const RunSpec& spec) { remember_compiled(spec, device_info()); }

}  // namespace ws

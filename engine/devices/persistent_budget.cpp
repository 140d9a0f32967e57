#include "engine/devices/persistent_budget.h"

#include "engine/cuda/persistent/residency.h"
#include "engine/devices/devices.h"

namespace ws {

std::string persistent_budget(const RunSpec& spec, const Plan& plan, int64_t train_rows) {
  if (spec.exec.launch != Launch::Persistent && spec.exec.launch != Launch::Auto) return {};
  namespace one = cuda::persistent;
  const DeviceInfo& device = device_info();
  const one::Limits limits = device.cuda ? one::limits_of(device) : one::Limits{};
  return one::text(one::place(one::network_of(spec, plan, train_rows), limits));
}

}  // namespace ws

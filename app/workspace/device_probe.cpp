#include "app/workspace/device_probe.h"

#include "engine/devices/devices.h"

#include <utility>

namespace ws::app {

void DeviceProbe::start() {
  job_.start([](const Job::Side&) { device_info(); },
             [this](const QString&) {
               info_ = &device_info();
               emit known(info_);
               for (const auto& then : std::exchange(waiting_, {})) then();
             });
}

void DeviceProbe::whenKnown(std::function<void()> then) {
  if (info_) return then();
  waiting_.push_back(std::move(then));
}

}  // namespace ws::app

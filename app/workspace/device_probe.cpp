#include "app/workspace/device_probe.h"

#include "engine/devices/devices.h"

#include <QCoreApplication>
#include <QPointer>
#include <QThreadPool>
#include <utility>

namespace ws::app {

void DeviceProbe::start() {
  QThreadPool::globalInstance()->start([guard = QPointer<DeviceProbe>(this)] {
    const DeviceInfo* info = &device_info();
    QMetaObject::invokeMethod(qApp, [guard, info] {
      if (!guard) return;
      guard->info_ = info;
      emit guard->known(info);
      for (const auto& then : std::exchange(guard->waiting_, {})) then();
    });
  });
}

void DeviceProbe::whenKnown(std::function<void()> then) {
  if (info_) return then();
  waiting_.push_back(std::move(then));
}

}  // namespace ws::app

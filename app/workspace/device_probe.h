// Looks for a GPU on its own thread: starting a driver takes long, and the window is shown first.
#pragma once
#include <functional>
#include <vector>

#include "app/workspace/job.h"
#include "engine/executor/device_info.h"

namespace ws::app {

class DeviceProbe : public QObject {
  Q_OBJECT
 public:
  explicit DeviceProbe(QObject* parent = nullptr) : QObject(parent) {}
  void start();
  const DeviceInfo* info() const { return info_; }  // nullptr while looking
  void whenKnown(std::function<void()> then);       // calls `then` now, or after known()

 signals:
  void known(const ws::DeviceInfo* info);

 private:
  const DeviceInfo* info_ = nullptr;
  std::vector<std::function<void()>> waiting_;
  Job job_;
};

}  // namespace ws::app

// Shows the training device with a dot, in the corner of the menu bar.
#pragma once
#include <QWidget>

#include "app/workspace/device_probe.h"

namespace ws::app {

class DeviceCorner : public QWidget {
  Q_OBJECT
 public:
  explicit DeviceCorner(QWidget* parent);
  void show(const DeviceInfo* info, bool compact);  // nullptr while looking
  void showText(const QString& text, bool good);    // for another machine

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  QString text_;
  bool good_ = false;
};

}  // namespace ws::app

// A small icon that follows the theme. A QLabel would keep the pixmap of the theme that it was created in.
#pragma once
#include <QIcon>
#include <QPainter>
#include <QWidget>

namespace ws::app {

class IconLabel : public QWidget {
 public:
  IconLabel(QIcon icon, QWidget* parent) : QWidget(parent), icon_(std::move(icon)) { setFixedSize(15, 15); }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    icon_.paint(&painter, rect());
  }

 private:
  QIcon icon_;
};

}  // namespace ws::app

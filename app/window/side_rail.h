// The narrow column at a window edge with the names of the docks; a click shows or hides one.
#pragma once
#include <QAbstractButton>
#include <QWidget>

class QVBoxLayout;

namespace ws::app {

class RailButton : public QAbstractButton {
  Q_OBJECT
 public:
  RailButton(const QString& name, bool left, QWidget* parent);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent*) override;
  void enterEvent(QEnterEvent*) override { update(); }
  void leaveEvent(QEvent*) override { update(); }

 private:
  bool left_;
};

class SideRail : public QWidget {
  Q_OBJECT
 public:
  SideRail(bool left, QWidget* parent);
  RailButton* add(const QString& name);

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  bool left_;
  QVBoxLayout* column_;
};

}  // namespace ws::app

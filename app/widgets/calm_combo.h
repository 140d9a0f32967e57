// A combo box that only a click, Space, Enter, F4, Alt+Up or Alt+Down opens. Other keys and the
// wheel go to the pane below it.
#pragma once
#include <QComboBox>
#include <QKeyEvent>
#include <QWheelEvent>

namespace ws::app {

class CalmCombo : public QComboBox {
 public:
  using QComboBox::QComboBox;

 protected:
  void keyPressEvent(QKeyEvent* event) override {
    switch (event->key()) {
      case Qt::Key_Space:
      case Qt::Key_Return:
      case Qt::Key_Enter:
      case Qt::Key_F4:
        return showPopup();
      case Qt::Key_Down:
      case Qt::Key_Up:
        if (event->modifiers() & Qt::AltModifier) return showPopup();
        break;
      default:
        break;
    }
    event->ignore();
  }
  void wheelEvent(QWheelEvent* event) override { event->ignore(); }
};

}  // namespace ws::app

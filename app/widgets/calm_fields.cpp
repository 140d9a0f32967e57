#include "app/widgets/calm_fields.h"

#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QKeyEvent>

namespace ws::app {

CalmFields::CalmFields(QObject* parent) : QObject(parent) { qApp->installEventFilter(this); }

bool CalmFields::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::Wheel && event->type() != QEvent::KeyPress) return false;
  auto* box = qobject_cast<QComboBox*>(watched);
  if (event->type() == QEvent::KeyPress) return box && handleKey(*box, static_cast<QKeyEvent&>(*event));
  if (!box && !qobject_cast<QAbstractSpinBox*>(watched)) return false;
  event->ignore();
  return true;
}

// F4, Alt+Up and Alt+Down open it; Space and Enter, too, where no text can be typed.
bool CalmFields::handleKey(QComboBox& box, QKeyEvent& event) {
  const bool alt = event.modifiers() & Qt::AltModifier;
  switch (event.key()) {
    case Qt::Key_Space:
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (box.isEditable()) return false;
      break;
    case Qt::Key_F4:
      break;
    case Qt::Key_Up:
    case Qt::Key_Down:
      if (alt) break;
      event.ignore();
      return true;
    case Qt::Key_PageUp:
    case Qt::Key_PageDown:
      event.ignore();
      return true;
    default:
      if (box.isEditable()) return false;  // it is typed text
      event.ignore();
      return true;
  }
  box.showPopup();
  return true;
}

}  // namespace ws::app

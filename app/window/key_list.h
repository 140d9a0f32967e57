// Every key of the window: those of the menus and those that the panes take.
#pragma once
#include <QDialog>

class QMenuBar;

namespace ws::app {

class KeyList : public QDialog {
  Q_OBJECT
 public:
  KeyList(const QMenuBar* menus, QWidget* parent);
};

}  // namespace ws::app

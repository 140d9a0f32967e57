// Keys and the wheel never change a field by accident. A combo box changes only when it is open; the wheel does not
// change a number. Both go to the pane below the field.
#pragma once
#include <QObject>

class QComboBox;
class QKeyEvent;

namespace ws::app {

// Watches all fields of the program, fields of Qt's own dialogs included.
class CalmFields : public QObject {
 public:
  explicit CalmFields(QObject* parent);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  static bool handleKey(QComboBox& box, QKeyEvent& event);
};

}  // namespace ws::app

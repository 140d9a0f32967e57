// The button of a dialog that does what the dialog is for.
#pragma once
#include <QPushButton>
#include <QStyle>

namespace ws::app {

// A dialog's box has styled the button by the time it hands it out, so it is styled again.
inline void make_primary(QPushButton& button) {
  button.setProperty("primary", true);
  button.style()->unpolish(&button);
  button.style()->polish(&button);
}

}  // namespace ws::app

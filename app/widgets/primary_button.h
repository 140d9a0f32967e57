// Marks the main button of a dialog.
#pragma once
#include <QPushButton>
#include <QStyle>

namespace ws::app {

// QDialogButtonBox has styled the button before it returns it, so the style is applied again.
inline void make_primary(QPushButton& button) {
  button.setProperty("primary", true);
  button.style()->unpolish(&button);
  button.style()->polish(&button);
}

}  // namespace ws::app

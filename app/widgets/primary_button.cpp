#include "app/widgets/primary_button.h"

#include <QStyle>

namespace ws::app {

// QDialogButtonBox has styled the button before it returns it, so the style is applied again.
void make_primary(QPushButton& button) {
  button.setProperty("primary", true);
  button.style()->unpolish(&button);
  button.style()->polish(&button);
}

}  // namespace ws::app

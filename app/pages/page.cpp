#include "app/pages/page.h"

namespace ws::app {

QAction* page_separator(QWidget* page) {
  auto* separator = new QAction(page);
  separator->setSeparator(true);
  return separator;
}

}  // namespace ws::app

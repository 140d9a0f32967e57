// The list of all pages: a new page needs one line here.
#pragma once
#include "app/pages/page.h"

namespace ws::app {

struct AllPages {
  Page setup;               // left of all tabs
  std::vector<Page> tabs;   // the live page first
  std::vector<Page> docks;  // in the right column

  std::vector<const Page*> each() const;
};
AllPages make_all_pages(Workspace& workspace);

}  // namespace ws::app

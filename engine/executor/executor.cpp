#include "engine/executor/executor.h"

#include <algorithm>

namespace ws {

bool add_notes(Plan& plan, const std::vector<std::string>& notes) {
  bool news = false;
  for (size_t i = 0; i < std::min(notes.size(), plan.ops.size()); ++i) {
    std::string& note = plan.ops[i].note;
    if (notes[i].empty() || note.ends_with(notes[i])) continue;
    note += (note.empty() ? "" : "; ") + notes[i];
    news = true;
  }
  return news;
}

}  // namespace ws

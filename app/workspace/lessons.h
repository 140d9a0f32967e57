// The lessons of the first page: a handful of runs that differ in one thing, what came out in one sentence, and what to
// try next. No widgets.
#pragma once
#include <QString>
#include <vector>

#include "app/workspace/training_session.h"

namespace ws::app {

struct Lesson {
  QString name, title, text;
  bool needs_gpu = false;
  std::vector<StartRequest> (*requests)(bool cuda);
  QString (*conclusion)(const std::vector<const Run*>& runs);  // in the order of the requests, all ended
  StartRequest (*next)(bool cuda);  // what to try then, with its title
};

// Those that teach something on this machine: three, the first of them first.
std::vector<const Lesson*> lessons(bool cuda);

}  // namespace ws::app

// The lessons of the first page: a handful of runs that differ in one thing, what came out in one sentence, and what to
// try next. No widgets.
#pragma once
#include <QString>
#include <QStringList>
#include <vector>

#include "app/workspace/training_session.h"

namespace ws::app {

struct Lesson {
  QString name, title, text;
  bool needs_gpu = false;
  QStringList recorded;  // names of the runs that ship with the program and show it where there is no GPU
  std::vector<StartRequest> (*requests)(bool cuda);
  QString (*conclusion)(const std::vector<const Run*>& runs);  // in the order of the requests, all ended
  StartRequest (*next)(bool cuda);  // what to try then, with its title
};

// Those that teach something on this machine, the first of them first.
std::vector<const Lesson*> lessons(bool cuda);
// Paths of the runs that are opened instead of training; empty: this machine trains it.
QStringList shipped_runs_of(const Lesson& lesson, bool cuda);
QString text_of(const Lesson& lesson, bool cuda);  // says where the runs were recorded
StartRequest the_same_here(const Run& run);  // what a machine without a GPU makes of a recorded run

}  // namespace ws::app

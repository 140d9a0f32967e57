// Actions on kept runs, the same in the dock and in the library table.
#pragma once
#include <functional>
#include <vector>

#include "app/workspace/run.h"

class QMenu;
class QWidget;

namespace ws::app {

class LibraryJobs;
class RunLibrary;

// Offers every choice with its other values: "train again with one change". Impossible ones are greyed with the reason.
using OneChange = std::function<void(const RunSpec& spec, const QString& title)>;
void fill_change_menu(QMenu& menu, const Run& run, const OneChange& chosen);

void ask_title(QWidget* parent, RunLibrary& library, Run* run);
void ask_tags(QWidget* parent, RunLibrary& library, const std::vector<Run*>& runs);
void ask_note(QWidget* parent, RunLibrary& library, Run* run);
// Both only start the work: another thread does it and reports its end.
void ask_export(QWidget* parent, LibraryJobs& jobs, const std::vector<Run*>& runs);
void ask_import(QWidget* parent, LibraryJobs& jobs);

}  // namespace ws::app

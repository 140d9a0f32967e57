// What a person does with kept runs, the same in the dock and in the library's table.
#pragma once
#include <functional>
#include <vector>

#include "app/workspace/run.h"

class QMenu;
class QWidget;

namespace ws::app {

class LibraryJobs;
class RunLibrary;

// Every choice with its other values: "train again with one change". What cannot run is greyed with its reason.
using OneChange = std::function<void(const RunSpec& spec, const QString& title)>;
void fill_change_menu(QMenu& menu, const Run& run, const OneChange& chosen);

void ask_title(QWidget* parent, RunLibrary& library, Run* run);
void ask_tags(QWidget* parent, RunLibrary& library, const std::vector<Run*>& runs);
void ask_note(QWidget* parent, RunLibrary& library, Run* run);
// Both only ask: the jobs are done on another thread and say when they have ended.
void ask_export(QWidget* parent, LibraryJobs& jobs, const std::vector<Run*>& runs);
void ask_import(QWidget* parent, LibraryJobs& jobs);

}  // namespace ws::app

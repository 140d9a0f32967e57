// What a page gives to the window: a widget and its name, menu entries, state to remember, and work
// that a closing window asks about.
#pragma once
#include <QAction>
#include <QByteArray>
#include <QString>
#include <QWidget>
#include <functional>
#include <vector>

#include "app/workspace/workspace.h"

namespace ws::app {

enum class MenuName { File, Run, View, Timeline, Help };

struct MenuEntries {
  MenuName menu;
  QList<QAction*> actions;  // submenus as their menuAction()
};

// State of a page that is saved from one program start to the next.
struct Remembered {
  QString key;
  std::function<QByteArray()> save;
  std::function<void(const QByteArray&)> restore;
  bool layout = false;  // restored only if the window class (wide or narrow) is the same
};

// Work beside training. A closing window asks about it.
struct Chore {
  std::function<QString()> what;  // a sentence; empty if nothing is running
  QString kept;                   // what remains when it is stopped
  std::function<void()> stop;
  std::function<QString()> place = {};  // another machine that it runs on; empty: this one
  std::function<void()> leave = {};     // it goes on there without the window
  bool busy() const { return !what().isEmpty(); }
  bool there() const { return busy() && place && !place().isEmpty(); }
};

struct Page {
  QString title;
  QString group, answers;  // the tab that it stands under, and the question that it answers: all_pages.cpp
  QWidget* widget = nullptr;
  std::function<void(const std::vector<Run*>&)> show_runs;  // called with RunLibrary::ticked() when it changes
  QWidget* picker = nullptr;                                // shown beside the name while the page is in front
  QString dock;                    // for a page in the right column: the name for saved state
  bool of_training = false, of_program = false;  // only for trainings; only for recorded programs
  std::function<bool(const Run&)> suits;         // False: grey for this run; empty: for every run
  QString needs;               // why it is grey otherwise, as a sentence: "It needs a run of several ranks."
  bool notes = false;          // a number may stand beside its name: Workspace::noteOnTab
  bool beside_setup = false;   // Setup stands open beside it; it is closed beside all other pages, until the user opens it there
  bool open_at_first = false;  // for a dock, if the window is wide enough
  std::function<void(bool narrow)> set_compact;
  std::vector<MenuEntries> menus;
  std::vector<Remembered> remembered;
  std::vector<Chore> chores;
  std::function<bool(const QString& path)> open;  // True: the page took the file
};

// An action for `Page::menus`. It belongs to `page`.
template <class Act>
QAction* page_action(QWidget* page, const QString& text, const QKeySequence& keys, Act act) {
  auto* action = new QAction(text, page);
  action->setShortcut(keys);
  QObject::connect(action, &QAction::triggered, page, std::move(act));
  return action;
}
QAction* page_separator(QWidget* page);

}  // namespace ws::app

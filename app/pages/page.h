// What a page gives to the window: a widget and its name, entries for the menus, what it remembers, what keeps it busy.
#pragma once
#include <QAction>
#include <QByteArray>
#include <QString>
#include <QWidget>
#include <functional>
#include <vector>

#include "app/workspace/workspace.h"

namespace ws::app {

enum class MenuName { File, Run, View, Timeline, Tools, Compare, Help };

struct MenuEntries {
  MenuName menu;
  QList<QAction*> actions;  // submenus by their menuAction()
};

// Something of a page that is kept from one start of the program to the next.
struct Remembered {
  QString key;
  std::function<QByteArray()> save;
  std::function<void(const QByteArray&)> restore;
  bool layout = false;  // restored only where the window is as wide, or as narrow, as it was
};

// What goes on beside training, which a closing window asks about.
struct Chore {
  std::function<QString()> what;  // a sentence; empty: nothing goes on
  QString kept;                   // what stays of it when it is stopped
  std::function<void()> stop;
};

struct Page {
  QString title;
  QWidget* widget = nullptr;
  std::function<void(const std::vector<Run*>&)> show_runs;  // the ticked ones, whenever they change
  QWidget* picker = nullptr;                                // stands in the top bar while the page is in front
  QString dock;                    // of a page in the right column: the name by which it is remembered
  bool of_training = false, of_program = false;  // says nothing of a recorded program, or of anything else
  bool open_at_first = false;  // of a dock, where the window is wide enough
  std::function<void(bool narrow)> set_compact;
  std::vector<MenuEntries> menus;
  std::vector<Remembered> remembered;
  std::vector<Chore> chores;
  std::function<bool(const QString& path)> open;  // true: the page has taken the file
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

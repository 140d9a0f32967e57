#include "app/window/key_list.h"

#include <QGridLayout>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/widgets/labels.h"
#include "app/widgets/theme.h"
#include "app/window/status_line.h"

namespace ws::app {
namespace {

class Keys : public QWidget {
 public:
  Keys(const QString& keys, QWidget* parent) : QWidget(parent), keys_(keys.split(' ', Qt::SkipEmptyParts)) {
    double width = 0;
    for (const QString& key : keys_) width += key_width(key) + 4;
    setFixedSize(static_cast<int>(width) + 2, 20);
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    double x = 0;
    for (const QString& key : keys_) {
      draw_key(painter, x, height() / 2.0, key);
      x += 4;
    }
  }

 private:
  QStringList keys_;
};

std::vector<KeyEntry> pane_keys() {
  return {{"W S", QObject::tr("zoom in and out")},
          {"A D", QObject::tr("pan")},
          {QObject::tr("Ctrl wheel"), QObject::tr("zoom at the pointer")},
          {QObject::tr("drag"), QObject::tr("timeline: sum a range · chart: zoom to it")},
          {"F", QObject::tr("fit")},
          {QObject::tr("Backspace"), QObject::tr("undo a zoom")},
          {QObject::tr("Space"), QObject::tr("follow the newest step, or stop")},
          {"← →", QObject::tr("timeline: pan · chart: move the cursor")},
          {"↑ ↓", QObject::tr("timeline: scroll the rows")},
          {QObject::tr("Home End"), QObject::tr("timeline: its begin, its end")},
          {QObject::tr("Enter"), QObject::tr("timeline: select what is under the pointer")},
          {QObject::tr("Esc"), QObject::tr("timeline: clear the selection")},
          {QObject::tr("Ctrl Enter"), QObject::tr("query: ask it")},
          {QObject::tr("Tab Space"), QObject::tr("reach and press everything without a mouse")}};
}

QString as_caps(const QString& keys) { return keys.size() > 1 ? QString(keys).replace('+', ' ') : keys; }

// Collects the keys of the menus. A pane handles some keys itself; their actions only name them.
void collect(const QMenu* menu, std::vector<KeyEntry>& out, std::vector<KeyEntry>& of_panes) {
  for (const QAction* action : menu->actions()) {
    if (action->menu() && action->menu()->objectName() == "tabs")
      out.push_back({"Ctrl 1 … 9", QObject::tr("the first nine tabs")});
    else if (action->menu())
      collect(action->menu(), out, of_panes);
    else if (!action->shortcut().isEmpty())
      (action->shortcutContext() == Qt::WidgetShortcut ? of_panes : out)
          .push_back({as_caps(action->shortcut().toString(QKeySequence::NativeText)), action->text().remove('&')});
  }
}

int fill(QGridLayout* grid, int line, int column, const QString& title, const std::vector<KeyEntry>& entries,
         QWidget* parent) {
  grid->addWidget(label(parent, ui_font(12.5, 600), {.wraps = false}, title), line++, column, 1, 2);
  for (const KeyEntry& entry : entries) {
    grid->addWidget(new Keys(entry.keys, parent), line, column);
    grid->addWidget(new QLabel(entry.what, parent), line++, column + 1);
  }
  return line;
}

}  // namespace

KeyList::KeyList(const QMenuBar* menus, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("Keyboard shortcuts"));
  std::vector<KeyEntry> commands, of_panes;
  for (const QAction* action : menus->actions())
    if (action->menu()) collect(action->menu(), commands, of_panes);
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(12);
  grid->setVerticalSpacing(5);
  grid->setColumnMinimumWidth(1, 220);
  fill(grid, 0, 0, tr("Anywhere"), commands, this);
  const int below = fill(grid, 0, 3, tr("In a pane"), pane_keys(), this);
  fill(grid, below, 3, tr("In the timeline"), of_panes, this);
  grid->setColumnMinimumWidth(2, 24);
  for (const auto& list : {commands, pane_keys(), of_panes}) entries_.insert(entries_.end(), list.begin(), list.end());
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 18, 20, 16);
  column->addLayout(grid);
  auto* close = new QPushButton(tr("Close"), this);
  connect(close, &QPushButton::clicked, this, &QDialog::accept);
  column->addSpacing(8);
  column->addWidget(close, 0, Qt::AlignRight);
}

}  // namespace ws::app

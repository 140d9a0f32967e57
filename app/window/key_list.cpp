#include "app/window/key_list.h"

#include <QGridLayout>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/panels/theme.h"
#include "app/window/status_line.h"

namespace ws::app {
namespace {

struct Entry {
  QString keys, what;
};

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

std::vector<Entry> pane_keys() {
  return {{"W S", QObject::tr("zoom in and out")},
          {"A D", QObject::tr("pan")},
          {QObject::tr("Ctrl wheel"), QObject::tr("zoom at the pointer")},
          {QObject::tr("drag"), QObject::tr("timeline: sum a range · chart: zoom to it")},
          {"F", QObject::tr("fit")},
          {"← →", QObject::tr("move the cursor of a chart")},
          {QObject::tr("Backspace"), QObject::tr("undo a zoom of a chart")},
          {QObject::tr("Tab Space"), QObject::tr("reach and press everything without a mouse")}};
}

void collect(const QMenu* menu, std::vector<Entry>& out) {
  for (const QAction* action : menu->actions()) {
    if (action->menu() && action->menu()->objectName() == "tabs")
      out.push_back({"Ctrl 1 … 9", QObject::tr("the first nine tabs")});
    else if (action->menu())
      collect(action->menu(), out);
    else if (!action->shortcut().isEmpty())
      out.push_back(
          {action->shortcut().toString(QKeySequence::NativeText).replace('+', ' '), action->text().remove('&')});
  }
}

void fill(QGridLayout* grid, int column, const QString& title, const std::vector<Entry>& entries, QWidget* parent) {
  auto* heading = new QLabel(title, parent);
  heading->setFont(ui_font(12.5, 600));
  grid->addWidget(heading, 0, column, 1, 2);
  int line = 1;
  for (const Entry& entry : entries) {
    grid->addWidget(new Keys(entry.keys, parent), line, column);
    grid->addWidget(new QLabel(entry.what, parent), line++, column + 1);
  }
}

}  // namespace

KeyList::KeyList(const QMenuBar* menus, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("Keys"));
  std::vector<Entry> commands;
  for (const QAction* action : menus->actions())
    if (action->menu()) collect(action->menu(), commands);
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(12);
  grid->setVerticalSpacing(6);
  grid->setColumnMinimumWidth(1, 220);
  fill(grid, 0, tr("Anywhere"), commands, this);
  fill(grid, 3, tr("In a pane"), pane_keys(), this);
  grid->setColumnMinimumWidth(2, 24);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 18, 20, 16);
  column->addLayout(grid);
  auto* close = new QPushButton(tr("Close"), this);
  connect(close, &QPushButton::clicked, this, &QDialog::accept);
  column->addSpacing(8);
  column->addWidget(close, 0, Qt::AlignRight);
}

}  // namespace ws::app

#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QFileDialog>
#include <QKeyEvent>
#include <QMenuBar>
#include <QMessageBox>
#include <QTabBar>

#include "app/pages/setup/setup_panel.h"
#include "app/window/key_list.h"
#include "app/pages/live/live_page.h"
#include "app/window/main_window.h"
#include "app/window/side_rail.h"
#include "app/window/top_bar.h"

namespace ws::app {

QMenu* MainWindow::menu(const QString& name) {
  if (menus_.count(name)) return menus_[name];
  QMenu* made = new QMenu(name, this);
  // Help stays last.
  const auto help = menus_.find(tr("Help"));
  if (help == menus_.end())
    menuBar()->addMenu(made);
  else
    menuBar()->insertMenu(help->second->menuAction(), made);
  return menus_[name] = made;
}

void MainWindow::buildMenus() {
  menuBar()->setFixedHeight(27);
  buildFileMenu();
  buildRunMenu();
  buildViewMenu();
  QMenu* timeline = menu(tr("Timeline"));
  timeline->addAction(tr("Follow the newest step"), QKeySequence("Ctrl+L"), this,
                      [this] { cursor_.setFollow(!cursor_.follow()); });
  QMenu* help = menu(tr("Help"));
  help->addAction(tr("Keys"), QKeySequence("?"), this, &MainWindow::showKeys);
  help->addAction(tr("First-start page"), this, [this] {
    tabs_->setCurrentIndex(0);
    library_.tickOnly({});
  });
  help->addAction(tr("About Warpscope"), this, [this] {
    QMessageBox::about(this, tr("About Warpscope"),
                       tr("<b>Warpscope %1</b><p>Trains small networks on a GPU and shows what each choice "
                          "costs.</p><p>GPL-3.0-or-later, with a permission to link CUDA's libraries.</p>")
                           .arg(QApplication::applicationVersion()));
  });
}

void MainWindow::buildFileMenu() {
  QMenu* file = menu(tr("File"));
  file->addAction(tr("Open…"), QKeySequence::Open, this, &MainWindow::chooseFile);
  file->addAction(tr("Record a program…"), QKeySequence("Ctrl+Shift+O"), this, &MainWindow::askForProgram);
  file->addAction(tr("Save a copy of the run…"), QKeySequence::SaveAs, this, &MainWindow::saveCopy);
  file->addSeparator();
  file->addAction(tr("Quit"), QKeySequence::Quit, this, &QWidget::close);
}

void MainWindow::saveCopy() {
  const Run* run = shownRun();
  if (!run) return say(tr("There is no ended run to save."), true);
  const QString to = QFileDialog::getSaveFileName(
      this, tr("Save a copy"), QString(run->title).replace('/', '-') + ".wsrun", tr("Warpscope runs (*.wsrun)"));
  if (!to.isEmpty()) saveCopyTo(to);
}

void MainWindow::saveCopyTo(const QString& path) {
  Run* run = shownRun();
  if (!run || run->live() || run->path.isEmpty()) return say(tr("There is no ended run to save."), true);
  library_.exportRun(run, path.endsWith(".wsrun") ? path : path + ".wsrun");
}

void MainWindow::buildRunMenu() {
  QMenu* run = menu(tr("Run"));
  run->addAction(tr("Train, pause or resume"), QKeySequence("Ctrl+R"), this, &MainWindow::train);
  run->addAction(tr("Stop"), QKeySequence("Ctrl+."), this, [this] { session_.stop(), recording_.stop(); });
  run->addAction(tr("One step"), QKeySequence("F10"), bar_, &TopBar::stepClicked);
  run->addAction(tr("Train again, same seed"), QKeySequence("Ctrl+Shift+R"), this, &MainWindow::trainAgain);
  run->addSeparator();
  QMenu* presets_menu = run->addMenu(tr("Preset"));
  for (const Preset& preset : presets())
    presets_menu->addAction(QString::fromStdString(preset.title), this,
                            [this, name = preset.name] { setup_->usePreset(QString::fromStdString(name)); });
  run->addAction(tr("Choices as JSON…"), QKeySequence("Ctrl+J"), setup_, &SetupPanel::editJson);
}

void MainWindow::buildViewMenu() {
  QMenu* view = menu(tr("View"));
  view->addAction(tr("Setup"), QKeySequence("Ctrl+B"), setup_button_, &QAbstractButton::toggle);
  view->addAction(tr("Runs"), QKeySequence("Ctrl+Shift+B"), sides_.front().button, &QAbstractButton::toggle);
  view->addSeparator();
  view->addMenu(tab_menu_);
  view->addAction(tr("Next tab"), QKeySequence("Ctrl+Tab"), this,
                  [this] { tabs_->setCurrentIndex((tabs_->currentIndex() + 1) % tabs_->count()); });
  view->addAction(tr("Previous tab"), QKeySequence("Ctrl+Shift+Tab"), this,
                  [this] { tabs_->setCurrentIndex((tabs_->currentIndex() + tabs_->count() - 1) % tabs_->count()); });
  view->addSeparator();
  view->addAction(tr("Undo zoom"), QKeySequence::Undo, live_, &LivePage::undoZoom);
  view->addAction(tr("Light or dark"), QKeySequence("Ctrl+T"), this, &MainWindow::toggleTheme);
  view->addAction(tr("Full screen"), QKeySequence("F11"), this,
                  [this] { isFullScreen() ? showNormal() : showFullScreen(); });
}

// What no button, list or text field took.
void MainWindow::keyPressEvent(QKeyEvent* event) {
  if (event->key() != Qt::Key_Space || event->modifiers() != Qt::NoModifier || !live_->isVisible())
    return QMainWindow::keyPressEvent(event);
  if (!event->isAutoRepeat()) cursor_.setFollow(!cursor_.follow());
}

void MainWindow::showKeys() {
  KeyList list(menuBar(), this);
  list.exec();
}

}  // namespace ws::app

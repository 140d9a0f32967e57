#include "app/window/window_menus.h"

#include <QAbstractButton>
#include <QFileInfo>
#include <QMenu>
#include <QMenuBar>
#include <utility>

#include "app/widgets/glossary.h"
#include "app/window/tab_strip.h"
#include "app/workspace/shipped_runs.h"

namespace ws::app {

WindowMenus::WindowMenus(QMenuBar* bar, TabStrip* strip, Rails rails, const AllPages& pages)
    : QObject(bar), bar_(bar), strip_(strip), rails_(rails), pages_(pages) {
  bar_->setFixedHeight(27);
  buildFile();
  buildRun();
  buildView();
  QMenu* timeline = add(MenuName::Timeline, tr("Timeline"));
  timeline->addAction(tr("Follow the newest step"), QKeySequence("Ctrl+L"), this, &WindowMenus::followWanted);
  addPageEntries(MenuName::Timeline);
  buildHelp();
}

QMenu* WindowMenus::add(MenuName name, const QString& title) { return menus_[name] = bar_->addMenu(title); }

void WindowMenus::addPageEntries(MenuName name) {
  for (const Page* page : pages_.each())
    for (const MenuEntries& entries : page->menus)
      if (entries.menu == name) menus_[name]->addActions(entries.actions);
}

void WindowMenus::buildFile() {
  QMenu* file = add(MenuName::File, tr("File"));
  file->addAction(tr("Open…"), QKeySequence::Open, this, &WindowMenus::openWanted);
  recent_ = file->addMenu(tr("Open recent"));
  if (!shipped_runs().isEmpty()) buildShipped(*file->addMenu(tr("Open the recorded runs")));
  file->addAction(tr("Record a program…"), QKeySequence("Ctrl+Shift+O"), this, &WindowMenus::recordWanted);
  file->addAction(tr("Connect…"), this, &WindowMenus::connectWanted)->setToolTip(tr("Train on another machine, over ssh"));
  file->addAction(tr("Runs on the machine…"), this, &WindowMenus::remoteRunsWanted)
      ->setToolTip(tr("Open a run of the machine that is connected"));
  file->addAction(tr("Save a copy of the run…"), QKeySequence::SaveAs, this, &WindowMenus::saveCopyWanted);
  addPageEntries(MenuName::File);
  file->addSeparator();
  file->addAction(tr("Quit"), QKeySequence::Quit, this, &WindowMenus::quitWanted);
}

// What ships with the program: recorded on a GPU, to look at on every machine.
void WindowMenus::buildShipped(QMenu& menu) {
  menu.setToolTipsVisible(true);
  menu.addAction(tr("MNIST, four ways"), this, &WindowMenus::shippedWanted)->setToolTip(tr("Small trainings, each with another way to allocate and launch"));
  for (const RecordedProgram& program : recorded_programs())
    menu.addAction(program.title, this, [this, program] { emit programWanted(program.path, program.find); })->setToolTip(program.find);
}

void WindowMenus::setRecent(const QStringList& paths) {
  recent_->clear();
  recent_->setEnabled(!paths.isEmpty());
  for (const QString& path : paths)
    recent_->addAction(QFileInfo(path).fileName(), this, [this, path] { emit recentWanted(path); })->setToolTip(path);
  recent_->setToolTipsVisible(true);
}

void WindowMenus::buildRun() {
  QMenu* run = add(MenuName::Run, tr("Run"));
  run->addAction(tr("Train, pause or resume"), QKeySequence("Ctrl+R"), this, &WindowMenus::trainWanted);
  run->addAction(tr("Stop"), QKeySequence("Ctrl+."), this, &WindowMenus::stopWanted);
  run->addAction(tr("One step"), QKeySequence("F10"), this, &WindowMenus::stepWanted);
  run->addAction(tr("Train again, same seed"), QKeySequence("Ctrl+Shift+R"), this, &WindowMenus::trainAgainWanted);
  run->addSeparator();
  addPageEntries(MenuName::Run);
}

void WindowMenus::buildView() {
  QMenu* view = add(MenuName::View, tr("View"));
  view->addAction(tr("Setup"), QKeySequence("Ctrl+B"), rails_.setup, &QAbstractButton::click);
  view->addAction(tr("Runs"), QKeySequence("Ctrl+Shift+B"), rails_.runs, &QAbstractButton::toggle);
  view->addSeparator();
  view->addMenu(pageMenu());
  const auto turn = [pages = strip_->pages()](int by) {  // to the next page that is not grey
    int page = pages->currentIndex();
    do page = (page + pages->count() + by) % pages->count();
    while (!pages->isTabEnabled(page));
    pages->setCurrentIndex(page);
  };
  view->addAction(tr("Next page"), QKeySequence("Ctrl+Tab"), this, [turn] { turn(1); });
  view->addAction(tr("Previous page"), QKeySequence("Ctrl+Shift+Tab"), this, [turn] { turn(-1); });
  view->addSeparator();
  addPageEntries(MenuName::View);
  view->addAction(tr("Light or dark"), QKeySequence("Ctrl+T"), this, &WindowMenus::themeWanted);
  view->addAction(tr("Full screen"), QKeySequence("F11"), this, &WindowMenus::fullScreenWanted);
}

// A line between the tabs. Ctrl and a number open the first page of a tab.
QMenu* WindowMenus::pageMenu() {
  auto* menu = new QMenu(tr("Page"), bar_);
  menu->setObjectName("tabs");
  QTabBar* pages = strip_->pages();
  for (int i = 0, group = -1; i < pages->count(); ++i) {
    const bool first = strip_->groupOf(i) != std::exchange(group, strip_->groupOf(i));
    if (first && i > 0) menu->addSeparator();
    QAction* show = menu->addAction(strip_->nameOf(i), this, [pages, i] { pages->setCurrentIndex(i); });
    if (first && group < 9) show->setShortcut(QKeySequence(QString("Ctrl+%1").arg(group + 1)));
  }
  return menu;
}

// The commands (Ctrl+K) find a word here, too.
QMenu* WindowMenus::wordMenu() {
  auto* menu = new QMenu(tr("Glossary"), bar_);
  menu->addAction(tr("All words"), this, [this] { emit manualWanted("glossary"); });
  menu->addSeparator();
  for (const Word& word : glossary()) menu->addAction(word.name, this, [this, &word] { emit manualWanted("glossary#" + word.name); });
  return menu;
}

void WindowMenus::buildHelp() {
  QMenu* help = add(MenuName::Help, tr("Help"));
  help->addAction(tr("Manual"), QKeySequence::HelpContents, this, [this] { emit manualWanted("tour"); });
  help->addMenu(wordMenu());
  QAction* commands = help->addAction(tr("Commands…"), this, &WindowMenus::commandsWanted);
  commands->setShortcuts({QKeySequence("Ctrl+K"), QKeySequence("Ctrl+Shift+P")});
  help->addAction(tr("Keyboard shortcuts"), QKeySequence("?"), this, &WindowMenus::keysWanted);
  help->addAction(tr("Start page"), this, &WindowMenus::startPageWanted);
  addPageEntries(MenuName::Help);
  help->addAction(tr("About Warpsight"), this, &WindowMenus::aboutWanted);
}

}  // namespace ws::app

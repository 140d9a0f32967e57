#include "app/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDesktopServices>
#include <QDropEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QSettings>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabBar>
#include <QTimer>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>

#include "app/text/units.h"
#include "app/widgets/calm_fields.h"
#include "app/widgets/command_palette.h"
#include "app/widgets/theme.h"
#include "app/window/device_corner.h"
#include "app/window/dock_column.h"
#include "app/window/key_list.h"
#include "app/window/lesson_runner.h"
#include "app/window/machine_actions.h"
#include "app/window/manual_window.h"
#include "app/window/notice_bar.h"
#include "app/window/program_actions.h"
#include "app/window/side_rail.h"
#include "app/window/start_page.h"
#include "app/window/status_line.h"
#include "app/window/status_text.h"
#include "app/window/tab_strip.h"
#include "app/window/top_bar.h"
#include "app/window/window_layout.h"
#include "app/window/window_menus.h"
#include "app/workspace/shipped_runs.h"
#include "profiling/base/failure.h"
#include "profiling/base/paths.h"

namespace ws::app {
MainWindow::MainWindow(const QString& runs_folder, QWidget* parent)
    : QMainWindow(parent), workspace_(runs_folder), guard_(this, workspace_) {
  new CalmFields(this);
  setWindowTitle(tr("Warpsight"));
  setAcceptDrops(true);
  buildCentre();
  const AllPages pages = make_all_pages(workspace_);
  addPages(pages);
  layout_ = new WindowLayout(workspace_, {this, bar_, columns_, docks_, strip_, setup_button_}, pages);
  layout_->fitScreen();
  programs_ = new ProgramActions(this, workspace_, notice_, &guard_);
  machines_ = new MachineActions(this, workspace_, notice_);
  lessons_ = new LessonRunner(workspace_, notice_, this);
  buildMenus(pages);
  connectWorkspace();
  connectPages();
  connectBar();
  connectStart();
  showDevice();
  workspace_.device()->start();
  workspace_.library()->refresh();
  showRuns();
  checkTemporaryFolder();
  pages_->setFocusPolicy(Qt::ClickFocus);
  pages_->setFocus();  // else the first Space would press Train
}

MainWindow::~MainWindow() { workspace_.session()->stopAndWait(10'000); }

void MainWindow::buildCentre() {
  auto* centre = new QWidget(this);
  auto* column = new QVBoxLayout(centre);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  bar_ = new TopBar(workspace_.choices(), centre);
  strip_ = new TabStrip(centre);
  tabs_ = strip_->pages();
  left_rail_ = new SideRail(true, centre);
  right_rail_ = new SideRail(false, centre);
  columns_ = new QSplitter(centre);
  columns_->setHandleWidth(1);
  columns_->setChildrenCollapsible(false);
  status_ = new StatusLine(centre);
  notice_ = new NoticeBar(centre, status_->minimumHeight());
  auto* row = new QHBoxLayout;
  row->setSpacing(0);
  row->addWidget(left_rail_);
  row->addWidget(columns_, 1);
  row->addWidget(right_rail_);
  column->addWidget(bar_);
  column->addWidget(strip_);
  column->addLayout(row, 1);
  column->addWidget(status_);
  setCentralWidget(centre);
  device_ = new DeviceCorner(menuBar());
}

void MainWindow::buildMiddle() {
  constexpr int kLeast = 550;  // size hints of pages that were never shown do not count: they are not styled yet
  auto* middle = new QWidget(columns_);
  middle->setMinimumWidth(kLeast);
  auto* stack = new QVBoxLayout(middle);
  stack->setContentsMargins(0, 0, 0, 0);
  stack->setSpacing(0);
  pages_ = new QStackedWidget(middle);
  pages_->setContentsMargins(5, 5, 5, 5);  // the same around every page: no page has its own
  live_stack_ = new QStackedWidget(pages_);
  start_ = new StartPage(live_stack_);
  live_stack_->addWidget(start_);
  stack->addWidget(pages_, 1);
  notice_->keepTo(middle);
}

void MainWindow::addPages(const AllPages& pages) {
  columns_->addWidget(pages.setup.widget);
  setup_button_ = left_rail_->add(pages.setup.title);
  pages.setup.widget->hide();
  connect(setup_button_, &QAbstractButton::toggled, pages.setup.widget, &QWidget::setVisible);
  buildMiddle();
  docks_ = new DockColumn(right_rail_, columns_);
  for (const Page& dock : pages.docks) docks_->add(dock);
  live_ = pages.tabs.front().widget;
  live_stack_->addWidget(live_);
  connect(tabs_, &QTabBar::currentChanged, this, &MainWindow::showTab);
  for (const Page& page : pages.tabs) addTab(page, page.widget == live_ ? live_stack_ : page.widget);
  for (const Page* page : pages.each()) {
    if (page->open) openers_.push_back(page->open);
    for (const Chore& chore : page->chores) guard_.add(chore);
  }
}

void MainWindow::addTab(const Page& page, QWidget* shown) {
  tab_list_.push_back(page);
  pages_->addWidget(shown);
  strip_->addPage(page);
}

void MainWindow::buildMenus(const AllPages& pages) {
  auto* menus = menus_ = new WindowMenus(menuBar(), strip_, {setup_button_, docks_->button("Runs")}, pages);
  connect(menus, &WindowMenus::openWanted, this, &MainWindow::chooseFile);
  connect(menus, &WindowMenus::recentWanted, this, [this](const QString& path) { openFile(path); });
  menus->setRecent(recentFiles());
  connect(menus, &WindowMenus::shippedWanted, this, [this] { openFiles(shipped_runs()); });
  connect(menus, &WindowMenus::programWanted, this, [this](const QString& path, const QString& find) {
    openFiles({path});
    notice_->conclude(find, {});
  });
  connect(menus, &WindowMenus::recordWanted, programs_, &ProgramActions::askForProgram);
  connect(menus, &WindowMenus::connectWanted, machines_, [this] { machines_->askForMachine(); });
  connect(programs_, &ProgramActions::machineWanted, machines_, [this] { machines_->askForMachine([this] { programs_->askForProgram(); }); });
  connect(menus, &WindowMenus::remoteRunsWanted, machines_, &MachineActions::showRunsThere);
  connect(menus, &WindowMenus::saveCopyWanted, this, &MainWindow::saveCopy);
  connect(menus, &WindowMenus::quitWanted, this, &QWidget::close);
  connect(menus, &WindowMenus::trainWanted, this, &MainWindow::train);
  connect(menus, &WindowMenus::stopWanted, &workspace_, &Workspace::stop);
  connect(menus, &WindowMenus::stepWanted, this, &MainWindow::stepOnce);
  connect(menus, &WindowMenus::trainAgainWanted, this, &MainWindow::trainAgain);
  connect(menus, &WindowMenus::themeWanted, this, &MainWindow::toggleTheme);
  connect(menus, &WindowMenus::fullScreenWanted, this, [this] { isFullScreen() ? showNormal() : showFullScreen(); });
  connect(menus, &WindowMenus::followWanted, workspace_.cursor(), &TimeCursor::toggleFollow);
  connect(menus, &WindowMenus::commandsWanted, this, [this] { (new CommandPalette(menuBar(), this))->open(); });
  connect(menus, &WindowMenus::manualWanted, this, [this](const QString& page) { ManualWindow::open(page, this); });
  connect(menus, &WindowMenus::keysWanted, this, &MainWindow::showKeys);
  connect(menus, &WindowMenus::startPageWanted, this, [this] {
    tabs_->setCurrentIndex(0);
    workspace_.library()->tickOnly({});
  });
  connect(menus, &WindowMenus::aboutWanted, this, &MainWindow::showAbout);
}

void MainWindow::connectWorkspace() {
  TrainingSession* session = workspace_.session();
  connect(session, &TrainingSession::started, this, &MainWindow::runStarted);
  connect(session, &TrainingSession::stateChanged, this, &MainWindow::refreshBars);
  connect(workspace_.jobs(), &LibraryJobs::changed, this, [this] {
    // Reset later: messages of the job come first.
    if (!workspace_.jobs()->busy()) QTimer::singleShot(0, this, [this] { opening_ = false; });
    refreshBars();
  });
  connect(workspace_.jobs(), &LibraryJobs::imported, this, [this](Run* run) {
    if (run->slot >= 0) showOpened(run);  // it was opened, not only imported
  });
  connect(workspace_.library(), &RunLibrary::tickedChanged, this, &MainWindow::showRuns);
  connect(workspace_.device(), &DeviceProbe::known, this, [this](const DeviceInfo* info) {
    showDevice();
    start_->setDevice(info);
    refreshBars();
  });
  connect(layout_, &WindowLayout::compactChanged, this, &MainWindow::showDevice);
  connect(machines_, &MachineActions::changed, this, &MainWindow::showDevice);
  connect(programs_, &ProgramActions::aboutToRestart, layout_, &WindowLayout::remember);
}

void MainWindow::connectPages() {
  connect(&workspace_, &Workspace::said, this, &MainWindow::showSentence);
  connect(&workspace_, &Workspace::written, this, &MainWindow::offerFile);
  connect(&workspace_, &Workspace::concluded, this, &MainWindow::conclude);
  connect(&workspace_, &Workspace::openWanted, this, [this](const QString& path) { openFile(path); });
  connect(&workspace_, &Workspace::fileWanted, this, &MainWindow::chooseFile);
  connect(&workspace_, &Workspace::liveWanted, this, [this] { tabs_->setCurrentIndex(0); });
  connect(&workspace_, &Workspace::runOpened, this, [this](Run* run) {
    layout_->offerSetup(run->live());
    tabs_->setCurrentIndex(0);
  });
  connect(&workspace_, &Workspace::frontWanted, this,
          [this](const QObject* page) {
            const int tab = tabOf(page);
            if (tab >= 0 && !tabs_->isTabEnabled(tab)) workspace_.say(tab_list_[static_cast<size_t>(tab)].needs, true);
            tabs_->setCurrentIndex(tab);
          });
  connect(&workspace_, &Workspace::tabNoted, this,
          [this](const QObject* page, const QString& note) {
            if (const int tab = tabOf(page); tab >= 0) strip_->setNote(tab, note);
          });
}

void MainWindow::connectBar() {
  TimeCursor* cursor = workspace_.cursor();
  connect(bar_, &TopBar::trainClicked, this, &MainWindow::train);
  connect(bar_, &TopBar::stopClicked, &workspace_, &Workspace::stop);
  connect(bar_, &TopBar::stepClicked, this, &MainWindow::stepOnce);
  connect(bar_, &TopBar::speedChosen, workspace_.session(), &TrainingSession::setSpeed);
  connect(bar_, &TopBar::followClicked, cursor, &TimeCursor::setFollow);
  connect(cursor, &TimeCursor::followChanged, bar_, &TopBar::setFollow);
  connect(bar_, &TopBar::findClicked, &workspace_, &Workspace::findInTimeline);
  connect(bar_, &TopBar::themeClicked, this, &MainWindow::toggleTheme);
  connect(bar_, &TopBar::runPicked, &workspace_, &Workspace::pick);
  connect(bar_, &TopBar::runsWanted, this, [this] { docks_->button("Runs")->setChecked(true); });
}

void MainWindow::connectStart() {
  connect(start_, &StartPage::start, lessons_, &LessonRunner::start);
  connect(lessons_, &LessonRunner::opened, this, [this] { layout_->offerSetup(false); });
  connect(start_, &StartPage::openFile, this, &MainWindow::chooseFile);
  connect(start_, &StartPage::recordWanted, programs_, &ProgramActions::askForProgram);
  connect(start_, &StartPage::connectWanted, machines_, [this] { machines_->askForMachine(); });
  connect(start_, &StartPage::ownData, this, [this] {
    setup_button_->setChecked(true);
    const QString path = QFileDialog::getOpenFileName(this, tr("Your own data"), {}, tr("Tables and images (*.csv *.csv.gz *ubyte *ubyte.gz);;All files (*)"));
    if (!path.isEmpty()) useData(path);
  });
}

int MainWindow::tabOf(const QObject* page) const {
  const auto at = std::find_if(tab_list_.begin(), tab_list_.end(), [page](const Page& p) { return p.widget == page; });
  return at == tab_list_.end() ? -1 : static_cast<int>(at - tab_list_.begin());
}

void MainWindow::showTab(int index) {
  if (index < 0 || index != tabs_->currentIndex()) return;  // grey: another page is in front by now
  const Page& tab = tab_list_[static_cast<size_t>(index)];
  pages_->setCurrentIndex(index);
  if (tab.show_runs) tab.show_runs(workspace_.library()->ticked());
  refreshBars();
}

void MainWindow::train() {
  TrainingSession* session = workspace_.session();
  if (session->busy()) return session->paused() ? session->resume() : session->pause();
  if (bar_->showsProgram()) return workspace_.recordAgain();
  if (const Choices::Verdict verdict = workspace_.choices()->verdict(); !verdict.problem.empty() && !session->machine())
    return workspace_.say(tr("Cannot train: %1").arg(QString::fromStdString(verdict.problem)), true);
  workspace_.train(workspace_.choices()->spec());
}

void MainWindow::stepOnce() {
  TrainingSession* session = workspace_.session();
  const Choices& choices = *workspace_.choices();
  if (session->busy() || session->start({choices.spec(), {}, choices.traceLevel(), true})) session->stepOnce();
}

void MainWindow::trainAgain() {
  const Run* run = workspace_.shownRun();
  if (!run || workspace_.session()->busy()) return;
  // Its title may tell of changes from a later step on. The new run has them from the start, so it gets its own title.
  const bool changed = !run->changes.empty() && !run->named;
  workspace_.train(run->spec, changed ? QString() : run->title);
}

void MainWindow::runStarted(Run* run) {
  status_->say({}, false);
  notice_->dismiss();
  if (!(run->spec == workspace_.choices()->spec())) takeChoices(*run);
  layout_->offerSetup(true);
  workspace_.cursor()->clearCursor();
  workspace_.cursor()->setFollow(true);
  connect(run, &Run::changed, this, &MainWindow::refreshBars, Qt::UniqueConnection);
  live_stack_->setCurrentWidget(live_);
}

// Setup follows what trains, and says so.
void MainWindow::takeChoices(const Run& run) {
  workspace_.choices()->replace(run.spec);
  workspace_.say(tr("Setup has the settings of %1 now. “Bring back mine” in Setup returns yours.").arg(run.title), false);
}

void MainWindow::showRuns() {
  const auto ticked = workspace_.library()->ticked();
  for (Run* run : ticked)  // data from a file arrives later
    if (!run->live() || run->recording)
      connect(run, &Run::changed, this, &MainWindow::refreshBars, Qt::UniqueConnection);
  bar_->setRuns(ticked);
  const bool nothing = ticked.empty();
  if (!nothing && live_stack_->currentWidget() == start_) layout_->offerSetup(true);  // the start page stands alone
  live_stack_->setCurrentWidget(nothing ? static_cast<QWidget*>(start_) : live_);
  const int index = tabs_->currentIndex();
  if (index >= 0 && tab_list_[static_cast<size_t>(index)].show_runs)
    tab_list_[static_cast<size_t>(index)].show_runs(ticked);
  docks_->showRuns(ticked);
  refreshBars();
}

// A recorded program has no plan and none of our weights. Most runs have one rank.
void MainWindow::offerPages(bool program) {
  const Run* run = workspace_.shownRun();
  for (size_t i = 0; i < tab_list_.size(); ++i) {
    const Page& page = tab_list_[i];
    const bool kind = (!page.of_training && !page.of_program) || page.of_program == program;
    strip_->setOffered(static_cast<int>(i), kind && (!page.suits || (run && page.suits(*run))));
  }
}

void MainWindow::showDevice() {
  if (const RemoteMachine* there = machines_ ? machines_->machine() : nullptr)
    device_->showText(there->text(), there->up());
  else
    device_->show(workspace_.device()->info(), layout_->compact());
  device_->move(width() - device_->width(), 0);
  device_->raise();
}

void MainWindow::refreshBars() {
  const TrainingSession& session = *workspace_.session();
  bar_->showRun(workspace_.shownRun(), session.busy(), session.paused(), static_cast<int>(session.waiting()));
  bar_->setSpeed(session.speed(), session.slowRate());
  show_status(*status_, workspace_);
  const QString keys =
      live_->isVisible()     ? tr("[W] [S] zoom · [A] [D] pan · drag sums a range · [?] keys")
      : bar_->showsProgram() ? tr("[Ctrl R] records the program again · [?] keys")
                             : tr("[Ctrl R] trains with the settings in Setup · [?] keys");
  status_->setKeys(keys);
  setup_button_->setText(bar_->showsProgram() ? tr("Program") : tr("Setup"));
  offerPages(bar_->showsProgram());
}

void MainWindow::showSentence(const QString& sentence, bool problem) {
  status_->say(sentence, problem);
  if (sentence.isEmpty()) return notice_->dismiss();
  if (!problem || programs_->offerRestartIfGpuLost(sentence)) return;
  opening_ ? notice_->add(sentence) : notice_->showText(sentence);
}

// Recordings, sweeps and passwords for ssh need it. A training does not.
void MainWindow::checkTemporaryFolder() {
  try {
    temporary_folder();
  } catch (const Failure& problem) {
    showSentence(QString::fromUtf8(problem.what()) + ".", true);
  }
}

QString MainWindow::openFilters() {
  return tr("Everything that opens (%1 *.csv.gz);;Warpsight runs (*.wsrun);;Traces and memory snapshots of other tools "
            "(%1);;Settings, experiments, laboratory results (*.json);;Tables to learn from (*.csv *.csv.gz);;All files (*)")
      .arg(readable_files());
}

void MainWindow::chooseFile() {
  const QStringList paths =
      QFileDialog::getOpenFileNames(this, tr("Open"), workspace_.library()->folder(), openFilters());
  if (!paths.isEmpty()) openFiles(paths);
}

void MainWindow::openFiles(const QStringList& paths) {
  opened_.clear();
  notice_->dismiss();
  opening_ = true;
  const auto tick = [this](Run* run) { workspace_.library()->setTicked(run, true); };
  if (workspace_.jobs()->importRanks(paths, tick)) return;
  for (const QString& path : paths)
    if (openOne(path) && !is_shipped(path)) rememberFile(path);
  opening_ = workspace_.jobs()->busy();
}

bool MainWindow::openOne(const QString& path) {
  const QString suffix = QFileInfo(path).suffix().toLower();
  if (suffix == "wsrun") {
    Run* run = workspace_.library()->open(path);
    if (run) showOpened(run);
    return run != nullptr;
  }
  for (const auto& open : openers_)
    if (open(path)) return true;
  const bool table = suffix == "csv" || path.endsWith(".csv.gz", Qt::CaseInsensitive);
  if (table && QFileInfo::exists(path)) {
    useData(path);
    return true;
  }
  if (suffix == "json") return openChoices(path);
  workspace_.say(tr("%1 is not a run, a trace or a table that Warpsight can read.").arg(QFileInfo(path).fileName()), true);
  return false;
}

// During a training it is shown in addition. Otherwise it is shown with the runs opened together with it.
void MainWindow::showOpened(Run* run) {
  if (!opening_) opened_.clear();
  opened_.push_back(run);
  std::vector<Run*> shown;
  for (const auto& each : opened_)
    if (each) shown.push_back(each);
  const bool busy = workspace_.session()->busy();
  if (busy)
    workspace_.library()->setTicked(run, true);
  else
    workspace_.library()->tickOnly(shown);
  layout_->offerSetup(busy);
  tabs_->setCurrentIndex(0);
}

void MainWindow::offerFile(const QString& path) {
  const auto show = [this](const QString& what) {
    return [this, what] {
      QDesktopServices::openUrl(QUrl::fromLocalFile(what));
      notice_->dismiss();
    };
  };
  notice_->conclude(written_text(path), {{tr("Open"), show(path)}, {tr("Show the folder"), show(QFileInfo(path).absolutePath())}});
}

// Offers a comparison at the end of a run. A lesson has its own conclusion, and an error message stays.
void MainWindow::conclude(const QString& line, Run* run, Run* baseline) {
  if (!baseline || lessons_->training() || !notice_->text().isEmpty()) return;
  notice_->conclude(line, {{tr("Compare with %1").arg(run_letter(baseline->slot)),
                            [this, run = QPointer(run), baseline = QPointer(baseline)] {
                              notice_->dismiss();
                              if (run && baseline) workspace_.compareRuns(baseline, run);
                            }}});
}

QStringList MainWindow::recentFiles() const { return QSettings().value("files/recent").toStringList(); }

void MainWindow::rememberFile(const QString& path) {
  constexpr int kMost = 10;
  QStringList recent = recentFiles();
  const QString whole = QFileInfo(path).absoluteFilePath();
  recent.removeAll(whole);
  recent.prepend(whole);
  QSettings().setValue("files/recent", QStringList(recent.mid(0, kMost)));
  menus_->setRecent(recent.mid(0, kMost));
}

void MainWindow::useData(const QString& path) {
  setup_button_->setChecked(true);
  workspace_.choices()->useFile(path);
  const QString column = QString::fromStdString(workspace_.choices()->spec().data.label_column);
  workspace_.say(column.isEmpty() ? tr("Press Train to learn from it.")
                                  : tr("The column to predict is %1. Choose another one under Data, then press Train.").arg(column),
                 false);
}

bool MainWindow::openChoices(const QString& path) {
  try {
    workspace_.choices()->setSpec(load_spec(path.toStdString()));
    return true;
  } catch (const std::exception& problem) {
    workspace_.say(QString::fromUtf8(problem.what()), true);
    return false;
  }
}

void MainWindow::saveCopy() {
  const Run* run = workspace_.shownRun();
  if (!run) return workspace_.say(tr("There is no finished run to save."), true);
  const QString to = QFileDialog::getSaveFileName(
      this, tr("Save a copy"), QString(run->title).replace('/', '-') + ".wsrun", tr("Warpsight runs (*.wsrun)"));
  if (!to.isEmpty()) saveCopyTo(to);
}

void MainWindow::saveCopyTo(const QString& path) {
  const Run* run = workspace_.shownRun();
  if (!run || run->live() || run->path.isEmpty()) return workspace_.say(tr("There is no finished run to save."), true);
  workspace_.jobs()->exportRun(*run, path.endsWith(".wsrun") ? path : path + ".wsrun");
}

void MainWindow::toggleTheme() {
  const ThemeName name = theme().dark() ? ThemeName::Light : ThemeName::Dark;
  set_theme(*qApp, name);
  QSettings().setValue("theme", name == ThemeName::Dark ? "dark" : "light");
}

void MainWindow::showKeys() {
  KeyList list(menuBar(), this);
  list.exec();
}

void MainWindow::showAbout() {
  QMessageBox::about(this, tr("About Warpsight"),
                     tr("<b>Warpsight %1</b><p>Trains small networks on a GPU and shows what each choice "
                        "costs.</p><p>GPL-3.0-or-later, with a permission to link CUDA's libraries.</p>")
                         .arg(QApplication::applicationVersion()));
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  QStringList paths;
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) paths << url.toLocalFile();
  if (!paths.isEmpty()) openFiles(paths);
}

// A key that nothing took goes to the timeline or chart under the pointer: W S A D work there without a click.
bool MainWindow::givenToPointed(QKeyEvent* event) {
  if (giving_ || event->text().isEmpty()) return false;
  for (QWidget* widget : pages_->findChildren<QWidget*>()) {
    if (!widget->underMouse() || !widget->isVisible() || !(widget->focusPolicy() & Qt::ClickFocus) || widget->hasFocus()) continue;
    giving_ = true;
    QCoreApplication::sendEvent(widget, event);
    giving_ = false;
    if (event->isAccepted()) return true;
  }
  return false;
}

// Handles keys that no button, list or text field took.
void MainWindow::keyPressEvent(QKeyEvent* event) {
  if (event->key() != Qt::Key_Space && givenToPointed(event)) return;
  if (event->key() != Qt::Key_Space || event->modifiers() != Qt::NoModifier || !live_->isVisible())
    return QMainWindow::keyPressEvent(event);
  if (!event->isAutoRepeat()) workspace_.cursor()->toggleFollow();
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  layout_->resized(!event->oldSize().isValid());
  showDevice();
}

void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) refreshBars();
}

void MainWindow::endUnasked() {
  guard_.setUnattended();
  close();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!guard_.mayClose([this] { close(); })) return event->ignore();
  if (layout_->keep()) layout_->remember();
  event->accept();
}

}  // namespace ws::app

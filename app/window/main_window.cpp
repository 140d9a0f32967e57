#include "app/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDropEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QProcess>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabBar>
#include <QVBoxLayout>

#include "app/widgets/table_style.h"
#include "app/pages/library/runs_panel.h"
#include "app/pages/setup/setup_panel.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/pages/live/live_page.h"
#include "app/window/notice_bar.h"
#include "app/window/side_rail.h"
#include "app/window/start_page.h"
#include "app/window/status_line.h"
#include "app/window/tab_strip.h"
#include "app/window/tabs.h"
#include "app/window/top_bar.h"

namespace ws::app {

MainWindow::MainWindow(const QString& runs_folder, QWidget* parent)
    : QMainWindow(parent),
      library_(runs_folder),
      session_(runs_folder),
      recording_(runs_folder),
      gpu_lost_(ws::gpu_lost) {
  restarter_ = [](const QStringList& arguments) {
    return QProcess::startDetached(QCoreApplication::applicationFilePath(), arguments);
  };
  setWindowTitle(tr("Warpscope"));
  setMinimumSize(1100, 680);
  setAcceptDrops(true);
  buildCentre();
  buildMenus();
  add_tabs(*this);
  connectSession();
  connectBar();
  resize(1600, 960);
  lookForDevice();
  library_.refresh();
  showRuns();
  refreshBars();
}

MainWindow::~MainWindow() { session_.stopAndWait(10'000); }

void MainWindow::buildCentre() {
  auto* centre = new QWidget(this);
  auto* column = new QVBoxLayout(centre);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  bar_ = new TopBar(centre);
  column->addWidget(bar_);
  notice_ = new NoticeBar(centre);
  column->addWidget(notice_);
  auto* row = new QHBoxLayout;
  row->setSpacing(0);
  left_rail_ = new SideRail(true, centre);
  right_rail_ = new SideRail(false, centre);
  columns_ = new QSplitter(centre);
  columns_->setHandleWidth(1);
  columns_->setChildrenCollapsible(false);
  setup_ = new SetupPanel(columns_);
  setup_button_ = left_rail_->add(tr("Setup"));
  setup_button_->setChecked(true);
  connect(setup_button_, &QAbstractButton::toggled, setup_, &QWidget::setVisible);
  buildTabStrip();
  buildSidePanels();
  columns_->setSizes({312, 1200, 296});
  columns_->setStretchFactor(1, 1);
  row->addWidget(left_rail_);
  row->addWidget(columns_, 1);
  row->addWidget(right_rail_);
  column->addLayout(row, 1);
  status_ = new StatusLine(centre);
  column->addWidget(status_);
  setCentralWidget(centre);
  live_stack_ = new QStackedWidget(pages_);
  start_ = new StartPage(live_stack_);
  live_ = new LivePage(&cursor_, live_stack_);
  live_stack_->addWidget(start_);
  live_stack_->addWidget(live_);
  connect(tabs_, &QTabBar::currentChanged, this, &MainWindow::showTab);
  addTab(
      tr("Live"), live_stack_, [this](const std::vector<Run*>& runs) { live_->setRuns(runs); }, true);
  addSidePanel(tr("Log"), log_panel_, false);
}

void MainWindow::buildTabStrip() {
  auto* middle = new QWidget(columns_);
  auto* stack = new QVBoxLayout(middle);
  stack->setContentsMargins(0, 0, 0, 0);
  stack->setSpacing(0);
  strip_ = new TabStrip(middle);
  tabs_ = strip_->tabs();
  tab_menu_ = new QMenu(tr("Tab"), this);
  tab_menu_->setObjectName("tabs");
  pages_ = new QStackedWidget(middle);
  stack->addWidget(strip_);
  stack->addWidget(pages_, 1);
}

void MainWindow::buildSidePanels() {
  right_ = new QSplitter(Qt::Vertical, columns_);
  right_->setHandleWidth(1);
  runs_ = new RunsPanel(&library_, right_);
  runs_->setMinimumWidth(214);
  addSidePanel(tr("Runs"), runs_, true);
  buildLog();
}

void MainWindow::buildLog() {
  log_panel_ = new QWidget(right_);
  auto* title = new QLabel(tr("Log"), log_panel_);
  style_panel_title(*title);
  title->setFont(ui_font(12.5, 600));
  log_ = new QPlainTextEdit(log_panel_);
  log_->setStyleSheet(
      "QPlainTextEdit { border: 1px solid transparent; background: transparent; }"
      "QPlainTextEdit:focus { border: 1px solid palette(highlight); }");
  log_->setPlaceholderText(tr("Starts, changes and problems are listed here."));
  log_->setReadOnly(true);
  log_->setFont(mono_font(11));
  log_->setMaximumBlockCount(2000);
  log_->setAccessibleName(tr("Log"));
  auto* column = new QVBoxLayout(log_panel_);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(title);
  column->addWidget(log_);
}

int MainWindow::addTab(const QString& name, QWidget* page, ShowRuns show_runs, bool with_setup, QWidget* picker) {
  if (picker) picker = bar_->keepPicker(picker);
  tab_list_.push_back({name, std::move(show_runs), picker, with_setup});
  pages_->addWidget(page);
  const int index = tabs_->addTab(name);
  QAction* show = tab_menu_->addAction(name, this, [this, index] { tabs_->setCurrentIndex(index); });
  if (index < 9) show->setShortcut(QKeySequence(QString("Ctrl+%1").arg(index + 1)));
  return index;
}

void MainWindow::addSidePanel(const QString& name, QWidget* panel, bool open, ShowRuns show_runs) {
  right_->addWidget(panel);
  right_->setStretchFactor(right_->count() - 1, right_->count() == 1 ? 3 : 1);
  panel->setAutoFillBackground(true);
  panel->setBackgroundRole(QPalette::Base);
  RailButton* button = right_rail_->add(name);
  button->setChecked(open);
  panel->setVisible(open);
  sides_.push_back({name, panel, button, std::move(show_runs)});
  connect(button, &QAbstractButton::clicked, this, [this] { sides_by_hand_ = true; });
  connect(button, &QAbstractButton::toggled, this, [this, panel](bool on) {
    panel->setVisible(on);
    bool any = false;
    for (const Side& side : sides_) any = any || side.button->isChecked();
    right_->setVisible(any);
  });
}

void MainWindow::setTabNote(int tab, const QString& note) {
  const QString& name = tab_list_[static_cast<size_t>(tab)].name;
  tabs_->setTabText(tab, note.isEmpty() ? name : name + "  " + note);
}

void MainWindow::remember(const QString& key, std::function<QByteArray()> save,
                          std::function<void(const QByteArray&)> restore) {
  kept_.push_back({key, std::move(save), std::move(restore)});
}

void MainWindow::showTab(int index) {
  if (index < 0 || index >= static_cast<int>(tab_list_.size())) return;
  const Tab& tab = tab_list_[static_cast<size_t>(index)];
  pages_->setCurrentIndex(index);
  setup_button_->setChecked(tab.setup);
  bar_->setPicker(tab.picker);
  if (tab.show_runs) tab.show_runs(library_.ticked());
  refreshBars();
}

void MainWindow::connectSession() {
  connect(&session_, &Session::started, this, &MainWindow::runStarted);
  connect(&session_, &Session::ended, this, &MainWindow::runEnded);
  connect(&session_, &Session::stateChanged, this, [this] {
    refreshSetup();
    refreshBars();
  });
  connect(&session_, &Session::failed, this, [this](const QString& sentence) { say(sentence, true); });
  connect(&recording_, &ProgramRecording::failed, this, [this](const QString& sentence) { say(sentence, true); });
  connect(&recording_, &ProgramRecording::ended, this, &MainWindow::recorded);
  connect(&library_, &RunLibrary::failed, this, [this](const QString& sentence) { say(sentence, true); });
  connect(&library_, &RunLibrary::exported, this,
          [this](const QString& path) { say(tr("Written: %1").arg(QFileInfo(path).fileName()), false); });
  connect(&library_, &RunLibrary::imported, this,
          [this](const Run* run) { say(tr("Imported: %1").arg(run->title), false); });
  connect(&library_, &RunLibrary::workChanged, this, &MainWindow::refreshBars);
  connect(&library_, &RunLibrary::tickedChanged, this, &MainWindow::showRuns);
  connect(runs_, &RunsPanel::openFile, this, &MainWindow::chooseFile);
  connect(runs_, &RunsPanel::picked, this, &MainWindow::refreshBars);
  connect(runs_, &RunsPanel::useChoices, this, [this](Run* run) { setup_->setSpec(run->spec); });
  connect(setup_, &SetupPanel::apply, &session_, &Session::change);
  connect(start_, &StartPage::start, this, &MainWindow::startFrom);
  connect(start_, &StartPage::openFile, this, &MainWindow::chooseFile);
  connect(start_, &StartPage::commands, this, &MainWindow::showKeys);
  connect(start_, &StartPage::ownData, this, [this] {
    setup_button_->setChecked(true);
    setup_->set("data.name", "csv");
    say(tr("Name the file and the column to predict under Data, then press Train."), false);
  });
}

void MainWindow::connectBar() {
  connect(bar_, &TopBar::trainClicked, this, &MainWindow::train);
  connect(bar_, &TopBar::stopClicked, this, [this] { session_.stop(), recording_.stop(); });
  connect(bar_, &TopBar::stepClicked, this, [this] {
    if (session_.busy()) return session_.stepOnce();
    StartRequest request{setup_->spec(), {}, bar_->traceLevel(), true};
    if (session_.start(request)) session_.stepOnce();
  });
  connect(bar_, &TopBar::followClicked, &cursor_, &TimeCursor::setFollow);
  connect(&cursor_, &TimeCursor::followChanged, bar_, &TopBar::setFollow);
  connect(bar_, &TopBar::themeClicked, this, &MainWindow::toggleTheme);
  connect(bar_, &TopBar::traceLevelPicked, &session_, &Session::setTraceLevel);
  connect(bar_, &TopBar::traceExtrasPicked, &session_, &Session::setTraceExtras);
}

void MainWindow::train() {
  if (session_.busy()) return session_.paused() ? session_.resume() : session_.pause();
  session_.start({setup_->spec(), {}, bar_->traceLevel(), false});
}

void MainWindow::trainAgain() {
  const Run* run = shownRun();
  if (!run || session_.busy()) return;
  setup_->setSpec(run->spec);
  session_.start({run->spec, run->title, bar_->traceLevel(), false});
}

void MainWindow::startFrom(int start_index) {
  if (!info_) return whenDevice([this, start_index] { startFrom(start_index); });
  if (session_.busy()) return say(tr("A run is training: stop it first."), true);
  library_.tickOnly({});
  std::vector<StartRequest> requests = starts()[static_cast<size_t>(start_index)].requests(info_->cuda);
  setup_->setSpec(requests.front().spec);
  session_.startAll(std::move(requests));
}

// The new run gets the next free letter; the oldest gives its place up when all eight are taken.
void MainWindow::runStarted(Run* run) {
  status_->say({}, false);
  notice_->dismiss();
  if (!(run->spec == setup_->spec())) setup_->setSpec(run->spec);
  library_.adopt(run);
  const auto ticked = library_.ticked();
  if (ticked.size() >= 8)
    library_.setTicked(
        *std::min_element(ticked.begin(), ticked.end(), [](Run* a, Run* b) { return a->created < b->created; }), false);
  library_.setTicked(run, true);
  cursor_.clearCursor();
  cursor_.setFollow(true);
  if (watched_) disconnect(watched_, &Run::changed, this, nullptr);
  watched_ = run, logged_ = 0;
  connect(run, &Run::changed, this, [this, run] {
    showLog(run);
    refreshBars();
    runs_->model()->repaintLive();
  });
  if (compact_ && !sides_by_hand_)
    for (const Side& side : sides_) side.button->setChecked(false);
  live_stack_->setCurrentWidget(live_);
  log_->appendPlainText(tr("%1  started: %2").arg(run->created.toString("HH:mm:ss"), run->title));
}

void MainWindow::runEnded(Run* run) {
  if (run == watched_) showLog(run);
  const Summary& s = *run->summary;
  log_->appendPlainText(tr("%1  %2: %3, %4 steps, %5 µs a step")
                            .arg(QDateTime::currentDateTime().toString("HH:mm:ss"), run->title,
                                 QString::fromUtf8(to_string(s.status).data()), count_text(s.steps),
                                 us_text(s.us_per_step)));
}

// As it comes, so that a full disk is known while there is still something to do about it.
void MainWindow::showLog(Run* run) {
  for (; logged_ < run->log.size(); ++logged_) {
    const QString& line = run->log[logged_];
    if (line.contains("run file is not written any further"))
      say(line, true);
    else
      log_->appendPlainText("          " + line);
  }
}

Run* MainWindow::shownRun() const {
  if (session_.busy()) return session_.run();
  if (Run* picked = runs_->current()) return picked;
  const auto ticked = library_.ticked();
  return ticked.empty() ? nullptr : ticked.front();
}

void MainWindow::showRuns() {
  const auto ticked = library_.ticked();
  for (Run* run : ticked)  // what a file holds comes later
    if (!run->live() || run->recording)
      connect(run, &Run::changed, this, &MainWindow::refreshBars, Qt::UniqueConnection);
  live_stack_->setCurrentWidget(ticked.empty() && !session_.busy() ? static_cast<QWidget*>(start_) : live_);
  const int index = tabs_->currentIndex();
  if (index >= 0 && tab_list_[static_cast<size_t>(index)].show_runs)
    tab_list_[static_cast<size_t>(index)].show_runs(ticked);
  for (const Side& side : sides_)
    if (side.show_runs) side.show_runs(ticked);
  refreshSetup();
  refreshBars();
}

void MainWindow::refreshSetup() {
  Run* live = session_.busy() ? session_.run() : nullptr;
  std::optional<RunSpec> running;
  if (live) {
    running = live->spec;
    for (const Change& change : live->changes) set_field(*running, change.key, change.to);
  }
  setup_->setLive(running);
  std::optional<RunSpec> other;
  QChar letter;
  for (Run* run : library_.ticked())
    if (run != live && !other && run->origin != RunOrigin::Imported)  // another program's run was given no choices
      other = run->spec, letter = run_letter(run->slot);
  setup_->setOther(other, letter);
}

void MainWindow::say(const QString& sentence, bool problem) {
  status_->say(sentence, problem);
  if (sentence.isEmpty()) return notice_->dismiss();
  log_->appendPlainText(QDateTime::currentDateTime().toString("HH:mm:ss  ") + sentence);
  if (!problem) return;
  if (gpu_lost_()) return offerRestart(sentence);
  notice_->tell(sentence);
}

void MainWindow::chooseFile() {
  const QString path = QFileDialog::getOpenFileName(this, tr("Open a run"), library_.folder(),
                                                    tr("Warpscope runs (*.wsrun);;All files (*)"));
  if (!path.isEmpty()) openFile(path);
}

void MainWindow::openFile(const QString& path) {
  const QString suffix = QFileInfo(path).suffix().toLower();
  if (suffix == "wsrun") {
    if (Run* run = library_.open(path)) library_.setTicked(run, true);
    return;
  }
  for (const auto& opener : openers_)
    if (opener(path)) return;
  if (suffix == "csv") {
    setup_->set("data.name", "csv");
    setup_->set("data.path", path);
    return say(tr("Name the column to predict under Data, then press Train."), false);
  }
  if (suffix != "json")
    return say(tr("%1: not a run, a trace or a table that can be read here.").arg(QFileInfo(path).fileName()), true);
  try {
    setup_->setSpec(load_spec(path.toStdString()));
  } catch (const std::exception& problem) {
    say(QString::fromUtf8(problem.what()), true);
  }
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) openFile(url.toLocalFile());
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!mayClose([this] { close(); })) return event->ignore();
  if (keep_layout_) rememberLayout();
  event->accept();
}

}  // namespace ws::app

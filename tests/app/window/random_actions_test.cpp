// 200 random sequences of 40 actions in a real window: train, stop, select, compare, open, record, delete, undo, reopen. After
// each action the header, Runs, Overview, Details, Setup, every page and the status line name the same run. The trainings are held:
// they go on by a step when the sequence says so, and each action waits for its end. A sequence depends on its number only.
//   WARPSIGHT_SEQUENCES=200       how many; without it as many as a usual test run has time for
//   WARPSIGHT_SEQUENCE=17         only that one, each action is printed
#include <QAction>
#include <QListView>
#include <QMenu>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>
#include <optional>
#include <random>

#include "app/pages/library/library_model.h"
#include "profiling/run_file/run_file.h"
#include "tests/app/support/made_run.h"
#include "tests/app/support/one_answer.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;

namespace {

constexpr int kActions = 40, kInLibrary = 3, kElsewhere = 3;

// A file of a few steps, with spans of the GPU.
void write_file(const QString& path, int number) {
  prof::RunSummary s;
  s.name = "file " + std::to_string(number), s.preset = number % 2 ? "mnist" : "iris", s.device = "NVIDIA H200", s.status = "finished";
  s.created = QDateTime::currentDateTimeUtc().addSecs(-60 * (number + 1)).toString(Qt::ISODate).toStdString();
  RunSpec spec = load_spec(s.preset);
  spec.exec.allocator = number % 3 ? Allocator::Arena : Allocator::Direct;
  s.spec = spec_text(spec), s.steps = 10, s.us_per_step = 100 + number, s.final_accuracy = 0.9, s.peak_bytes = 1 << 20;
  prof::RunFileWriter writer(path.toStdString(), s);
  for (int i = 0; i < 10; ++i) writer.add(prof::Metric{i, i * 1e-3, 2.3 / (1 + i), 0.5});
  prof::Trace trace;
  test::add_steps(trace, number % 2 ? test::StepStyle::GraphArena : test::StepStyle::EagerDirect, 0, 10);
  writer.add(trace);
  writer.finish();
}

}  // namespace

class RandomActionsTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  using Act = QString (RandomActionsTest::*)();
  struct Action {
    int weight;
    Act act;
  };

  // Each does its work to the end and returns what it did; empty: it is not possible now.
  QString train();
  QString step();
  QString finish();
  QString stop();
  QString change();
  QString select();
  QString tick();
  QString compare();
  QString baseline();
  QString swap();
  QString open();
  QString openTwo();
  QString openDamaged();
  QString reopen();
  QString record();
  QString recordNothing();
  QString endRecording();
  QString remove();
  QString removeInLibrary();
  QString undo();
  QString rename();
  QString page();
  QString pickOnPage();
  QString startPage();
  QString restart();

  void begin();
  void enter();
  void end();
  QString sequence(unsigned number, bool talks);
  unsigned roll(size_t below) { return static_cast<unsigned>(dice_() % below); }
  Run* anyRun();
  RunLibrary& library() { return *window_->workspace()->library(); }
  TrainingSession& session() { return *window_->workspace()->session(); }
  ProgramRecording& recording() { return *window_->workspace()->recording(); }
  bool busy() { return session().busy() || recording().busy(); }
  static void turn() {
    QCoreApplication::processEvents(QEventLoop::AllEvents);
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  }
  // For a minute at most; false: it did not come.
  template <class Condition>
  bool await(Condition condition) {
    QElapsedTimer clock;
    for (clock.start(); !condition(); turn())
      if (clock.elapsed() > 60'000) {
        failed_ = "it does not end";
        return false;
      }
    return true;
  }
  QString elsewhere(unsigned number) const { return home_.path() + QString("/elsewhere-%1.wsrun").arg(number); }

  std::unique_ptr<MainWindow> window_;
  std::optional<test::OneAnswer> answer_;
  std::mt19937 dice_;
  QString failed_;  // of the newest action

 private slots:
  void initTestCase();
  void allViewsNameTheSameRun_data();
  void allViewsNameTheSameRun();
};

void RandomActionsTest::initTestCase() {
  moveIn();
  for (unsigned i = 0; i < kElsewhere; ++i) write_file(elsewhere(i), kInLibrary + static_cast<int>(i));
  QFile damaged(home_.path() + "/damaged.wsrun");
  QVERIFY(damaged.open(QIODevice::WriteOnly) && damaged.write("no run") > 0);
  QDir().mkpath(home_.path() + "/made");
  for (int i = 0; i < kInLibrary; ++i) write_file(home_.path() + QString("/made/made-%1.wsrun").arg(i), i);
}

void RandomActionsTest::begin() {
  clear();
  QDir().mkpath(runs());
  for (const QFileInfo& file : QDir(home_.path() + "/made").entryInfoList(QDir::Files)) QFile::copy(file.filePath(), runs() + "/" + file.fileName());
  failed_.clear();
  enter();
}

// The clocks of trainings and recordings do not wait: what has come is taken at once.
void RandomActionsTest::enter() {
  window_ = WindowHome::open();
  answer_.emplace(*window_);
  window_->resize(1366, 768);
  await([&] { return window_->workspace()->device()->info() != nullptr; });
  for (QObject* clocked : std::initializer_list<QObject*>{&session(), &recording()}) clocked->findChild<QTimer*>("poll")->setInterval(0);
  iris(*window_, 1);
  session().setSpeed(TrainSpeed::Step);
}

void RandomActionsTest::end() {
  session().stop();
  recording().stop();
  await([&] { return !busy() && !library().loading(); });
  window_.reset();
}

Run* RandomActionsTest::anyRun() {
  const auto& runs = library().runs();
  return runs.empty() ? nullptr : runs[roll(runs.size())];
}

QString RandomActionsTest::train() {
  if (busy() || window_->topBar()->showsProgram()) return {};
  const char* const allocators[] = {"direct", "arena", "caching"};
  window_->workspace()->choices()->set("exec.allocator", allocators[roll(3)]);
  window_->topBar()->train()->click();
  if (!session().busy()) failed_ = "the training does not begin";
  return "train";
}

QString RandomActionsTest::step() {
  if (!session().busy()) return {};
  const size_t before = session().run()->steps.size();
  window_->topBar()->step()->click();
  await([&] { return !session().busy() || session().run()->steps.size() > before; });
  return "step";
}

QString RandomActionsTest::finish() {
  if (!session().busy()) return {};
  window_->topBar()->train()->click();  // Resume
  await([&] { return !session().busy(); });
  session().setSpeed(TrainSpeed::Step);
  return "finish";
}

QString RandomActionsTest::stop() {
  if (!session().busy()) return {};
  window_->topBar()->stop()->click();
  await([&] { return !session().busy(); });
  return "stop";
}

QString RandomActionsTest::change() {
  if (!session().busy()) return {};
  const auto& changes = session().run()->changes;
  const size_t before = changes.size();
  const QString value = session().run()->spec.train.lr == 0.01 ? "0.02" : "0.01";
  session().change("train.lr", value);
  session().stepOnce();
  await([&] { return !session().busy() || changes.size() > before; });
  return "change the rate";
}

QString RandomActionsTest::select() {
  Run* run = anyRun();
  if (!run) return {};
  auto* runs = window_->findChild<RunsPanel*>();
  runs->view()->setCurrentIndex(runs->model()->indexOf(run));
  if (library().current() != run) failed_ = "the selected run is not current";
  return "select " + run->title;
}

QString RandomActionsTest::tick() {
  Run* run = anyRun();
  if (!run) return {};
  RunsModel* runs = window_->findChild<RunsPanel*>()->model();
  const QModelIndex index = runs->indexOf(run);
  const bool on = index.data(Qt::CheckStateRole).toInt() == Qt::Checked;
  runs->setData(index, on ? Qt::Unchecked : Qt::Checked, Qt::CheckStateRole);
  return (on ? "untick " : "tick ") + run->title;
}

QString RandomActionsTest::compare() {
  Run *first = anyRun(), *second = anyRun();
  if (!first || first == second) return {};
  window_->workspace()->compareRuns(first, second);
  return "compare " + second->title + " with " + first->title;
}

QString RandomActionsTest::baseline() {
  Run* run = anyRun();
  if (!run || run == library().current()) return {};
  library().selection().setBaseline(run->handle);
  return "baseline " + run->title;
}

QString RandomActionsTest::swap() {
  if (!library().baseline()) return {};
  window_->findChild<CompareTab*>()->setRuns({library().baseline(), library().current()});
  window_->findChild<CompareTab*>()->swapRuns();
  return "swap";
}

QString RandomActionsTest::open() {
  const unsigned file = roll(kElsewhere);
  window_->openFile(elsewhere(file));
  return QString("open file %1").arg(file);
}

QString RandomActionsTest::openTwo() {
  window_->openFiles({elsewhere(0), elsewhere(1)});
  return "open two files";
}

QString RandomActionsTest::openDamaged() {
  window_->openFile(home_.path() + "/damaged.wsrun");
  return "open a damaged file";
}

QString RandomActionsTest::reopen() {
  Run* run = anyRun();
  if (!run || run->path.isEmpty()) return {};
  window_->openFile(run->path);
  return "reopen " + run->title;
}

// The program is this one, as RecordingTest has it: it records itself until it is interrupted.
QString RandomActionsTest::record() {
  if (busy()) return {};
  const QString self = QCoreApplication::applicationFilePath();
  Run* run = window_->programs()->record({self, "RecordingTest", "--recorded-training"}, {.library = self.toStdString()});
  if (!run) failed_ = "the recording does not begin";
  if (run && roll(2)) await([&] { return !recording().busy() || run->trace.span_count() > 0; });
  return "record";
}

QString RandomActionsTest::recordNothing() {
  if (busy() || !window_->programs()->record({"true"}, {.library = QCoreApplication::applicationFilePath().toStdString()})) return {};
  await([&] { return !recording().busy(); });
  return "record a program without CUDA";
}

QString RandomActionsTest::endRecording() {
  if (!recording().busy()) return {};
  window_->workspace()->stop();
  await([&] { return !recording().busy(); });
  return "stop the recording";
}

QString RandomActionsTest::remove() {
  Run* run = library().current();
  if (!run) return {};
  const QString title = run->title;
  for (QAction* action : window_->findChild<RunsPanel*>()->view()->actions())
    if (action->shortcut() == QKeySequence(QKeySequence::Delete)) action->trigger();
  return "delete " + title;
}

QString RandomActionsTest::removeInLibrary() {
  auto* tab = window_->findChild<LibraryTab*>();
  if (tab->filter()->rowCount() == 0) return {};
  tab->table()->selectRow(static_cast<int>(roll(static_cast<size_t>(tab->filter()->rowCount()))));
  const QString title = tab->chosen().empty() ? QString() : tab->chosen().front()->title;
  tab->removeChosen();
  return "delete in the library " + title;
}

QString RandomActionsTest::undo() {
  if (library().trash().empty()) return {};
  for (QPushButton* button : window_->findChild<RunsPanel*>()->findChildren<QPushButton*>())
    if (button->text() == "Undo") button->click();
  return "undo";
}

QString RandomActionsTest::rename() {
  Run* run = library().current();
  if (!run || run->live() || run->path.isEmpty()) return {};
  library().rename(run, QString("renamed %1").arg(roll(100)));
  return "rename";
}

QString RandomActionsTest::page() {
  const auto tab = static_cast<int>(roll(static_cast<size_t>(window_->tabs()->count())));
  if (!window_->tabs()->isTabEnabled(tab)) return {};
  window_->tabs()->setCurrentIndex(tab);
  return "page " + window_->tabs()->tabText(tab);
}

QString RandomActionsTest::pickOnPage() {
  const ProgressCell* header = window_->topBar()->currentRun();
  if (header->isVisibleTo(window_.get())) {
    const QList<QAction*> entries = header->menu()->actions();
    QAction* entry = entries[static_cast<qsizetype>(roll(static_cast<size_t>(entries.size())))];
    const QString name = entry->text();
    entry->trigger();
    return "pick " + name;
  }
  return {};
}

QString RandomActionsTest::startPage() {
  library().tickOnly({});
  return "show no run";
}

// The window is closed and opened again.
QString RandomActionsTest::restart() {
  if (busy()) return {};
  await([&] { return !library().loading(); });
  window_->windowLayout()->remember();
  window_.reset();
  enter();
  window_->windowLayout()->restore();
  iris(*window_, 1);
  return "restart";
}

// Returns what is wrong, with the actions that lead there; empty: nothing.
QString RandomActionsTest::sequence(unsigned number, bool talks) {
  using T = RandomActionsTest;
  static constexpr Action actions[] = {
      {8, &T::train},   {8, &T::step},       {4, &T::finish},        {5, &T::stop},          {2, &T::change},       {8, &T::select},
      {8, &T::tick},    {5, &T::compare},    {4, &T::baseline},      {3, &T::swap},          {5, &T::open},         {2, &T::openTwo},
      {1, &T::openDamaged}, {4, &T::reopen}, {2, &T::record},        {1, &T::recordNothing}, {6, &T::endRecording}, {5, &T::remove},
      {3, &T::removeInLibrary}, {5, &T::undo}, {2, &T::rename},      {6, &T::page},          {4, &T::pickOnPage},   {2, &T::startPage},
      {1, &T::restart}};
  int weights = 0;
  for (const Action& action : actions) weights += action.weight;
  dice_.seed(number);
  begin();
  QStringList done;
  QString wrong = answer_->wrong();
  while (wrong.isEmpty() && done.size() < kActions) {
    auto at = static_cast<int>(roll(static_cast<size_t>(weights)));
    const Action* chosen = actions;
    for (; at >= chosen->weight; ++chosen) at -= chosen->weight;
    const QString what = (this->*chosen->act)();
    if (what.isEmpty()) continue;
    done << what;
    if (talks) qInfo("%2lld %s", static_cast<long long>(done.size()), qPrintable(what));
    turn();
    await([&] { return !library().loading(); });
    turn();
    wrong = failed_.isEmpty() ? answer_->wrong() : failed_;
  }
  end();
  return wrong.isEmpty() ? QString() : QString("%1\nWARPSIGHT_SEQUENCE=%2 after %3 actions: %4").arg(wrong).arg(number).arg(done.size()).arg(done.join(", "));
}

// One row for each sequence.
void RandomActionsTest::allViewsNameTheSameRun_data() {
  QTest::addColumn<unsigned>("number");
  bool one = false, all = false;
  const auto only = qEnvironmentVariable("WARPSIGHT_SEQUENCE").toUInt(&one);
  const auto many = qEnvironmentVariable("WARPSIGHT_SEQUENCES").toUInt(&all);
  constexpr unsigned kUsual = 2;
  const unsigned first = one ? only : 0, count = one ? 1 : all ? many : kUsual;
  for (unsigned number = first; number < first + count; ++number) QTest::newRow(qPrintable(QString::number(number))) << number;
}

void RandomActionsTest::allViewsNameTheSameRun() {
  QFETCH(unsigned, number);
  const QString wrong = sequence(number, qEnvironmentVariableIsSet("WARPSIGHT_SEQUENCE"));
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong));
}

WARPSIGHT_QTEST(RandomActionsTest)
#include "random_actions_test.moc"

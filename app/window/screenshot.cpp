#include "app/window/screenshot.h"

#include <QApplication>
#include <QCommandLineParser>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QPixmap>
#include <QTabBar>
#include <QTimer>
#include <algorithm>
#include <cstdio>

#include "app/core/remote/remote_address.h"
#include "app/pages/weights/weights_panel.h"
#include "app/window/lesson_runner.h"
#include "app/window/machine_actions.h"
#include "app/window/main_window.h"
#include "app/window/status_line.h"
#include "app/window/tab_strip.h"
#include "app/window/window_layout.h"
#include "app/workspace/job.h"

namespace ws::app {
namespace {

void turn(int milliseconds) {
  QElapsedTimer timer;
  timer.start();
  while (timer.elapsed() < milliseconds) QApplication::processEvents(QEventLoop::AllEvents, 20);
}

// The page that is asked for; -1: none is.
int asked_page(const MainWindow& window, const QCommandLineParser& options) {
  return options.isSet("tab") ? window.tabStrip()->pageNamed(options.value("tab")) : -1;
}

void train_for(MainWindow& window, double seconds) {
  QElapsedTimer timer;
  timer.start();
  turn(50);
  while (timer.elapsed() < seconds * 1000 && window.workspace()->session()->busy()) turn(20);
}

// Pages read on other threads, and gather changes with timers that fire once, soon. A note in the status line stays for long.
bool filled(MainWindow& window) {
  constexpr int kSoonMs = 3000;
  const auto due = [](const QTimer* timer) { return timer->isSingleShot() && timer->isActive() && timer->interval() <= kSoonMs; };
  return !Job::anyRunning() && std::ranges::all_of(window.workspace()->library()->ticked(), [](const Run* run) { return run->loaded; }) &&
         std::ranges::none_of(window.findChildren<QTimer*>(), due) &&
         std::ranges::none_of(window.findChildren<WeightsPanel*>(), [](const WeightsPanel* panel) { return panel->isVisible() && panel->reading(); });
}

// Until all that is shown was read and painted: what one part has read may let another one begin to read. At most a minute,
// and while a training goes on, which always has more to show, some seconds.
void read_all(MainWindow& window) {
  constexpr int kQuietTurns = 8, kMostMs = 60'000, kMostOfTraining = 5'000;
  QElapsedTimer timer;
  timer.start();
  for (int quiet = 0; quiet < kQuietTurns; quiet = filled(window) ? quiet + 1 : 0) {
    if (timer.elapsed() > (window.workspace()->session()->busy() ? kMostOfTraining : kMostMs)) return;
    turn(50);
  }
}

}  // namespace

void prepare(MainWindow& window, const QCommandLineParser& options) {
  constexpr int kLeast = 200, kMost = 8192;  // pixels; a larger picture takes all memory
  const QStringList size = options.value("size").split('x');
  if (size.size() == 2) window.resize(std::clamp(size[0].toInt(), kLeast, kMost), std::clamp(size[1].toInt(), kLeast, kMost));
  const QString preset = options.value("preset");
  if (QFileInfo::exists(preset))
    window.openFile(preset);
  else if (!preset.isEmpty())
    window.workspace()->choices()->usePreset(preset);
  for (const QString& choice : options.values("set"))
    window.workspace()->choices()->set(choice.section('=', 0, 0), choice.section('=', 1));
}

void begin(MainWindow& window, const QCommandLineParser& options) {
  if (const int page = asked_page(window, options); page >= 0) window.tabStrip()->open(page);
  if (options.isSet("start"))
    window.lessons()->start(options.value("start").toInt() - 1);
  else if (options.isSet("train"))
    window.workspace()->device()->whenKnown([&window] { QTimer::singleShot(0, &window, &MainWindow::train); });
}

QStringList connect_to_machine(MainWindow& window, QStringList arguments) {
  arguments.removeIf([&window](const QString& argument) {
    const bool machine = is_remote(argument.toStdString());
    if (machine) window.machines()->connectTo(argument);
    return machine;
  });
  return arguments;
}

QString unknown_page(const MainWindow& window, const QCommandLineParser& options) {
  if (!options.isSet("tab") || asked_page(window, options) >= 0) return {};
  QStringList names;
  for (int i = 0; i < window.tabs()->count(); ++i) names << window.tabStrip()->nameOf(i);
  return QStringLiteral("\"%1\" is no page. The pages are: %2.").arg(options.value("tab"), names.join(", "));
}

int take_screenshot(MainWindow& window, const QCommandLineParser& options) {
  window.windowLayout()->setKeep(false);
  while (!window.workspace()->device()->info()) turn(10);
  prepare(window, options);
  window.show();
  turn(300);
  const QStringList files = connect_to_machine(window, options.positionalArguments());
  for (int i = 0; i < 1000 && window.machines()->machine() && !window.workspace()->session()->machine(); ++i) turn(20);
  if (!files.isEmpty()) window.openFiles(files);
  if (options.isSet("start"))
    window.lessons()->start(options.value("start").toInt() - 1);
  else if (options.isSet("train-seconds"))
    window.train();
  if (options.isSet("train-seconds")) train_for(window, options.value("train-seconds").toDouble());
  read_all(window);
  if (const int page = asked_page(window, options); page >= 0) {
    window.tabStrip()->open(page);  // an opened file may have shown another one
    read_all(window);
  }
  const bool written = window.grab().save(options.value("screenshot"));
  const QString state = window.statusLine()->text();
  std::fprintf(stderr, "%s\n", qPrintable(state));
  window.workspace()->session()->stopAndWait(10'000);
  if (!written) std::fprintf(stderr, "%s could not be written\n", qPrintable(options.value("screenshot")));
  return written ? 0 : 1;
}

}  // namespace ws::app

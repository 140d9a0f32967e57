// A window with runs in it, without training most of them: two of a GPU as far as the window can tell, and real ones of
// the CPU.
#pragma once
#include <QDateTime>
#include <QSignalSpy>

#include "tests/app/support/cut_off.h"
#include "tests/app/support/made_run.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

class FilledWindow : public WindowHome {
 protected:
  static void check(QWidget& window, const QString& where, QStringList& wrong) {
    for (const QString& line : ws::test::cut_off(window)) wrong << where + ": " + line;
    const QString folder = qEnvironmentVariable("WARPSIGHT_PICTURES");
    if (!folder.isEmpty()) window.grab().save(folder + "/" + QString(where).replace(' ', '-') + ".png");
  }
  // Shows this run and no other.
  static ws::app::Run* showOnly(ws::app::MainWindow& window, std::unique_ptr<ws::app::Run> made) {
    ws::app::Run* run = made.release();
    run->slot = -1, run->created = QDateTime::currentDateTime();
    window.workspace()->library()->adopt(run);
    window.workspace()->library()->tickOnly({run});
    window.workspace()->pick(run);
    return run;
  }
  static void takeIn(ws::app::MainWindow& window) {
    for (auto style : {ws::test::StepStyle::EagerDirect, ws::test::StepStyle::GraphArena}) {
      const bool direct = style == ws::test::StepStyle::EagerDirect;
      ws::app::Run* run = ws::test::made(direct ? "direct" : "arena", style, direct).release();
      run->slot = -1;
      run->created = QDateTime::currentDateTime();
      run->loaded = true;
      window.workspace()->library()->adopt(run);
      window.workspace()->library()->setTicked(run, true);
    }
    settle();
  }
  static void train(ws::app::MainWindow& window, const char* allocator) {
    iris(window, 30);
    window.workspace()->choices()->set("exec.allocator", allocator);
    QSignalSpy ended(window.workspace()->session(), &ws::app::TrainingSession::ended);
    window.train();
    QTRY_COMPARE(ended.count(), 1);
  }
  static void fill(ws::app::MainWindow& window, std::initializer_list<const char*> allocators) {
    QTRY_VERIFY(window.workspace()->device()->info());
    takeIn(window);
    for (const char* allocator : allocators) train(window, allocator);
    for (ws::app::Run* run : window.workspace()->library()->runs()) window.workspace()->library()->setTicked(run, true);
  }
};

// The pinned baseline: it judges every new run in the words of the gate, also after a restart, until it is unpinned.
#include <QFile>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include "app/pages/compare/compare_headline.h"
#include "app/pages/compare/compare_tab.h"
#include "app/workspace/closing_line.h"
#include "tests/app/support/filled_window.h"

using namespace ws::app;

class PinnedTest : public QObject, FilledWindow {
  Q_OBJECT
 private:
  // Trains and returns what the window says of the run.
  static QString trained(MainWindow& window, const char* allocator) {
    QSignalSpy concluded(window.workspace(), &Workspace::concluded);
    train(window, allocator);
    return concluded.isEmpty() ? QString() : concluded.back()[0].toString();
  }
  static bool has_verdict(const QString& line) {
    for (const char* words : {"slower by ", "faster by ", "no difference beyond 2.0 %", "cannot tell"})
      if (line.contains(words)) return true;
    return false;
  }

 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void theVerdictHasItsInterval();
  void everyNewRunIsJudgedUntilItIsUnpinned();
  void itIsKeptOverARestart();
  void aPinnedRunThatIsGoneJudgesNothing();
};

void PinnedTest::theVerdictHasItsInterval() {
  Run pinned, run;
  pinned.spec = run.spec = ws::load_spec("iris");
  pinned.letter = 0, run.letter = 1;
  pinned.step_time.us = {100, 0.3}, run.step_time.us = {105, 0.4};
  QCOMPARE(judged_by(run, pinned), QString("pinned baseline A: slower by 5.00 % (+4.50 % to +5.50 %)"));
  run.step_time.us = {101, 0.4};
  QVERIFY(judged_by(run, pinned).startsWith("pinned baseline A: no difference beyond 2.0 %"));
  run.step_time.us = {90, 20};
  QVERIFY(judged_by(run, pinned).startsWith("pinned baseline A: cannot tell ("));
  QCOMPARE(judged_by(pinned, pinned), QString());
  run.spec.train.batch = 7;
  QCOMPARE(judged_by(run, pinned), QString());  // a step of another batch is no faster or slower
  Run program, other;
  for (Run* one : {&program, &other}) one->origin = RunOrigin::Imported, one->letter = 2, one->step_time.us = {100, 0.3};
  program.command = QStringList{"python3", "train.py"}, other.command = QStringList{"python3", "train.py", "--fast"};
  QVERIFY(judged_by(other, program).startsWith("pinned baseline C: no difference"));
  other.command = QStringList{"python3", "serve.py"};
  QCOMPARE(judged_by(other, program), QString());
}

void PinnedTest::everyNewRunIsJudgedUntilItIsUnpinned() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  QVERIFY(!trained(*window, "arena").contains("pinned"));
  Workspace& workspace = *window->workspace();
  Run* first = workspace.library()->current();
  workspace.pinBaseline(first);
  QCOMPARE(workspace.pinnedBaseline(), first);
  for (const char* allocator : {"direct", "caching"}) {
    const QString line = trained(*window, allocator);
    QVERIFY2(line.contains("pinned baseline A: ") && has_verdict(line), qPrintable(line));
    QCOMPARE(workspace.library()->baseline(), first);
  }
  QVERIFY(show_tab(*window, "Compare"));
  auto* tab = window->findChild<CompareTab*>();
  QTRY_VERIFY(tab->ready());
  QTRY_VERIFY2(tab->headline()->judgedText().startsWith("Pinned baseline A: ") && has_verdict(tab->headline()->judgedText().replace(QChar(0xA0), ' ')), qPrintable(tab->headline()->judgedText()));
  QVERIFY(tab->pinButton()->isChecked());
  Run* last = workspace.library()->current();
  tab->pinButton()->click();
  QCOMPARE(workspace.pinnedBaseline(), nullptr);
  QCOMPARE(tab->headline()->judgedText(), QString());
  QVERIFY(!trained(*window, "arena").contains("pinned"));
  QCOMPARE(workspace.library()->baseline(), last);
  tab->pinButton()->click();
  QCOMPARE(workspace.pinnedBaseline(), last);
}

void PinnedTest::itIsKeptOverARestart() {
  QString path;
  {
    auto window = open();
    QTRY_VERIFY(window->workspace()->device()->info());
    trained(*window, "arena");
    path = window->workspace()->library()->current()->path;
    window->workspace()->pinBaseline(window->workspace()->library()->current());
  }
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  QVERIFY(window->workspace()->pinnedBaseline());
  QCOMPARE(window->workspace()->pinnedBaseline()->path, path);
  const QString line = trained(*window, "direct");
  QVERIFY2(line.contains("pinned baseline ") && has_verdict(line), qPrintable(line));
  QCOMPARE(window->workspace()->library()->baseline(), window->workspace()->pinnedBaseline());
}

void PinnedTest::aPinnedRunThatIsGoneJudgesNothing() {
  auto window = open();
  QTRY_VERIFY(window->workspace()->device()->info());
  trained(*window, "arena");
  Run* first = window->workspace()->library()->current();
  window->workspace()->pinBaseline(first);
  QVERIFY(window->workspace()->library()->remove(first));
  QCOMPARE(window->workspace()->pinnedBaseline(), nullptr);
  QVERIFY(!trained(*window, "direct").contains("pinned"));
}

WARPSIGHT_QTEST(PinnedTest)
#include "pinned_test.moc"

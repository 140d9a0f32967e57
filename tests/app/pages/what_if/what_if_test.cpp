// The page "What if": edits and their prediction, both steps, what would help most, and why a proof is not possible.
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include "app/pages/what_if/step_path_view.h"
#include "app/pages/what_if/what_if_panel.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/window_tests.h"
#include "tests/profiling/causes/made_program.h"

using namespace ws;
using namespace ws::app;

namespace {

std::unique_ptr<Run> made_run(bool sync) {
  prof::MadeProgram program = prof::small_network();
  program.sync = sync;
  auto run = std::make_unique<Run>();
  run->trace = program.run().trace;
  run->step_time.us = {program.step_us(), 0.5};
  run->origin = RunOrigin::Imported;
  return run;
}

struct ShownWhatIf {
  explicit ShownWhatIf(bool sync = true) : run(made_run(sync)) {
    panel.resize(1200, 760);
    panel.show();
    panel.setRun(run.get());
  }
  ~ShownWhatIf() { panel.setRun(nullptr); }
  std::unique_ptr<Run> run;
  WhatIfPanel panel;
};

}  // namespace

class WhatIfTest : public QObject, FilledWindow {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void anEditIsPredicted();
  void aWrongEditIsRefusedAndChangesNothing();
  void editsOfAnotherRunAreLeftOut();
  void aRowOfTheTableBecomesAnEdit();
  void aProofReportsWhyItIsNotPossible();
  void theWindowHasThePage();
};

void WhatIfTest::anEditIsPredicted() {
  ShownWhatIf shown;
  QVERIFY(shown.panel.result());
  QCOMPARE(shown.panel.view()->pictures().size(), 2u);  // the measured step and an example
  const PathPicture example = shown.panel.view()->pictures()[1];
  QVERIFY(example.example && example.title.startsWith("for example without ") && example.length_us < shown.panel.view()->pictures()[0].length_us);
  QCOMPARE(shown.panel.edits(), QStringList());
  const double before = shown.panel.result()->measured_us.value;
  QVERIFY(shown.panel.addEdit("no sync; launch calls /2"));
  QCOMPARE(shown.panel.edits(), QStringList({"no sync", "launch calls /2"}));
  QVERIFY(shown.panel.result()->predicted_us.value < 0.95 * before);
  QCOMPARE(shown.panel.view()->pictures().size(), 2u);
  QVERIFY(shown.panel.view()->pictures()[0].rows.size() >= 2);
  QVERIFY(!shown.panel.view()->pictures()[1].rows.empty());  // without waits the host is steps ahead of the GPU
  QVERIFY(!shown.panel.view()->grab().isNull());
  shown.panel.removeEdit(0);
  QCOMPARE(shown.panel.edits(), QStringList({"launch calls /2"}));
  QVERIFY(!shown.panel.view()->pictures()[1].example);
  shown.panel.clearEdits();
  QVERIFY(shown.panel.view()->pictures()[1].example);
}

void WhatIfTest::aWrongEditIsRefusedAndChangesNothing() {
  ShownWhatIf shown;
  QVERIFY(shown.panel.addEdit("no sync"));
  QSignalSpy said(&shown.panel, &WhatIfPanel::said);
  QVERIFY(!shown.panel.addEdit("fc9 /2"));
  QVERIFY(!shown.panel.addEdit("make it so"));
  QCOMPARE(said.size(), 2);
  QVERIFY(said[0][0].toString().contains("fc9"));
  QCOMPARE(shown.panel.edits(), QStringList({"no sync"}));
}

void WhatIfTest::editsOfAnotherRunAreLeftOut() {
  ShownWhatIf shown;
  QVERIFY(shown.panel.addEdit("no sync"));
  const auto other = made_run(false);
  QSignalSpy said(&shown.panel, &WhatIfPanel::said);
  shown.panel.setRun(other.get());
  QCOMPARE(shown.panel.edits(), QStringList());
  QVERIFY(shown.panel.result());
  QCOMPARE(said.size(), 1);
  shown.panel.setRun(nullptr);
}

void WhatIfTest::aRowOfTheTableBecomesAnEdit() {
  ShownWhatIf shown;
  auto* table = shown.panel.findChild<QTableView*>();
  QVERIFY(table && table->model()->rowCount() > 4);
  emit table->activated(table->model()->index(0, 0));
  QCOMPARE(shown.panel.edits().size(), 1);
  QVERIFY(shown.panel.edits()[0].endsWith(" gone"));
}

void WhatIfTest::aProofReportsWhyItIsNotPossible() {
  ShownWhatIf shown;
  const auto reason = [&] {
    QStringList words;
    for (const QLabel* label : shown.panel.findChildren<QLabel*>()) words << label->text();
    return words.join('\n');
  };
  QVERIFY(!shown.panel.proveButton()->isEnabled());
  QVERIFY(reason().contains("Add an edit first."));
  QVERIFY(shown.panel.addEdit("no sync"));
  QVERIFY(!shown.panel.proveButton()->isEnabled());
  QVERIFY(reason().contains("Only trainings of this program"));
  shown.run->origin = RunOrigin::File;
  shown.run->spec = load_spec("mnist-naive");
  set_field(shown.run->spec, "exec.device", "cpu");
  shown.panel.setTraining(true);
  QVERIFY(reason().contains("Stop the training first"));
  shown.panel.setTraining(false);
  QVERIFY(shown.panel.proveButton()->isEnabled());
  QVERIFY(shown.panel.addEdit("fc1 /2"));
  QVERIFY(!shown.panel.proveButton()->isEnabled());
  QVERIFY(reason().contains("is no choice"));
}

void WhatIfTest::theWindowHasThePage() {
  auto window = open();
  QVERIFY(show_tab(*window, "What if"));
  QVERIFY(window->findChild<WhatIfPanel*>());
}

WARPSIGHT_QTEST(WhatIfTest)
#include "what_if_test.moc"

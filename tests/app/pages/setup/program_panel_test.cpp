// What stands in place of Setup while a recorded program is shown.
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <nlohmann/json.hpp>

#include "app/pages/live/live_page.h"
#include "app/pages/setup/program_panel.h"
#include "app/widgets/segmented_row.h"
#include "app/window/top_bar.h"
#include "profiling/run_file/run_file.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

class ProgramPanelTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  static ws::prof::RunSummary recorded() {
    ws::prof::RunSummary summary;
    summary.name = "train.py", summary.origin = "record", summary.status = "finished";
    summary.extra = {{"record_command", R"(["python3", "my train.py"])"},
                     {"record_level", "ops"},
                     {"record_trace", "kernels"},
                     {"program_torch", "2.11"}};
    return summary;
  }
  static bool shows(const QWidget& widget, const QString& text) {
    for (const QLabel* label : widget.findChildren<QLabel*>())
      if (label->text().contains(text)) return true;
    return false;
  }

 private slots:
  void initTestCase() {
    qputenv("WARPSIGHT_RESOURCES", WARPSIGHT_SOURCE_DIR "/resources");
    moveIn();
  }
  void cleanup() { clear(); }
  void theRunFileReportsWhatWasRecorded();
  void recordAgainTakesTheLevelThatIsChosen();
  void itTakesThePlaceOfSetup();
  void theShownRunDecidesBesideATraining();
};

void ProgramPanelTest::theRunFileReportsWhatWasRecorded() {
  const auto command = recorded_command(recorded());
  QVERIFY(command);
  QCOMPARE(command->words, QStringList({"python3", "my train.py"}));
  QCOMPARE(command->options.python, ws::prof::PythonLevel::Ops);
  QCOMPARE(command->options.level, ws::prof::TraceLevel::Kernels);
  QCOMPARE(command->environment.at("PyTorch"), std::string("2.11"));
  QVERIFY(!recorded_command({}));
  ws::prof::RunSummary damaged = recorded();
  damaged.extra["record_command"] = "{";
  QVERIFY(!recorded_command(damaged));
  ws::prof::RunSummary newer = recorded();
  newer.extra["record_level"] = "atoms";
  QVERIFY(recorded_command(newer));
}

void ProgramPanelTest::recordAgainTakesTheLevelThatIsChosen() {
  ProgramPanel panel;
  panel.showProgram(*recorded_command(recorded()), {{"ops", 13'000}, {"modules", 10'000}});
  QVERIFY(shows(panel, "python3 my train.py"));
  QVERIFY(shows(panel, "PyTorch") && shows(panel, "2.11"));
  QVERIFY(shows(panel, "Step time at each level: modules 10.00 ms · ops 13.00 ms (×1.30)"));
  QCOMPARE(panel.findChild<SegmentedRow*>()->value(), QString("ops"));
  QStringList command;
  ws::prof::PythonLevel level{};
  connect(&panel, &ProgramPanel::recordWanted, this,
          [&](const QStringList& words, const ws::prof::RecordOptions& options) { command = words; level = options.python; });
  panel.findChild<SegmentedRow*>()->setValue("lines");
  panel.findChild<QPushButton*>()->click();
  QCOMPARE(command, QStringList({"python3", "my train.py"}));
  QCOMPARE(level, ws::prof::PythonLevel::Lines);
}

void ProgramPanelTest::itTakesThePlaceOfSetup() {
  QDir().mkpath(runs());
  const QString file = runs() + "/train.wsrun";
  { ws::prof::RunFileWriter(file.toStdString(), recorded()).finish(); }
  auto window = open();
  auto* panel = window->findChild<ProgramPanel*>();
  auto* setup = window->findChild<SetupPanel*>();
  QVERIFY(panel && setup);
  open_dock(*window, "Setup");
  QVERIFY(setup->isVisibleTo(window.get()));
  Run* run = window->workspace()->library()->open(file);
  QVERIFY(run);
  window->workspace()->library()->tickOnly({run});
  QTRY_VERIFY(panel->isVisibleTo(window.get()) && !setup->isVisibleTo(window.get()));
  QVERIFY(shows(*panel, "python3 my train.py"));
  auto* bar = window->findChild<TopBar*>();
  QCOMPARE(bar->train()->text(), QString("Record"));
  QVERIFY(!bar->step()->isVisibleTo(window.get()));
  // A recorded program has no plan, but the tabs keep their places.
  for (int tab = 0; tab < window->tabs()->count(); ++tab)
    if (window->tabs()->tabText(tab) == "Plan") QVERIFY(!window->tabs()->isTabEnabled(tab));
  window->workspace()->library()->tickOnly({});
  QTRY_COMPARE(bar->train()->text(), QString("Train"));
  QTRY_VERIFY(setup->isVisibleTo(window.get()));
}

// A program and a training are ticked: dock, rail and first button are all about the run that the window shows. Only a
// run with losses has a chart of them.
void ProgramPanelTest::theShownRunDecidesBesideATraining() {
  QDir().mkpath(runs());
  const QString file = runs() + "/train.wsrun", other = runs() + "/ours.wsrun";
  { ws::prof::RunFileWriter(file.toStdString(), recorded()).finish(); }
  ws::prof::RunSummary ours;
  ours.name = "ours", ours.status = "finished", ours.spec = ws::to_json(ws::RunSpec{}).dump();
  { ws::prof::RunFileWriter(other.toStdString(), ours).finish(); }
  auto window = open();
  RunLibrary* library = window->workspace()->library();
  Run *program = library->open(file), *training = library->open(other);
  QVERIFY(program && training);
  QVERIFY(training->hasChoices() && !program->hasChoices());
  library->tickOnly({training, program});
  QTRY_VERIFY(program->loaded && training->loaded);
  auto* panel = window->findChild<ProgramPanel*>();
  auto* bar = window->findChild<TopBar*>();
  const auto rail = [&] {
    for (const QAbstractButton* button : window->findChildren<QAbstractButton*>())
      if (button->text() == "Program" || button->text() == "Setup") return button->text();
    return QString();
  };
  for (Run* shown : {training, program, training}) {
    window->workspace()->pick(shown);
    const bool is_program = shown == program;
    QTRY_COMPARE(panel->isVisibleTo(window.get()), is_program);
    QCOMPARE(bar->train()->text(), QString(is_program ? "Record" : "Train"));
    QCOMPARE(rail(), QString(is_program ? "Program" : "Setup"));
  }
  auto* loss = window->findChild<LivePage*>()->loss();
  QVERIFY(loss->isVisibleTo(window.get()));
  library->tickOnly({program});
  QTRY_VERIFY(!loss->isVisibleTo(window.get()));
  QVERIFY(shows(*panel, "No loss was seen"));
}

WARPSIGHT_QTEST(ProgramPanelTest)
#include "program_panel_test.moc"

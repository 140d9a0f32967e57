// The Experiments tab: runs, stops, goes on in another window, shows its result in every way and writes it.
#include <QLabel>
#include <QListWidget>
#include <QProcess>
#include <QPushButton>
#include <QLabel>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QSpinBox>
#include <QTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/pages/experiments/experiment_dialog.h"
#include "app/pages/experiments/experiment_list.h"
#include "app/pages/experiments/experiments_tab.h"
#include "app/widgets/theme.h"
#include "app/workspace/training_session.h"
#include "engine/devices/devices.h"
#include "engine/executor/executor.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;

class ExperimentsTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  QString file_;
  std::unique_ptr<TrainingSession> session_;
  std::unique_ptr<ExperimentsTab> tab() {
    auto made = std::make_unique<ExperimentsTab>(session_.get(), folder_.path() + "/results");
    made->resize(1200, 760);
    made->show();
    [&] { QVERIFY(made->open(file_)); }();
    return made;
  }
  static int trained(const ExperimentsTab& tab) {
    int count = 0;
    for (const TrialResult& t : tab.result().trials) count += static_cast<int>(t.runs.size());
    return count;
  }

 private slots:
  void initTestCase() {
    set_theme(*qApp, ThemeName::Dark);
    session_ = std::make_unique<TrainingSession>(folder_.path());
    file_ = folder_.filePath("tiny.json");
    std::ofstream(file_.toStdString()) << R"({"title": "A tiny one", "text": "Why.\n\nMore.", "expect": "This.",
      "spec": {"data": {"name": "iris"}, "model": {"hidden": [5]}, "train": {"epochs": 60, "batch": 16},
               "exec": {"device": "cpu"}},
      "axes": {"exec.fusion": ["off", "epilogue"], "train.batch": [8, 16, 64]}, "repeats": 2})";
  }
  void stopsAndGoesOnInAnotherWindow();
  void theListShowsWholeRows();
  void anEarlierResultThatCannotBeRenamedStays();
  void eachShippedOneNamesTheNext();
  void everyViewDrawsSomething();
  void valuesFarApartAreDrawnByTheirLogarithm();
  void writesWhatItShows();
  void anOwnExperimentIsMadeFromAxes();
  void anOwnOneStandsApartFromAShippedOneOfTheSameTitle();
  void theCommandLineGivesTheSameTable();
  void theLadderIsTheSameFromBoth();
};

void ExperimentsTest::stopsAndGoesOnInAnotherWindow() {
  {
    auto first = tab();
    QCOMPARE(first->runButton()->text(), QString("Run"));
    QVERIFY2(first->chart()->isHidden() && !first->empty()->isHidden(), "a chart without a number");
    QVERIFY2(first->empty()->text().startsWith("Run trains 6 combinations, 2 times each. You get the step time"), qPrintable(first->empty()->text()));
    first->repeats()->setValue(5);
    QVERIFY2(first->empty()->text().startsWith("Run trains 6 combinations, 5 times each."), qPrintable(first->empty()->text()));
    first->repeats()->setValue(2);
    first->run();
    QVERIFY(first->running());
    QVERIFY(!first->chart()->isHidden() && first->empty()->isHidden());
    QVERIFY2(!session_->start({}), "two trainings at once would measure each other");
    QTRY_VERIFY(trained(*first) >= 3);
    first->stop();
    QTRY_VERIFY(!first->running());
    QCOMPARE(first->runButton()->text(), QString("Go on"));
  }
  auto second = tab();
  const int before = trained(*second);
  QVERIFY(before >= 3 && before < 12);
  QCOMPARE(second->runButton()->text(), QString("Go on"));
  QSignalSpy said(second.get(), &ExperimentsTab::said);
  second->run();
  QTRY_VERIFY_WITH_TIMEOUT(!second->running(), 120'000);
  QVERIFY(second->result().complete);
  QCOMPARE(trained(*second), 12);
  QCOMPARE(said.count(), 0);
  QCOMPARE(second->runButton()->text(), QString("Run again"));
  QVERIFY2(second->conclusion().contains("µs per step"), qPrintable(second->conclusion()));
}

void ExperimentsTest::theListShowsWholeRows() {
  ExperimentList list(QString(), nullptr);
  list.resize(300, 200);
  list.show();
  list.fill();
  QVERIFY(list.count() > 8);
  int covered = 0;
  for (const int height : {200, 211, 223}) {
    list.resize(300, height);
    const QRect seen = list.viewport()->geometry(), lowest = list.visualItemRect(list.itemAt(10, seen.height() - 1));
    const bool cut = lowest.bottom() >= seen.height();
    QTRY_COMPARE(list.childAt(10, seen.bottom()) != list.viewport(), cut);
    if (cut) QCOMPARE(list.childAt(10, seen.bottom())->height(), seen.height() - lowest.top());
    covered += cut;
    QCOMPARE(list.visualItemRect(list.item(0)).top(), 0);
  }
  QVERIFY(covered > 0);
}

void ExperimentsTest::anEarlierResultThatCannotBeRenamedStays() {
  auto shown = tab();
  QVERIFY(shown->result().complete);
  const QDir all(folder_.path() + "/results");
  const QStringList results = all.entryList(QDir::Dirs | QDir::NoDotAndDotDot);
  QCOMPARE(results.size(), 1);
  const QDateTime now = QDateTime::currentDateTime();
  QStringList taken;  // the names of the next minute
  for (int second = 0; second < 60; ++second) taken << results[0] + now.addSecs(second).toString("-yyyyMMdd-HHmmss");
  for (const QString& name : taken) QVERIFY(all.mkpath(name + "/something"));
  QSignalSpy said(shown.get(), &ExperimentsTab::said);
  shown->run();
  QVERIFY(!shown->running());
  QCOMPARE(said.count(), 1);
  QVERIFY2(said[0][0].toString().contains("cannot be renamed"), qPrintable(said[0][0].toString()));
  for (const QString& name : taken) QDir(all.filePath(name)).removeRecursively();
  QCOMPARE(trained(*tab()), 12);
}

void ExperimentsTest::eachShippedOneNamesTheNext() {
  auto shown = tab();
  shown->list()->setCuda(true);
  shown->list()->fill();
  int named = 0;
  for (int row = 0; row < shown->list()->count(); ++row) {
    if (!(shown->list()->item(row)->flags() & Qt::ItemIsSelectable)) continue;  // a heading
    shown->list()->setCurrentRow(row);
    const QString next = shown->list()->nextTitle();
    QVERIFY2(!next.isEmpty() && next != shown->list()->item(row)->text(), qPrintable(shown->list()->item(row)->text()));
    ++named;
  }
  QVERIFY2(named >= 6, qPrintable(QString::number(named)));
}

void ExperimentsTest::everyViewDrawsSomething() {
  auto shown = tab();
  QVERIFY(shown->result().complete);
  QImage last;
  for (const auto view :
       {ExperimentView::Bars, ExperimentView::HeatMap, ExperimentView::Lines, ExperimentView::Parallel}) {
    QVERIFY(shown->chart()->allows(view));
    shown->chart()->setView(view);
    const QImage picture = shown->chart()->grab().toImage();
    QVERIFY(picture != last);
    QSet<QRgb> colours;
    for (int y = 0; y < picture.height(); y += 4)
      for (int x = 0; x < picture.width(); x += 4) colours.insert(picture.pixel(x, y));
    QVERIFY2(colours.size() > 5, "the view is empty");
    last = picture;
  }
}

void ExperimentsTest::valuesFarApartAreDrawnByTheirLogarithm() {
  ExperimentResult result;
  result.spec = experiment_from_json({{"axes", {{"train.batch", {8, 16}}}}});
  const std::vector<Trial> trials = trials_of(result.spec, false);
  const auto filled = [&](double second) {
    result.trials.clear();
    for (size_t i = 0; i < 2; ++i) {
      TrialResult t;
      t.trial = trials[i];
      TrialRun run;
      run.trial = int(i), run.status = "finished", run.us_per_step = i == 0 ? 10 : second;
      t.runs = {run};
      result.trials.push_back(t);
    }
    ExperimentChart chart;
    chart.resize(600, 200);
    chart.setResult(result);
    return chart.logarithmic();
  };
  QVERIFY(!filled(90));
  QVERIFY(filled(101));
}

void ExperimentsTest::writesWhatItShows() {
  auto shown = tab();
  for (const char* name : {"r.csv", "r.svg", "r.png", "r.pdf"}) {
    QVERIFY2(shown->exportTo(folder_.filePath(name)), name);
    QVERIFY(QFileInfo(folder_.filePath(name)).size() > 200);
  }
  QVERIFY(!shown->exportTo(folder_.filePath("r.what")));
  QVERIFY(!shown->exportTo(folder_.filePath("none/r.png")));
  QVERIFY(!QFileInfo::exists(folder_.filePath("r.what")));
}

void ExperimentsTest::anOwnExperimentIsMadeFromAxes() {
  RunSpec base = load_spec("iris");
  base.exec.device = Device::Cpu;
  base.train.epochs = 5;
  ExperimentDialog dialog(base);
  QVERIFY(!dialog.ready());
  dialog.choose("exec.allocator", {"direct", "arena", "stream-ordered"});
  dialog.choose("train.batch", {"8", "16"});
  dialog.setName("My: own!");
  QVERIFY(dialog.ready());
  dialog.choose("train.batch", {"8", "many"});
  QVERIFY(!dialog.ready());
  dialog.choose("train.batch", {"8", "16"});
  auto shown = tab();
  QVERIFY(shown->add(dialog.spec()));
  QCOMPARE(shown->result().trials.size(), size_t(6));
  QVERIFY(QFileInfo::exists(folder_.path() + "/results/own/my-own-.json"));
  shown->repeats()->setValue(1);
  shown->run();
  QTRY_VERIFY(!shown->running());
  QVERIFY(shown->result().complete);
  int skipped = 0;
  for (const TrialResult& t : shown->result().trials) skipped += !t.trial.skipped.empty();
  QCOMPARE(skipped, 2);  // stream-ordered memory needs a GPU
  auto again = tab();
  bool listed = false;
  for (int row = 0; row < again->list()->count(); ++row) listed |= again->list()->item(row)->text() == "My: own!";
  QVERIFY(listed);
}

void ExperimentsTest::anOwnOneStandsApartFromAShippedOneOfTheSameTitle() {
  const ExperimentInfo shipped = shipped_experiments().front();
  ExperimentSpec own = load_experiment(shipped.path);
  ExperimentsTab made(session_.get(), folder_.path() + "/apart");
  made.show();
  QVERIFY(made.add(own));
  const auto* list = made.findChild<QListWidget*>();
  const auto twins = list->findItems(QString::fromStdString(shipped.title), Qt::MatchExactly);
  const auto headings = list->findItems("Your own", Qt::MatchExactly);
  QCOMPARE(twins.size(), 2);
  QCOMPARE(headings.size(), 1);
  QVERIFY(list->row(twins[0]) < list->row(headings[0]) && list->row(headings[0]) < list->row(twins[1]));
  QVERIFY(twins[0]->toolTip().startsWith("Shipped with Warpsight"));
  QVERIFY(twins[1]->toolTip().startsWith("Your own"));
  QCOMPARE(list->currentItem(), twins[1]);
  const auto said = [&made](const char* words) {
    for (const QLabel* label : made.findChildren<QLabel*>())
      if (label->text().startsWith(words)) return true;
    return false;
  };
  QVERIFY(said("Your own · ") && !said("Shipped with Warpsight · "));
  made.findChild<QListWidget*>()->setCurrentItem(twins[0]);
  QVERIFY(said("Shipped with Warpsight · "));
  // By another spelling of its path it is the same one; headings are nobody's.
  const int rows = list->count();
  QVERIFY(made.open(QFileInfo(QString::fromStdString(shipped.path)).absolutePath() + "/./" +
                    QFileInfo(QString::fromStdString(shipped.path)).fileName()));
  QCOMPARE(list->count(), rows);
  QVERIFY(!(headings[0]->flags() & Qt::ItemIsSelectable) && !(list->item(0)->flags() & Qt::ItemIsSelectable));
}

namespace {

ExperimentResult from_command_line(const QString& experiment, const QString& folder, int repeats) {
  QProcess program;
  program.start(WARPSIGHT_CLI, {"experiment", experiment, "--out", folder, "--repeats", QString::number(repeats)});
  if (!program.waitForFinished(300'000) || program.exitCode() != 0)
    qWarning("%s", program.readAllStandardError().constData());
  return read_experiment(folder.toStdString());
}

}  // namespace

// Losses and calls do not depend on who asks; times do, a little.
void ExperimentsTest::theCommandLineGivesTheSameTable() {
  auto shown = tab();
  const ExperimentResult& window = shown->result();
  const ExperimentResult cli = from_command_line(file_, folder_.filePath("cli"), 2);
  QVERIFY(cli.complete && window.complete);
  QCOMPARE(cli.trials.size(), window.trials.size());
  for (size_t i = 0; i < cli.trials.size(); ++i) {
    QCOMPARE(cli.trials[i].trial.label, window.trials[i].trial.label);
    QCOMPARE(cli.trials[i].first_loss, window.trials[i].first_loss);
    QCOMPARE(cli.trials[i].final_loss, window.trials[i].final_loss);
    QCOMPARE(cli.trials[i].test_accuracy, window.trials[i].test_accuracy);
    QCOMPARE(cli.trials[i].allocator_calls_per_step, window.trials[i].allocator_calls_per_step);
    QCOMPARE(cli.trials[i].peak_bytes, window.trials[i].peak_bytes);
  }
}

void ExperimentsTest::theLadderIsTheSameFromBoth() {
  if (!device_info().cuda) QSKIP("no GPU can be used here: the ladder has nothing to climb");
  ExperimentsTab shown(session_.get(), folder_.path() + "/ladder");
  QVERIFY(shown.open(QString(WARPSIGHT_SOURCE_DIR) + "/resources/experiments/allocator-ladder.json"));
  shown.run();
  QTRY_VERIFY_WITH_TIMEOUT(!shown.running(), 300'000);
  const ExperimentResult& window = shown.result();
  const ExperimentResult cli = from_command_line("allocator-ladder", folder_.filePath("ladder-cli"), 3);
  QVERIFY(cli.complete && window.complete);
  const QString out = qEnvironmentVariable("WARPSIGHT_KEEP");
  if (!out.isEmpty()) {
    QVERIFY(shown.exportTo(out + "/ladder-window.csv"));
    QVERIFY(shown.exportTo(out + "/ladder-window.svg"));
    QFile::copy(folder_.filePath("ladder-cli/table.csv"), out + "/ladder-cli.csv");
    QFile::copy(folder_.filePath("ladder-cli/chart.svg"), out + "/ladder-cli.svg");
  }
  for (size_t i = 0; i < cli.trials.size(); ++i) {
    const TrialResult &a = cli.trials[i], &b = window.trials[i];
    qInfo("%-32s window %7.1f  command line %7.1f µs", a.trial.label.c_str(), b.us_per_step, a.us_per_step);
    QCOMPARE(a.trial.label, b.trial.label);
    QCOMPARE(a.allocator_calls_per_step, b.allocator_calls_per_step);
    QCOMPARE(a.peak_bytes, b.peak_bytes);
    const double apart = std::abs(a.us_per_step - b.us_per_step) / std::min(a.us_per_step, b.us_per_step);
    QVERIFY2(apart < 0.15 || (a.low <= b.high && b.low <= a.high), "the times of a rung lie far apart");
  }
  QVERIFY(window.trials.back().us_per_step < 0.25 * window.trials.front().us_per_step);
}

WARPSIGHT_QTEST(ExperimentsTest)
#include "experiments_test.moc"

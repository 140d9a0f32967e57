// Advice and experiments in the real window: what is found, the jump to it, a change that is tried, an experiment that
// goes on.
#include <QApplication>
#include <QLabel>
#include <QLayout>
#include <QListWidget>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableWidget>
#include <QTest>
#include <algorithm>

#include "app/core/runs/newest_trace.h"
#include "app/pages/experiments/experiments_tab.h"
#include "app/pages/insights/insights_tab.h"
#include "app/pages/insights/run_facts.h"
#include "app/text/units.h"
#include "app/timeline/meaning_legend.h"
#include "app/widgets/section.h"
#include "app/window/top_bar.h"
#include "engine/devices/devices.h"
#include "engine/executor/executor.h"
#include "tests/app/support/made_ranks.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/graph_run.h"

using namespace ws::app;
namespace prof = ws::prof;

namespace {

prof::Span span(prof::TimeNs start, uint64_t ns, prof::SpanKind kind, prof::Meaning meaning, uint32_t step) {
  prof::Span s;
  s.start = start;
  s.duration = ns;
  s.kind = static_cast<uint64_t>(kind);
  s.meaning = static_cast<uint64_t>(meaning);
  s.step = step;
  return s;
}

// Steps of 100 µs as a naive library makes them: 60 µs in the allocator, a kernel of 30, and gaps.
void fill_naive(prof::Trace& trace, int steps) {
  const auto marks = trace.track(prof::TrackKind::Steps, "steps", "CPU"),
             calls = trace.track(prof::TrackKind::Api, "API", "CPU"),
             stream = trace.track(prof::TrackKind::Stream, "stream 7", "GPU 0");
  for (int i = 0; i < steps; ++i) {
    const prof::TimeNs t = i * 100'000;
    const auto step = static_cast<uint32_t>(i + 1);
    trace.append(marks, span(t, 99'000, prof::SpanKind::Step, prof::Meaning::Other, step));
    trace.append(calls,
                 span(t, i == steps / 2 ? 25'000 : 20'000, prof::SpanKind::Alloc, prof::Meaning::Allocation, step));
    trace.append(calls, span(t + 30'000, 40'000, prof::SpanKind::Free, prof::Meaning::Allocation, step));
    trace.append(stream, span(t + 70'000, 30'000, prof::SpanKind::Kernel, prof::Meaning::Matrix, step));
  }
}

Run* naive_run(QObject* parent) {
  auto* run = new Run(parent);
  run->title = "naive";
  run->path = "/nowhere/naive.wsrun";
  run->created = QDateTime::currentDateTime();
  run->spec.exec.allocator = ws::Allocator::Direct;
  run->spec.exec.device = ws::Device::Cuda;
  fill_naive(run->trace, 50);
  run->steps.push_back({0, 0, 0, 2.3F, 0.1F});
  ws::Summary summary;
  summary.steps = 50;
  summary.us_per_step = 100;
  summary.calls.device_allocate = summary.calls.device_free = 50;
  run->summary = summary;
  return run;
}

const char* const kExperiment =
    R"({"title": "Iris, small", "text": "Batches and first weights.", "expect": "Small batches take longer.",
  "preset": "iris", "set": {"exec.device": "cpu", "train.epochs": 2},
  "axes": {"model.init": ["kaiming", "zeros"], "train.batch": [8, 16, 32]}, "repeats": 2})";

}  // namespace

class InsightsTest : public QObject, WindowHome {
  Q_OBJECT
 private:
  QString write(const QString& name, const QByteArray& text) {
    QFile file(home_.path() + "/" + name);
    if (file.open(QIODevice::WriteOnly)) file.write(text);
    return file.fileName();
  }
  // Begins the experiment with so many epochs a run.
  ExperimentsTab* begin(MainWindow& window, const QString& name, int epochs) {
    QByteArray text = kExperiment;
    text.replace("\"train.epochs\": 2", "\"train.epochs\": " + QByteArray::number(epochs));
    window.openFile(write(name, text));
    auto* tab = window.findChild<ExperimentsTab*>();
    tab->runButton()->click();
    return tab;
  }

 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void reportsOneSentenceWithoutARun();
  void factsComeFromTheNewestSteps();
  void factsOfGraphsAreOfTheGpusSteps();
  void cardsShowWhatWasFound();
  void namesKeepTheirLetters();
  void showJumpsToTheLongestCall();
  void anAppliedChangeIsMeasured();
  void importedTracesAreJudgedToo();
  void smallSavingsStandLast();
  void theColoursOfTheBarsHaveNames();
  void aLateRankIsACardThatShowsItsStep();
  void gridPutsTheLongestAxisAcross();
  void experimentRunsInTheWindow();
  void experimentGoesOnAfterAStop();
  void noRunStartsBesideAnExperiment();
  void closingAsksWhetherTheExperimentStops();
  void shippedExperimentsAreListed();
};

void InsightsTest::reportsOneSentenceWithoutARun() {
  auto window = open();
  auto* tab = window->findChild<InsightsTab*>();
  QVERIFY(tab->cards().empty());
  QCOMPARE(tab->emptyText().count('.'), 1);
}

void InsightsTest::factsComeFromTheNewestSteps() {
  std::unique_ptr<Run> run(naive_run(nullptr));
  const RunFacts facts = facts_of(judged_run(*run));
  QVERIFY(facts.gpu);
  QCOMPARE(facts.step_us, 100.0);
  QVERIFY(std::abs(facts.part(prof::Meaning::Matrix) - 30) < 0.01);
  QVERIFY(std::abs(facts.part(prof::Meaning::Allocation) - 60) < 0.2);
  QCOMPARE(facts.kernels_per_step, 1.0);
  QCOMPARE(facts.allocator_calls_per_step, 2.0);
  double parts = 0;
  for (double us : facts.part_us) parts += us;
  QVERIFY(std::abs(parts - facts.step_us) < 1e-6);
  const auto evidence = evidence_of(*run, prof::Meaning::Allocation);
  QVERIFY(evidence);
  QCOMPARE(uint64_t(evidence->span.duration), uint64_t(40'000));
  QVERIFY(evidence->step.start <= evidence->span.start && evidence->span.end() <= evidence->step.end());
  QVERIFY(!evidence_of(*run, prof::Meaning::Copy));
  // An evaluation between the epochs is no part of a step.
  const auto marks = run->trace.track(prof::TrackKind::Steps, "steps", "CPU");
  for (int i = 0; i < 30; ++i)
    run->trace.append(marks, span(50'000'000 + i * 100'000, 99'000, prof::SpanKind::Step, prof::Meaning::Other,
                                  static_cast<uint32_t>(51 + i)));
  QCOMPARE(facts_of(judged_run(*run)).step_us, 100.0);
}

void InsightsTest::factsOfGraphsAreOfTheGpusSteps() {
  const ws::test::GraphRun truth;
  Run run;
  run.spec.exec.launch = ws::Launch::Graph;
  run.spec.exec.device = ws::Device::Cuda;
  ws::test::add_graph_run(run.trace, truth, 3);
  RunUpdate last;
  last.summary = ws::Summary{};
  run.apply(std::move(last));
  const RunFacts facts = facts_of(judged_run(run));
  QVERIFY(std::abs(facts.step_us - 18) < 1e-9);
  QVERIFY(std::abs(facts.part(prof::Meaning::Matrix) - 9) < 1e-9);
  QVERIFY(std::abs(facts.part(prof::Meaning::Launch) - 2) < 1e-9);
  QCOMPARE(facts.part(prof::Meaning::Sync), 0.0);
  QCOMPARE(facts.kernels_per_step, 2.0);
  const auto evidence = evidence_of(run, prof::Meaning::Matrix);
  QVERIFY(evidence);
  QCOMPARE(run.trace.name(evidence->span.name), std::string("gemm"));
  QVERIFY(evidence->step.start <= evidence->span.start && evidence->span.end() <= evidence->step.end());
  QVERIFY(evidence->step.duration <= uint64_t(truth.step_ns()));
}

void InsightsTest::cardsShowWhatWasFound() {
  auto window = open();
  Run* run = naive_run(window.get());
  window->workspace()->library()->adopt(run);
  window->workspace()->library()->setTicked(run, true);
  auto* tab = window->findChild<InsightsTab*>();
  QCOMPARE(tab->run(), run);
  QVERIFY(!tab->cards().empty());
  InsightCard* card = tab->cards().front();
  QCOMPARE(card->insight().rule, std::string("allocator stalls"));
  QVERIFY(std::abs(card->insight().predicted_us - 40) < 0.2);
  // No bare number: the saving has its noise and how far such predictions have been off.
  const QString headline = QString::fromStdString(card->insight().headline);
  QVERIFY2(headline.startsWith("remove all allocator calls: a step would take ") && headline.contains(" less ("), qPrintable(headline));
  const QList<QLabel*> words = card->findChildren<QLabel*>();
  for (const InsightCard* one : tab->cards())
    for (const QString& line : {QString("why"), QString("do"), QString("how sure")}) {
      const QList<QLabel*> labels = one->findChildren<QLabel*>();
      QVERIFY2(std::ranges::any_of(labels, [&](const QLabel* label) { return label->text() == line; }), qPrintable(line + " of " + QString::fromStdString(one->insight().headline)));
    }
  QVERIFY(std::ranges::any_of(words, [](const QLabel* one) { return one->text().contains(QString::fromUtf8("</span> → <span style=\"font-family:")) && one->text().contains("arena"); }));
  QVERIFY(std::ranges::any_of(words, [](const QLabel* one) { return one->text().startsWith(QString::fromUtf8("± ")); }));
  QVERIFY(tab->emptyText().isEmpty());
  QCOMPARE(card->applyButton()->isEnabled(), ws::device_info().cuda);  // the run needs a GPU
  run->spec.exec.device = ws::Device::Auto;  // a training on the CPU could not show what a GPU saves
  window->workspace()->library()->setTicked(run, false), window->workspace()->library()->setTicked(run, true);
  card = tab->cards().front();
  QCOMPARE(card->applyButton()->isEnabled(), ws::device_info().cuda);
  QVERIFY(ws::device_info().cuda || card->applyButton()->toolTip().contains("GPU"));
  const QList<QLabel*> on_page = tab->findChildren<QLabel*>();  // once, and not on each card
  QCOMPARE(std::ranges::count_if(on_page, [&](const QLabel* label) { return label->isVisibleTo(tab) && label->text().contains("this machine needs a GPU"); }), ws::device_info().cuda ? 0 : 1);
  QStringList notes;
  for (int i = 0; i < window->tabs()->count(); ++i) notes << window->tabs()->tabText(i);
  QVERIFY2(notes.contains("Suggestions  " + QString::number(tab->cards().size())), qPrintable(notes.join("|")));
  window->workspace()->library()->setTicked(run, false);
  QVERIFY(tab->cards().empty());
}

void InsightsTest::namesKeepTheirLetters() {
  for (const auto& [headline, shown] : {std::pair{"train.py:9 in main takes 40 %", "train.py:9 in main takes 40 %"},
                                        {"the step waits for data", "The step waits for data"}}) {
    Insight insight;
    insight.rule = "hot line", insight.headline = headline;
    const InsightCard card(RunFacts{}, insight, {});
    QCOMPARE(card.findChildren<QLabel*>().front()->text(), QString(shown).replace(" %", QStringLiteral("\u00a0%")));
  }
}

void InsightsTest::showJumpsToTheLongestCall() {
  auto window = open();
  Run* run = naive_run(window.get());
  window->workspace()->library()->adopt(run);
  window->workspace()->library()->setTicked(run, true);
  auto* tab = window->findChild<InsightsTab*>();
  window->tabs()->setCurrentIndex(3);
  tab->cards().front()->showButton()->click();
  QCOMPARE(window->tabs()->currentIndex(), 0);
  const auto* chosen = window->workspace()->focus()->get<SpanChoice>();
  QVERIFY(chosen);
  QCOMPARE(chosen->span.span_kind(), prof::SpanKind::Free);
  QVERIFY(!window->workspace()->cursor()->follow());
  const prof::TimeNs length = window->workspace()->cursor()->end() - window->workspace()->cursor()->begin();
  QVERIFY2(length < 1'000'000, qPrintable(QString::number(length)));  // a few steps, not the whole run
}

// Zero weights do not learn; the card offers Kaiming, trains it and says what came of it.
void InsightsTest::anAppliedChangeIsMeasured() {
  auto window = open();
  QVERIFY(window->workspace()->choices()->usePreset("mnist"));
  for (const auto& [key, value] :
       {std::pair{"data.limit", "2000"}, {"train.epochs", "2"}, {"exec.device", "cpu"}, {"model.init", "zeros"}})
    window->workspace()->choices()->set(key, value);
  QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
  window->topBar()->train()->click();
  QTRY_COMPARE_WITH_TIMEOUT(ended.count(), 1, 90'000);
  Run* base = window->workspace()->session()->run();
  auto* tab = window->findChild<InsightsTab*>();
  QCOMPARE(tab->run(), base);
  const auto found = std::find_if(tab->cards().begin(), tab->cards().end(),
                                  [](InsightCard* c) { return c->insight().rule == "zero weights"; });
  QVERIFY(found != tab->cards().end());
  QStringList on_page, of_file;
  for (const InsightCard* one : tab->cards()) on_page << QString::fromStdString(one->insight().headline);
  for (const Insight& insight : run_insights(newest_data(base->path.toStdString())).found) of_file << QString::fromStdString(insight.headline);
  QVERIFY2(on_page == of_file, qPrintable("window: " + on_page.join(" | ") + "\ncommand line: " + of_file.join(" | ")));
  QVERIFY((*found)->applyButton()->isEnabled());
  (*found)->applyButton()->click();
  Run* after = window->workspace()->session()->run();
  QVERIFY(after != base);
  QCOMPARE(after->spec.model.init, ws::Init::Kaiming);
  QCOMPARE(tab->run(), base);  // the cards stay with the run that they are about
  QTRY_COMPARE_WITH_TIMEOUT(ended.count(), 2, 90'000);
  const auto card = std::find_if(tab->cards().begin(), tab->cards().end(),
                                 [](InsightCard* c) { return c->insight().rule == "zero weights"; });
  QStringList shown;
  for (const InsightCard* c : tab->cards()) shown << QString::fromStdString(c->insight().rule);
  QVERIFY2(card != tab->cards().end(), qPrintable(shown.join(", ") + " of " + (tab->run() ? tab->run()->title : "none")));
  // A mean is laid beside a mean.
  const QString mean = "measured median " + time_axis_text(facts_of(judged_run(*after)).step_us);
  QVERIFY2((*card)->resultText().contains(mean), qPrintable((*card)->resultText() + " has no " + mean));
  for (int i = 0; i < window->tabs()->count(); ++i)
    if (window->tabs()->tabText(i).startsWith("Suggestions")) window->tabs()->setCurrentIndex(i);
  QVERIFY(tab->isVisible());
  if (qEnvironmentVariableIsSet("WARPSIGHT_TEST_PICTURES"))
    window->grab().save(qEnvironmentVariable("WARPSIGHT_TEST_PICTURES") + "/insights.png");
  QVERIFY(facts_of(judged_run(*after)).last_loss < 0.5 * facts_of(judged_run(*base)).last_loss);
}

void InsightsTest::importedTracesAreJudgedToo() {
  auto window = open();
  Run* run = naive_run(window.get());
  run->origin = RunOrigin::Imported;
  window->workspace()->library()->adopt(run);
  window->workspace()->library()->setTicked(run, true);
  auto* tab = window->findChild<InsightsTab*>();
  QVERIFY(!tab->cards().empty());
  for (InsightCard* card : tab->cards()) {
    QVERIFY(card->insight().change.empty() && !card->applyButton()->isVisible());  // its choices are not known
    QVERIFY2(card->insight().place, card->insight().rule.c_str());
    window->workspace()->focus()->clear();
    card->showButton()->click();
    const auto* chosen = window->workspace()->focus()->get<SpanChoice>();
    QVERIFY2(chosen && chosen->span.start == card->insight().place->span.start, card->insight().rule.c_str());
    QVERIFY(window->workspace()->cursor()->begin() <= chosen->span.start && chosen->span.end() <= window->workspace()->cursor()->end());
  }
}

void InsightsTest::smallSavingsStandLast() {
  auto window = open();
  auto* tab = window->findChild<InsightsTab*>();
  QSignalSpy counted(tab, &InsightsTab::counted);
  window->openFile(WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-slow-loader.wsrun");
  QTRY_VERIFY(tab->cards().size() == 2 && tab->cards()[0]->insight().saves_us.known());
  QVERIFY(!tab->cards()[0]->insight().changes_little && tab->cards()[1]->insight().changes_little);
  QCOMPARE(counted.back().front().toInt(), 1);
  SectionTitle* row = tab->smallRow();
  QCOMPARE(row->text(), QString("1 more would change little now"));
  QVERIFY(!row->isHidden() && !tab->cards()[0]->isHidden() && tab->cards()[1]->isHidden());
  row->click();
  QVERIFY(!tab->cards()[1]->isHidden());
  const QWidget* list = tab->cards()[0]->parentWidget();
  const auto place = [list](QWidget* part) { return list->layout()->indexOf(part); };
  QVERIFY(place(tab->cards()[0]) < place(row) && place(row) < place(tab->cards()[1]));
  row->click();
  QVERIFY(tab->cards()[1]->isHidden());
}

// One key for all cards, with the names of the timeline.
void InsightsTest::theColoursOfTheBarsHaveNames() {
  auto window = open();
  auto* tab = window->findChild<InsightsTab*>();
  QVERIFY(tab->colours()->isHidden());
  window->openFile(WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-slow-loader.wsrun");
  QTRY_VERIFY(!tab->cards().empty() && tab->cards()[0]->insight().saves_us.known());
  QVERIFY(!tab->colours()->isHidden());
  const QStringList names = tab->colours()->names();
  for (const char* name : {"matrix product", "waits for data", "idle, launch gaps"}) QVERIFY2(names.contains(name), qPrintable(names.join(", ")));
  QVERIFY2(!names.contains("launch calls") && !names.contains("communication"), qPrintable(names.join(", ")));
}

void InsightsTest::aLateRankIsACardThatShowsItsStep() {
  auto window = open();
  Run* run = ws::test::made_rank_run(4, 60, 400).release();
  run->slot = -1, run->created = QDateTime::currentDateTime();
  window->workspace()->library()->adopt(run);
  window->workspace()->library()->setTicked(run, true);
  auto* tab = window->findChild<InsightsTab*>();
  const auto late = [&]() -> InsightCard* {
    const auto& cards = tab->cards();
    const auto at = std::ranges::find(cards, std::string("late rank"), [](const InsightCard* card) { return card->insight().rule; });
    return at == cards.end() ? nullptr : *at;
  };
  QTRY_VERIFY2(late(), "the ranks are compared on another thread");
  QVERIFY(QString::fromStdString(late()->insight().headline).endsWith(": saving unknown without a replay"));
  QVERIFY(QString::fromStdString(late()->insight().why).startsWith("Rank 1 makes all ranks lose "));
  QVERIFY(tab->cards().front()->insight().part_us >= late()->insight().part_us);  // the greatest cost first
  late()->showButton()->click();
  QCOMPARE(window->tabs()->currentIndex(), 0);
  const auto* chosen = window->workspace()->focus()->get<SpanChoice>();
  QVERIFY(chosen && chosen->run == run);
  QCOMPARE((chosen->span.step - 1) % 5, 4u);  // the step in which the rank is late
}

void InsightsTest::gridPutsTheLongestAxisAcross() {
  ExperimentResult result;
  result.spec = load_experiment(write("iris-small.json", kExperiment).toStdString());
  for (const Trial& trial : trials_of(result.spec, false)) {
    result.trials.push_back({trial, {}});
    TrialRun run;
    run.us_per_step = trial.index + 1;
    result.trials.back().runs = {run};
  }
  const OutcomeGrid grid = grid_of(result);
  QCOMPARE(grid.items, QStringList({"8", "16", "32"}));
  QCOMPARE(grid.groups, QStringList({"kaiming", "zeros"}));
  QCOMPARE(grid.numbers, std::vector<double>({8, 16, 32}));
  QCOMPARE(result.trials[size_t(grid.at(1, 2))].trial.label, std::string("zeros · 32"));
  QCOMPARE(measured(result.trials[size_t(grid.at(1, 2))], Outcome::StepTime)->median, 6.0);
}

void InsightsTest::experimentRunsInTheWindow() {
  auto window = open();
  auto* tab = window->findChild<ExperimentsTab*>();
  window->openFile(write("iris-small.json", kExperiment));
  QVERIFY(tab->isVisible());
  QCOMPARE(tab->table()->rowCount(), 6);
  QCOMPARE(tab->repeats()->value(), 2);
  tab->repeats()->setValue(1);
  QSignalSpy said(tab, &ExperimentsTab::said);
  tab->runButton()->click();
  QVERIFY(tab->running());
  QCOMPARE(tab->runButton()->text(), QString("Stop"));
  QTRY_VERIFY(!tab->running());
  QVERIFY2(said.isEmpty(), qPrintable(said.value(0).value(0).toString()));
  QVERIFY(tab->result().complete);
  for (const TrialResult& trial : tab->result().trials) {
    QCOMPARE(trial.runs.size(), size_t(1));
    QVERIFY(measured(trial, Outcome::StepTime)->median > 0);
  }
  QCOMPARE(tab->runButton()->text(), QString("Run again"));
  QVERIFY(tab->chart()->allows(ExperimentView::HeatMap));
  for (ExperimentView view : {ExperimentView::Bars, ExperimentView::HeatMap, ExperimentView::Lines}) {
    tab->chart()->setView(view);
    const QImage picture = tab->chart()->grab().toImage();
    QVERIFY(!picture.isNull());
    if (qEnvironmentVariableIsSet("WARPSIGHT_TEST_PICTURES"))
      window->grab().save(qEnvironmentVariable("WARPSIGHT_TEST_PICTURES") +
                          QString("/experiments-%1.png").arg(int(view)));
  }
  const QString csv = home_.path() + "/table.csv";
  QVERIFY(tab->exportTo(csv));
  QFile file(csv);
  QVERIFY(file.open(QIODevice::ReadOnly));
  QCOMPARE(file.readAll().count('\n'), 7);
  QVERIFY(tab->exportTo(home_.path() + "/chart.svg"));
  QVERIFY(!tab->exportTo("/nowhere/table.csv"));
}

void InsightsTest::experimentGoesOnAfterAStop() {
  auto window = open();
  auto* tab = begin(*window, "iris-stopped.json", 60);
  const auto done = [&] {
    size_t all = 0;
    for (const TrialResult& t : tab->result().trials) all += t.runs.size();
    return all;
  };
  QTRY_VERIFY(done() >= 2);
  tab->runButton()->click();
  QTRY_VERIFY(!tab->running());
  const size_t kept = done();
  QVERIFY(kept >= 2 && kept < 12);
  QCOMPARE(tab->runButton()->text(), QString("Go on"));
  tab->runButton()->click();
  QTRY_VERIFY_WITH_TIMEOUT(!tab->running(), 120'000);
  QCOMPARE(done(), size_t(12));
  for (const TrialResult& t : tab->result().trials) QCOMPARE(t.runs.size(), size_t(2));
}

void InsightsTest::noRunStartsBesideAnExperiment() {
  auto window = open();
  auto* tab = begin(*window, "iris-long.json", 100'000);
  QVERIFY(tab->running());
  ws::RunSpec spec = ws::load_spec("iris");
  spec.exec.device = ws::Device::Cpu;
  QVERIFY(!window->workspace()->session()->start({spec, {}, prof::TraceLevel::Steps, false}));
  QVERIFY(window->workspace()->session()->problem().contains("experiment"));
  tab->stop();
  QTRY_VERIFY(!tab->running());
  spec.train.epochs = 1;
  QVERIFY(window->workspace()->session()->start({spec, {}, prof::TraceLevel::Steps, false}));
}

void InsightsTest::closingAsksWhetherTheExperimentStops() {
  auto window = open();
  auto* tab = begin(*window, "iris-closed.json", 100'000);
  QVERIFY(tab->running());
  QString asked;
  answer("Let it run", &asked);
  QVERIFY(!window->close());
  QVERIFY2(asked.contains("experiment"), qPrintable(asked));
  QVERIFY(tab->running() && window->isVisible());
  answer("Stop and close");
  QVERIFY(!window->close());
  QTRY_VERIFY(!window->isVisible());
  QVERIFY(!tab->running() && !window->leftBehind());
}

void InsightsTest::shippedExperimentsAreListed() {
  auto window = open();
  auto* tab = window->findChild<ExperimentsTab*>();
  QVERIFY(show_tab(*window, "Combinations"));
  QVERIFY(tab->isVisible());
  size_t listed = 0;
  for (int row = 0; row < tab->list()->count(); ++row) {
    if (!(tab->list()->item(row)->flags() & Qt::ItemIsSelectable)) continue;  // a heading
    ++listed;
    tab->list()->setCurrentRow(row);
    QVERIFY(tab->table()->rowCount() > 1);
  }
  QVERIFY(listed >= 4);
  if (ws::device_info().cuda) QCOMPARE(listed, shipped_experiments().size());  // without a GPU some show nothing
}

WARPSIGHT_QTEST(InsightsTest)
#include "insights_test.moc"

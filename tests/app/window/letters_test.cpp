// Every letter of every tab can be read, in both themes, on small screens and large ones: nothing is clipped and nothing
// lies on anything else. One window serves all sizes. A second run of this program draws at twice the scale: 2560×1440
// and 3840×2160 screens. With WARPSIGHT_PICTURES=folder each state leaves a picture there.
#include <QFile>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include "app/pages/experiments/experiments_tab.h"
#include "app/pages/lab/lab_tab.h"
#include "app/pages/live/live_page.h"
#include "app/pages/multiprocessors/multiprocessors_panel.h"
#include "app/pages/ranks/ranks_panel.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/made_inside_run.h"
#include "tests/app/support/made_ranks.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

class LettersTest : public QObject, FilledWindow {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void everyTabAtEverySize();

 private:
  void fillEveryPage(MainWindow& window);
  static Run* digits(MainWindow& window);
  static void waitForDigits(MainWindow& window);
  static Run* adopt(MainWindow& window, std::unique_ptr<Run> made);
  static void measure(ExperimentsTab& tab, const QString& file);
  std::vector<Run*> runsOf(const QString& tab) const;
  Run *own_ = nullptr, *digits_ = nullptr, *ranks_ = nullptr, *inside_ = nullptr;
};

Run* LettersTest::adopt(MainWindow& window, std::unique_ptr<Run> made) {
  Run* run = made.release();
  run->slot = -1, run->created = QDateTime::currentDateTime(), run->loaded = true;
  window.workspace()->library()->adopt(run);
  return run;
}

// A network whose first layer and misread digits are drawn.
Run* LettersTest::digits(MainWindow& window) {
  QSignalSpy ended(window.workspace()->session(), &TrainingSession::ended);
  for (const auto& [key, value] : {std::pair{"data.name", "mnist"}, {"data.limit", "640"}, {"train.epochs", "1"}, {"model.hidden", "32"}})
    window.workspace()->choices()->set(key, value);
  window.train();
  (void)QTest::qWaitFor([&] { return !ended.isEmpty(); }, 60'000);
  Run* run = window.workspace()->session()->run();
  window.workspace()->library()->setTicked(run, false);
  return run;
}

// The weights are read in the background.
void LettersTest::waitForDigits(MainWindow& window) {
  const LearnedView* misread = window.findChild<LivePage*>()->network()->views()[2];
  QTRY_VERIFY(misread->isVisible() && misread->hasContent());
}

// The runs that a page is looked at with, one after the other.
std::vector<Run*> LettersTest::runsOf(const QString& tab) const {
  if (tab == "Ranks") return {ranks_};
  if (tab == "Multiprocessors") return {inside_};
  if (tab == "Overview") return {own_, digits_};
  return {own_};
}

// Stacks for the flame graph, digits, ranks, multiprocessors, a sweep for the laboratory, and the result of an experiment.
void LettersTest::fillEveryPage(MainWindow& window) {
  fill(window, {"direct"});
  train(window, "arena");
  Run* run = window.workspace()->shownRun();
  QVERIFY(run);
  ws::prof::Trace& trace = run->trace;
  const auto row = trace.track(ws::prof::TrackKind::Samples, "samples of MainThread", "CPU");
  for (const auto& [share, stack] : {std::pair{3, "hot (train.py:3) < main (train.py:9)"},
                                     {1, "read_a_file_with_a_long_name (io.py:7) < main (train.py:11)"}}) {
    ws::prof::Span span;
    span.start = trace.first_time() + (share - 1) * 1'000'000, span.duration = static_cast<uint64_t>(share) * 1'000'000;
    span.kind = static_cast<uint64_t>(ws::prof::SpanKind::Other), span.name = trace.intern(stack);
    trace.append(row, span);
  }
  window.workspace()->library()->setTicked(run, true);
  QVERIFY(window.findChild<LabTab*>()->openResult(WARPSIGHT_SOURCE_DIR "/resources/lab/measured/matmul-where-the-gpu-wins.json"));
  own_ = run;
  digits_ = digits(window);
  QVERIFY(digits_ && digits_->summary);
  ranks_ = adopt(window, ws::test::made_rank_run(8));
  inside_ = adopt(window, ws::test::made_inside_run());
  measure(*window.findChild<ExperimentsTab*>(), home_.path() + "/small.json");
}

void LettersTest::measure(ExperimentsTab& tab, const QString& path) {
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(R"({"title": "Fused steps of small batches", "text": "Why.", "expect": "Fused steps are faster.", "repeats": 2,
    "spec": {"data": {"name": "iris"}, "model": {"hidden": [5]}, "train": {"epochs": 3}, "exec": {"device": "cpu"}},
    "axes": {"exec.fusion": ["off", "epilogue"], "train.batch": [16, 64]}})");
  file.close();
  QVERIFY(tab.open(path));
  tab.run();
  QTRY_VERIFY(!tab.running() && tab.result().complete);
}

void LettersTest::everyTabAtEverySize() {
  const bool twice = qEnvironmentVariableIntValue("QT_SCALE_FACTOR") == 2;
  const std::vector<QSize> screens = twice ? std::vector{QSize(2560, 1440) / 2, QSize(3840, 2160) / 2}
                                           : std::vector{QSize(1366, 768), QSize(1600, 972), QSize(1920, 1080)};
  auto window = open();
  QCOMPARE(window->devicePixelRatioF(), twice ? 2.0 : 1.0);
  fillEveryPage(*window);
  QStringList wrong;
  size_t letters = 0, states = 0;  // that they are looked at is seen from their number
  QElapsedTimer clock;
  clock.start();
  for (const QSize screen : screens) {
    window->resize(screen);
    settle(60);
    for (int theme_turn = 0; theme_turn < 2; ++theme_turn, window->toggleTheme())
      for (int tab = 0; tab < window->tabs()->count(); ++tab)
        for (Run* run : runsOf(window->tabs()->tabText(tab))) {
          for (Run* other : {digits_, ranks_, inside_}) window->workspace()->library()->setTicked(other, other == run);
          window->workspace()->pick(run);
          window->tabs()->setCurrentIndex(tab);
          if (run == digits_) waitForDigits(*window);
          if (run == inside_) QTRY_VERIFY(window->findChild<MultiprocessorsPanel*>()->parts()->model()->rowCount() > 0);
          if (run == ranks_) QTRY_VERIFY(window->findChild<RanksPanel*>()->ranks()->model()->rowCount() > 0);
          settle(20);
          QVERIFY2(window->tabs()->currentIndex() == tab, qPrintable(window->tabs()->tabText(tab)));
          for (QWidget* w : window->findChildren<QWidget*>())
            if (theme_turn == 0 && w->isVisible() && ws::test::paints_letters(*w))
              letters += painted_texts(*w).size();
          const QString of = run == digits_ ? " digits" : "";
          const QString state = QString("%1%2 %3 %4").arg(window->tabs()->tabText(tab), of).arg(screen.width()).arg(theme().dark() ? "dark" : "light");
          const auto found = [&] {
            QStringList cut;
            check(*window, state, cut);
            return cut;
          };
          (void)QTest::qWaitFor([&] { return found().isEmpty(); }, 3000);  // a busy machine lays out late
          wrong << found();
          ++states;
        }
  }
  qInfo("%zu states, %zu painted texts, %lld ms", states, letters, clock.elapsed());
  QCOMPARE(states, screens.size() * 2 * static_cast<size_t>(window->tabs()->count() + 1));
  QVERIFY2(letters > 300 * screens.size(), qPrintable(QString::number(letters)));
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

WARPSIGHT_QTEST(LettersTest)
#include "letters_test.moc"

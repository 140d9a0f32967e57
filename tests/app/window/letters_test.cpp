// Every letter of every tab can be read, in both themes, on small screens and large ones: nothing is clipped and nothing
// lies on anything else. One window serves all sizes. A second run of this program draws at twice the scale: 2560×1440
// and 3840×2160 screens. With WARPSCOPE_PICTURES=folder each state leaves a picture there.
#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include "app/pages/experiments/experiments_tab.h"
#include "app/pages/lab/lab_tab.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/made_ranks.h"

using namespace ws::app;

class LettersTest : public QObject, FilledWindow {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void everyTabAtEverySize();

 private:
  void fillEveryPage(MainWindow& window);
  static void measure(ExperimentsTab& tab, const QString& file);
  Run *own_ = nullptr, *ranks_ = nullptr;
};

// Stacks for the flame graph, ranks, a sweep for the laboratory, and the result of an experiment.
void LettersTest::fillEveryPage(MainWindow& window) {
  fill(window, {"direct"});
  train(window, "arena");
  Run* run = window.workspace()->shownRun();
  QVERIFY(run);
  ws::prof::Trace& trace = run->trace;
  const auto row = trace.track(ws::prof::TrackKind::Other, "samples of MainThread", "CPU");
  for (const auto& [share, stack] : {std::pair{3, "hot (train.py:3) < main (train.py:9)"},
                                     {1, "read_a_file_with_a_long_name (io.py:7) < main (train.py:11)"}}) {
    ws::prof::Span span;
    span.start = trace.first_time() + (share - 1) * 1'000'000, span.duration = static_cast<uint64_t>(share) * 1'000'000;
    span.kind = static_cast<uint64_t>(ws::prof::SpanKind::Other), span.name = trace.intern(stack);
    trace.append(row, span);
  }
  window.workspace()->library()->setTicked(run, true);
  const QString sweep = home_.path() + "/sweep.json";
  QFile results(WARPSCOPE_SOURCE_DIR "/tests/bench/results/lab_h200.json"), one(sweep);
  QVERIFY(results.open(QIODevice::ReadOnly) && one.open(QIODevice::WriteOnly));
  const auto presets = QJsonDocument::fromJson(results.readAll()).object()["presets"].toObject();
  one.write(QJsonDocument(presets["matmul-where-the-gpu-wins"].toObject()).toJson());
  one.close();
  QVERIFY(window.findChild<LabTab*>()->openResult(sweep));
  own_ = run;
  ranks_ = ws::test::made_rank_run(8).release();
  ranks_->slot = -1, ranks_->created = QDateTime::currentDateTime(), ranks_->loaded = true;
  window.workspace()->library()->adopt(ranks_);
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
  QTRY_VERIFY_WITH_TIMEOUT(!tab.running() && tab.result().complete, 60'000);
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
      for (int tab = 0; tab < window->tabs()->count(); ++tab, ++states) {
        window->tabs()->setCurrentIndex(tab);
        const bool ranks = window->tabs()->tabText(tab) == "Ranks";
        window->workspace()->library()->setTicked(ranks_, ranks);
        window->workspace()->pick(ranks ? ranks_ : own_);
        settle(20);
        for (QWidget* w : window->findChildren<QWidget*>())
          if (theme_turn == 0 && w->isVisible() && ws::test::paints_letters(*w))
            letters += painted_texts(*w).size();
        check(*window,
              QString("%1 %2 %3").arg(window->tabs()->tabText(tab)).arg(screen.width()).arg(theme().dark() ? "dark" : "light"),
              wrong);
      }
  }
  qInfo("%zu states, %zu painted texts, %lld ms", states, letters, clock.elapsed());
  QCOMPARE(states, screens.size() * 2 * static_cast<size_t>(window->tabs()->count()));
  QVERIFY2(letters > 300 * screens.size(), qPrintable(QString::number(letters)));
  QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

QTEST_MAIN(LettersTest)
#include "letters_test.moc"

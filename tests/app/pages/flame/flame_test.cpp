// The flame graph of a recorded program: what is as wide as its time, zoomed, found, and what the timeline's selection does to it.
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>

#include "app/charts/flame_view.h"
#include "app/pages/flame/flame_panel.h"
#include "app/widgets/theme.h"
#include "profiling/trace/code_places.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;

namespace {

void sample(prof::Trace& trace, prof::TimeNs begin, prof::TimeNs end, const char* stack, const char* row = "samples of MainThread") {
  prof::Span span;
  span.start = begin, span.duration = static_cast<uint64_t>(end - begin);
  span.kind = static_cast<uint64_t>(prof::SpanKind::Other), span.name = trace.intern(stack);
  trace.append(trace.track(prof::TrackKind::Samples, row, "CPU"), span);
}

struct ShownFlames {
  ShownFlames() {
    run.title = "train.py", run.origin = RunOrigin::Imported;
    sample(run.trace, 0, 3000, "hot (train.py:3) < main (train.py:9)");
    sample(run.trace, 3000, 4000, "read (io.py:7) < main (train.py:11)");
    panel.resize(900, 400);
    panel.setRun(&run);
    panel.show();
    QCoreApplication::processEvents();
  }
  uint32_t node(const std::string& function) const {
    for (uint32_t i = 0; i < panel.view()->tree().size(); ++i)
      if (panel.view()->tree()[i].function == function) return i;
    return 0;
  }
  QRectF place(const std::string& function) const { return panel.view()->placeOf(node(function)); }
  Run run;
  Focus focus;
  FlamePanel panel{&focus};
};

}  // namespace

class FlameTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void functionsAreAsWideAsTheirTime();
  void aClickZoomsAndEscapeGoesBack();
  void aSearchReportsHowMuchItFound();
  void theSelectionOfTheTimelineIsShown();
  void whatIsExportedIsWhatIsShown();
  void kernelsStandInTheStackThatLaunchedThem();
  void theStepsAreShownBeforeTheStartOfTheProgram();
  void threadsThatWaitAreNotShownButCounted();
  void theLegendNamesTheColours();
  void framesSayTheirShare();
  void theInterpreterIsQuiet();
  void librariesFoldUntilTheyAreWanted();
};

void FlameTest::threadsThatWaitAreNotShownButCounted() {
  ShownFlames shown;
  QVERIFY2(!shown.panel.choice()->isVisible(), "there is nothing to choose");
  QCOMPARE(shown.panel.headline(), QString("hot takes 75 % of the host's time (few samples)"));
  sample(shown.run.trace, 0, 3500, "wait (/usr/lib/python3.10/threading.py:320) < feed (data.py:3)", "samples of feeder");
  sample(shown.run.trace, 3500, 4000, "pickle (data.py:8) < feed (data.py:4)", "samples of feeder");
  shown.panel.setRun(&shown.run);
  QCOMPARE(shown.panel.view()->tree().at(0).ns, 4500.0);
  QVERIFY(shown.node("wait") == 0 && shown.node("pickle") != 0);
  QVERIFY2(shown.panel.note().startsWith("4.5 µs of 2 threads together, sampled "), qPrintable(shown.panel.note()));
  QVERIFY2(shown.panel.note().endsWith(" · hidden: 1 waiting thread, 3.5 µs"), qPrintable(shown.panel.note()));
  QVERIFY(shown.panel.choice()->isVisible());
  QMenu* menu = shown.panel.choice()->menu();
  emit menu->aboutToShow();
  QCOMPARE(menu->actions().last()->text(), QString("Waiting threads"));
  menu->actions().last()->trigger();
  QCOMPARE(shown.panel.view()->tree().at(0).ns, 8000.0);
  QCOMPARE(shown.panel.headline(), QString("hot takes 75 % of the main thread's time (few samples)"));
  shown.panel.libraries()->setChecked(true);
  QVERIFY(shown.node("wait") != 0);
  QVERIFY2(shown.panel.note().endsWith(" · with 1 waiting thread, 3.5 µs"), qPrintable(shown.panel.note()));
}

void FlameTest::functionsAreAsWideAsTheirTime() {
  ShownFlames shown;
  const QRectF main = shown.place("main"), hot = shown.place("hot"), read = shown.place("read");
  QVERIFY(std::abs(hot.width() - 0.75 * main.width()) < 1);
  QVERIFY(std::abs(hot.width() + read.width() - main.width()) < 1);
  QVERIFY(hot.top() > main.top());
  QVERIFY(!hot.intersects(read));
}

void FlameTest::theLegendNamesTheColours() {
  ShownFlames shown;
  sample(shown.run.trace, 4000, 5000, "? (/usr/lib/libtorch_cpu.so) < main (train.py:9)");
  shown.panel.libraries()->setChecked(true);
  shown.panel.setRun(&shown.run);
  const auto legend = shown.panel.view()->legend();
  QCOMPARE(legend.size(), size_t(2));
  QCOMPARE(legend[0].text, QString("your files"));
  QCOMPARE(legend[0].colour, shown.panel.view()->colourOf(shown.node("hot")));
  QCOMPARE(legend[1].text, QString("libraries, interpreter"));
  QVERIFY(legend[0].colour.isValid() && legend[0].colour != legend[1].colour);
  QVERIFY2(shown.panel.view()->labelOf(shown.node("?")).startsWith("unknown"), "no name is known for it");
  QVERIFY2(shown.place("hot").top() > 20, "the blocks stand below it");
}

void FlameTest::framesSayTheirShare() {
  ShownFlames shown;
  const FlameView* view = shown.panel.view();
  QCOMPARE(view->labelOf(shown.node("hot")), QString("hot  75.0 %  3.0 µs"));
  QVERIFY(view->labelOf(0).endsWith("100.0 %  4.0 µs"));
  shown.panel.resize(360, 400);  // the time goes first, then the share, and the name last
  QCoreApplication::processEvents();
  QCOMPARE(view->labelOf(shown.node("read")), QString("read  25.0 %"));
}

void FlameTest::theInterpreterIsQuiet() {
  ShownFlames shown;
  sample(shown.run.trace, 4000, 6000, "_start (/usr/bin/python3.12)");
  shown.panel.libraries()->setChecked(true);
  shown.panel.setRun(&shown.run);
  const FlameView* view = shown.panel.view();
  QVERIFY(shown.node("_start") != 0);
  QCOMPARE(view->colourOf(shown.node("_start")), view->colourOf(0));
  QVERIFY(view->colourOf(shown.node("hot")) != view->colourOf(0));
}

void FlameTest::librariesFoldUntilTheyAreWanted() {
  ShownFlames shown;
  QVERIFY2(shown.panel.libraries()->isHidden(), "there are none");
  sample(shown.run.trace, 4000, 6000, "forward (net.py:3) < _call_impl (/usr/lib/python3/dist-packages/torch/nn/modules/module.py:1501) < main (train.py:9)");
  sample(shown.run.trace, 6000, 7000, "conv2d (/usr/lib/python3/dist-packages/torch/nn/modules/conv.py:9) < forward (net.py:3) < _call_impl (/usr/lib/python3/dist-packages/torch/nn/modules/module.py:1501) < main (train.py:9)");
  shown.panel.setRun(&shown.run);
  QVERIFY(!shown.panel.libraries()->isHidden());
  const auto& tree = shown.panel.view()->tree();
  QCOMPARE(shown.node("_call_impl"), 0u);
  QCOMPARE(tree[tree[shown.node("forward")].parent].function, std::string("main"));
  QCOMPARE(tree[tree[shown.node("conv2d")].parent].function, std::string("forward"));
  auto* search = shown.panel.findChild<QLineEdit*>();
  search->setText("_call_impl");
  QVERIFY2(shown.panel.view()->matched() > 0.1, "a search finds folded functions");
  search->clear();
  QCOMPARE(shown.node("_call_impl"), 0u);
  shown.panel.libraries()->click();
  QVERIFY(shown.node("_call_impl") != 0);
  QCOMPARE(tree.at(0).ns, 7000.0);
}

void FlameTest::aClickZoomsAndEscapeGoesBack() {
  ShownFlames shown;
  FlameView* view = shown.panel.view();
  const double whole = shown.place("main").width();
  QTest::mouseClick(view, Qt::LeftButton, {}, shown.place("read").center().toPoint());
  QCOMPARE(view->zoomed(), shown.node("read"));
  QVERIFY(std::abs(shown.place("read").width() - whole) < 1);
  QVERIFY(shown.place("hot").isEmpty());
  QTest::keyClick(view, Qt::Key_Escape);
  QCOMPARE(view->zoomed(), shown.node("main"));
  QVERIFY(!shown.place("hot").isEmpty());
}

void FlameTest::aSearchReportsHowMuchItFound() {
  ShownFlames shown;
  shown.panel.findChild<QLineEdit*>()->setText("io.py");
  QVERIFY(std::abs(shown.panel.view()->matched() - 0.25) < 1e-9);
  shown.panel.findChild<QLineEdit*>()->setText("nothing of the kind");
  QCOMPARE(shown.panel.view()->matched(), 0.0);
}

void FlameTest::theSelectionOfTheTimelineIsShown() {
  ShownFlames shown;
  shown.focus.chooseRanges({{&shown.run, {2000, 3500}}});
  QTRY_COMPARE(shown.panel.view()->tree().at(0).ns, 1500.0);
  QVERIFY(shown.panel.note().contains("selected range"));
  shown.focus.clear();
  QTRY_COMPARE(shown.panel.view()->tree().at(0).ns, 4000.0);
}

void FlameTest::whatIsExportedIsWhatIsShown() {
  ShownFlames shown;
  QTemporaryDir folder;
  shown.panel.exportTo(folder.filePath("a.collapsed"));
  QFile file(folder.filePath("a.collapsed"));
  QVERIFY(file.open(QIODevice::ReadOnly));
  QCOMPARE(file.readAll(), QByteArray("MainThread;main (train.py:11);read (io.py:7) 1\nMainThread;main (train.py:9);hot (train.py:3) 3\n"));
  QVERIFY_THROWS_EXCEPTION(Failure, shown.panel.exportTo(folder.filePath("no/a.json")));
}

void FlameTest::kernelsStandInTheStackThatLaunchedThem() {
  ShownFlames shown;
  const auto* mode = shown.panel.findChild<QPushButton*>("flame time");
  QVERIFY2(!mode->isVisible(), "there is nothing to choose");
  shown.run.trace.ops.push_back({"aten::mm", "", "fc", "forward", prof::Meaning::Matrix, 0, 0, prof::stack_from_text("net.py:3 in forward < train.py:9 in main")});
  shown.run.trace.ops.push_back({"aten::add", "", "", "forward", prof::Meaning::Pointwise, 0, 0, prof::stack_from_text("train.py:10 in main < train.py:20 in <module>")});
  for (int i = 0; i < 2; ++i) {
    prof::Span span;
    span.start = 1000 + i * 3000, span.duration = i == 0 ? 2000 : 1000, span.op = static_cast<prof::OpTag>(1 + i);
    span.kind = static_cast<uint64_t>(prof::SpanKind::Kernel), span.name = shown.run.trace.intern("gemm");
    shown.run.trace.append(shown.run.trace.track(prof::TrackKind::Stream, "stream 7", "GPU 0"), span);
  }
  shown.panel.setTime(FlameTime::Launched);
  QVERIFY(mode->isVisible());
  QCOMPARE(mode->text(), QString("Kernels by launching stack"));
  QCOMPARE(shown.panel.view()->tree().at(0).ns, 3000.0);
  const double forward = shown.place("forward").width(), other = shown.place("<module>").width();
  QVERIFY2(std::abs(forward - 2 * other) < 2, qPrintable(QString("%1 and %2").arg(forward).arg(other)));
  QVERIFY(shown.node("aten::mm") != 0 && shown.node("gemm") != 0);
  QVERIFY(shown.panel.note().contains("of kernels"));
  shown.focus.chooseRanges({{&shown.run, {3500, 5000}}});
  QTRY_COMPARE(shown.panel.view()->tree().at(0).ns, 1000.0);
  const QByteArray folder = qgetenv("WARPSIGHT_PICTURES");
  if (!folder.isEmpty()) shown.panel.grab().save(QString::fromLocal8Bit(folder) + "/flame-launched.png");
}

void FlameTest::theStepsAreShownBeforeTheStartOfTheProgram() {
  ShownFlames shown;
  QVERIFY(shown.panel.note().contains("in the whole run"));
  prof::Span step;
  step.start = 3000, step.duration = 1000, step.kind = static_cast<uint64_t>(prof::SpanKind::Step);
  shown.run.trace.append(shown.run.trace.track(prof::TrackKind::Steps, "steps", "CPU"), step);
  shown.panel.setRun(&shown.run);
  QVERIFY(shown.panel.note().contains("in the steps"));
  QCOMPARE(shown.panel.view()->tree().at(0).ns, 1000.0);
  shown.panel.setTime(FlameTime::Host);
  QCOMPARE(shown.panel.view()->tree().at(0).ns, 4000.0);
}

WARPSIGHT_QTEST(FlameTest)
#include "flame_test.moc"

// The critical path on the timeline: which spans are dimmed, what their cards say, and the edits that a span offers.
#include <QAbstractButton>
#include <QContextMenuEvent>
#include <QMenu>
#include <QTest>

#include "app/pages/what_if/what_if_panel.h"
#include "app/timeline/timeline_pane.h"
#include "app/workspace/compared_live_run.h"
#include "profiling/causes/critical_path.h"
#include "tests/app/support/filled_window.h"
#include "tests/app/support/painted_text.h"
#include "tests/app/support/two_runs.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/machine.h"

using namespace ws;
using namespace ws::app;

class CriticalPathsTest : public QObject, FilledWindow {
  Q_OBJECT
 private:
  static QAbstractButton* switchOf(TimelinePane& pane) {
    for (auto* button : pane.findChildren<QAbstractButton*>())
      if (button->text() == "Critical path") return button;
    return nullptr;
  }
  static Run* openRecorded(MainWindow& window, const QString& name) {
    window.openFile(QString(WARPSIGHT_SOURCE_DIR "/resources/recorded/%1.wsrun").arg(name));
    Workspace& workspace = *window.workspace();
    const auto shown = [&] { return workspace.shownRun() && workspace.shownRun()->path.contains(name) && workspace.shownRun()->loaded; };
    return QTest::qWaitFor(shown, 60'000) ? workspace.shownRun() : nullptr;
  }
  struct Block {
    size_t track;
    prof::Span span;
    QPoint pixel;  // of its fill, beside its label
  };
  // Single spans of all lanes that are wide enough to have a fill.
  static std::vector<Block> blocksIn(TimelinePane& pane) {
    std::vector<Block> found;
    TimelineView& view = *pane.view();
    const TimelineGeometry& g = view.timelineGeometry();
    for (const Lane& lane : pane.model()->lanes()) {
      if (lane.kind != LaneKind::Spans || lane.gpu_steps || lane.height < 12 || g.laneY(lane) < g.top() || lane.bottom() - g.scroll > g.plot().height()) continue;
      for (const size_t track : lane.tracks) {
        const RowInLane row = row_in(lane, track);
        const int top = static_cast<int>(std::round(g.laneY(lane) + row.top)) + TimelinePainter::inset(lane) + 1, middle = static_cast<int>(g.laneY(lane) + row.top + row.height / 2);
        for (int x = g.gutter; x < view.width(); ++x) {
          const auto hit = view.hitAt({x, middle});
          const int left = hit ? static_cast<int>(std::floor(static_cast<float>(g.gutter) + hit->rect.x0)) + 1 : 0;
          if (!hit || hit->track != track || hit->rect.count > 1 || hit->rect.x1 - hit->rect.x0 < 4 || left <= g.gutter + 1) continue;
          if (found.empty() || found.back().track != track || found.back().span.start != hit->rect.span.start) found.push_back({track, hit->rect.span, {left + 1, top}});
        }
      }
    }
    return found;
  }
  static constexpr int kScrolls[] = {0, 200, 400, 10'000};  // of a low window
  static QImage picture(TimelinePane& pane, int scroll) {
    pane.view()->viewport()->setScroll(scroll);
    return pane.view()->grab().toImage();
  }
  using RowAndEnd = std::pair<uint32_t, prof::TimeNs>;  // of a span
  static std::map<RowAndEnd, int64_t> pathOf(const Run& run, TimeRange steps) {
    const prof::CauseGraph graph = prof::cause_graph(run.trace, steps, prof::usual_gap_ns(causes_facts(run)));
    const prof::Timing timing = prof::measured_timing(graph);
    const prof::CriticalPath path = prof::critical_path(graph, timing, prof::replay(graph, timing));
    std::map<RowAndEnd, int64_t> on_path;
    for (size_t node = 0; node < graph.nodes.size(); ++node) on_path[{graph.nodes[node].track, graph.nodes[node].end()}] += path.node_ns[node];
    return on_path;
  }

 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void spansOffThePathAreDimmed_data();
  void spansOffThePathAreDimmed();
  void theSwitchShowsWhyThereIsNoPath();
  void aMillionSpansDoNotBlockTheWindow();
  void aCardHasTheTimeOnThePathOrTheSlack();
  void aSpanAsksWhatIf();
};

void CriticalPathsTest::spansOffThePathAreDimmed_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<QSize>("size");
  QTest::addColumn<bool>("light");
  for (const char* name : {"mnist-direct", "pytorch-gpt-2-ranks"})
    for (const bool light : {false, true})
      QTest::newRow(qPrintable(QString("%1 %2").arg(name, light ? "light" : "dark"))) << QString(name) << (light ? QSize(1366, 768) : QSize(1600, 972)) << light;
}

// Spans with time on the path of profiling/causes keep their colour.
void CriticalPathsTest::spansOffThePathAreDimmed() {
  QFETCH(QString, name);
  QFETCH(QSize, size);
  QFETCH(bool, light);
  set_theme(*qApp, light ? ThemeName::Light : ThemeName::Dark);
  auto window = open();
  window->resize(size);
  Run* run = openRecorded(*window, name);
  QVERIFY(run);
  QVERIFY(show_tab(*window, "Overview"));
  settle();
  auto* pane = window->findChild<TimelinePane*>();
  const TimeRange view = pane->model()->range();
  pane->model()->cursor()->setRange(view.begin + view.length() / 2, view.begin + view.length() * 7 / 10);
  QVERIFY(switchOf(*pane) && switchOf(*pane)->isEnabled() && !switchOf(*pane)->isChecked());
  std::vector<QImage> before;
  for (const int scroll : kScrolls) before.push_back(picture(*pane, scroll));
  QTest::mouseClick(switchOf(*pane), Qt::LeftButton);
  QTRY_VERIFY(pane->model()->paths()->of(run));
  const prof::SpanPath& shown = *pane->model()->paths()->of(run);
  QStringList wrong;
  check(*window, QString("critical path %1 %2").arg(name).arg(size.width()), wrong);
  const std::map<RowAndEnd, int64_t> on_path = pathOf(*run, shown.window());
  size_t bright = 0, dim = 0;
  std::set<int> ranks;
  for (size_t at = 0; at < before.size(); ++at) {
    const QImage after = picture(*pane, kScrolls[at]);
    for (const Block& block : blocksIn(*pane)) {
      const auto known = on_path.find({static_cast<uint32_t>(block.track), block.span.end()});
      const bool same = before[at].pixel(block.pixel) == after.pixel(block.pixel), is_call = prof::on_gpu(run->trace.tracks()[block.track]) || run->trace.tracks()[block.track].kind == prof::TrackKind::Api;
      if (!is_call || known == on_path.end()) continue;
      if (same != (known->second > 0)) wrong << QString::fromStdString(run->trace.name(block.span.name)) + (same ? " is bright" : " is dim");
      ++(same ? bright : dim);
      ranks.insert(run->trace.tracks()[block.track].rank);
    }
  }
  QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  QVERIFY2(bright > 3 && dim > 3, qPrintable(QString("%1 bright, %2 dim").arg(bright).arg(dim)));
  QCOMPARE(ranks.size(), name.contains("2-ranks") ? size_t{2} : size_t{1});
  QTest::mouseClick(switchOf(*pane), Qt::LeftButton);
  QVERIFY(!pane->model()->paths()->of(run));
  QCOMPARE(picture(*pane, 0), before[0]);
}

void CriticalPathsTest::theSwitchShowsWhyThereIsNoPath() {
  TwoRuns t;
  QVERIFY(switchOf(t.pane)->isEnabled());
  const QPoint place = switchOf(t.pane)->pos();
  Run marks;
  marks.id = "marks", marks.slot = 0, marks.summary = Summary{};
  prof::Span step;
  step.duration = 1000, step.kind = static_cast<uint64_t>(prof::SpanKind::Step), step.step = 1;
  marks.trace.append(marks.trace.track(prof::TrackKind::Steps, "steps", "CPU"), step);
  t.pane.setRuns({&marks});
  QVERIFY(!switchOf(t.pane)->isEnabled());
  QVERIFY2(switchOf(t.pane)->toolTip().contains("no calls, kernels or ops"), qPrintable(switchOf(t.pane)->toolTip()));
  QCOMPARE(switchOf(t.pane)->pos(), place);
  t.pane.setRuns({});
  QVERIFY(!switchOf(t.pane)->isEnabled());
}

// The window copies the spans around the view. The note says where the path ends.
void CriticalPathsTest::aMillionSpansDoNotBlockTheWindow() {
  Run run;
  run.id = "long", run.title = "long", run.slot = 0, run.summary = Summary{};
  test::add_steps(run.trace, test::StepStyle::EagerDirect, 0, 20'000);
  QVERIFY(run.trace.span_count() > 800'000);
  TwoRuns t;
  t.pane.setRuns({&run});
  t.view().search()->jumpToStep(9'000);
  const double before = test::thread_cpu_ms();
  t.model().paths()->setShown(true);
  const double took = test::thread_cpu_ms() - before;
  QVERIFY2(took < 50 * test::busy(), qPrintable(QString::number(took)));
  QTRY_VERIFY(t.model().paths()->of(&run));
  const TimeRange near = t.model().paths()->of(&run)->window(), view = t.model().runRange(0, t.range());
  QVERIFY(near.begin <= view.begin && view.end <= near.end && t.model().paths()->note().isEmpty());
  t.model().cursor()->setRange(near.begin - near.length() / 4, near.begin + near.length() / 8);
  QVERIFY2(t.model().paths()->note().startsWith("critical path of steps "), qPrintable(t.model().paths()->note()));
  QTRY_VERIFY(t.model().paths()->of(&run)->window() != near);  // it follows once the view stands still
  QTRY_COMPARE(t.model().paths()->note(), QString());
  t.pane.setRuns({});
}

void CriticalPathsTest::aCardHasTheTimeOnThePathOrTheSlack() {
  TwoRuns t;
  t.pane.setRuns({&t.slow});
  t.view().search()->jumpToStep(150);
  t.model().paths()->setShown(true);
  QTRY_VERIFY(t.model().paths()->of(&t.slow));
  const prof::SpanPath& path = *t.model().paths()->of(&t.slow);
  std::map<bool, Block> blocks;  // on the path, and off it
  for (const Block& block : blocksIn(t.pane))
    if (const auto span = path.of(block.track, block.span); span) blocks[span->on_path()] = block;
  QCOMPARE(blocks.size(), size_t{2});
  for (const auto& [on_path, block] : blocks) {
    const QString expected = QString::fromStdString(prof::path_text(*path.of(block.track, block.span)));
    QVERIFY2(expected.startsWith("not on it") != on_path, qPrintable(expected));
    QTest::mouseMove(&t.view(), block.pixel);
    const auto shows = [&](const QString& text) {
      return std::ranges::any_of(painted_texts(t.view()), [&](const PaintedText& painted) { return painted.text == text; });
    };
    QTRY_VERIFY(shows("critical path"));
    QVERIFY2(shows(expected), qPrintable(expected));  // the whole text, and not a cut one
    QStringList wrong;
    check(t.view(), on_path ? "card on the path" : "card off the path", wrong);
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }
  QVERIFY(QFontMetricsF(ui_font(11)).horizontalAdvance("not on it, could take 30.0 µs longer") <= kCardWidth - 114);
  t.pane.setRuns({});
}

// The menu of a span opens What if with the edit, which takes the place of the advice there.
void CriticalPathsTest::aSpanAsksWhatIf() {
  auto window = open();
  window->resize(1600, 972);
  Run* run = openRecorded(*window, "mnist-direct");
  QVERIFY(run);
  QVERIFY(show_tab(*window, "Overview"));
  settle();
  auto* pane = window->findChild<TimelinePane*>();
  auto* panel = window->findChild<WhatIfPanel*>();
  const std::vector<Block> blocks = blocksIn(*pane);
  const auto ask = [&](prof::SpanKind kind, const QString& words) {
    const auto block = std::ranges::find(blocks, kind, [](const Block& one) { return one.span.span_kind(); });
    if (block == blocks.end()) return QString("no such span");
    QStringList offers;
    QTimer::singleShot(0, [&] {
      auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
      if (!menu) return;
      for (QAction* action : menu->actions())
        if (action->menu() && action->text() == "What if") {
          emit action->menu()->aboutToShow();
          for (QAction* offer : action->menu()->actions()) {
            offers << offer->text();
            if (!offer->text().contains(words)) continue;
            offer->trigger();
            menu->close();
            return;
          }
        }
      menu->close();
    });
    QContextMenuEvent event(QContextMenuEvent::Mouse, block->pixel, pane->view()->mapToGlobal(block->pixel));
    QCoreApplication::sendEvent(pane->view(), &event);
    return offers.join('\n');
  };
  const QString allocator = ask(prof::SpanKind::Alloc, "no call allocated memory");
  QVERIFY2(allocator.contains("no call allocated memory"), qPrintable(allocator));
  QTRY_VERIFY(panel->isVisible());
  QCOMPARE(panel->edits(), QStringList({"no allocator calls"}));
  QVERIFY(panel->result() && panel->result()->saves_us.value > 0);
  show_tab(*window, "Overview");
  const QString kernel = ask(prof::SpanKind::Kernel, " took half the time");
  QVERIFY2(kernel.contains(" took half the time"), qPrintable(kernel));
  QTRY_VERIFY(panel->isVisible());
  QCOMPARE(panel->edits().size(), 2);  // the first one was asked for, so it stays
  QVERIFY2(panel->edits()[1].startsWith("op ") && panel->edits()[1].endsWith(" /2"), qPrintable(panel->edits()[1]));
}

WARPSIGHT_QTEST(CriticalPathsTest)
#include "critical_paths_test.moc"

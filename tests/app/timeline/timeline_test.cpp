// The timeline, driven as a person would.
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "app/pages/details/details_panel.h"
#include "app/widgets/theme.h"
#include "tests/app/support/painted_text.h"
#include "tests/app/support/two_runs.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;

class TimelineTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void runsAreAlignedByStep();
  void keysMoveTheRange();
  void wheelZoomsAtThePointer();
  void zoomIsUndone();
  void aPanStopsFollowing();
  void clickSelectsAndEscapeClears();
  void dragSumsARange();
  void nextOfTheSameName();
  void findGoesRound();
  void marksHaveNotes();
  void jumpsToStepSlowestAndGap();
  void whatIsOutOfMemoryIsFoundInTheFile();
  void whatIsOutOfMemoryIsSummedFromTheFile();
  void hoverShowsACardAfterAWhile();
  void noCardComesUpDuringADrag();
  void aRunWithoutStepsStandsBesideTheSteps();
  void foldedSpansSayTheirCount();
  void aFoldedRowHasNoLabels();
  void longLaneNamesGetWidth();
  void groupsFoldOnClick();
  void changingRunsDropsTheOld();
  void everyPixelIsPainted();
  void aTinySpanLeavesTheLongOneBehindItItsLook();
  void callsThatAllocateAndFreeHaveOneColour();
};

void TimelineTest::runsAreAlignedByStep() {
  TwoRuns t;
  for (int64_t step : {100, 150, 290}) {
    t.model().alignAtStep(step);
    QCOMPARE(span_of_step(t.fast.trace, step)->start, span_of_step(t.slow.trace, step)->start - t.model().offset(1));
  }
  t.model().setAlign(Align::RunStart);
  QCOMPARE(t.model().offset(1), t.slow.trace.first_time() - t.fast.trace.first_time());
  t.fast.created = QDateTime::fromMSecsSinceEpoch(1000), t.slow.created = QDateTime::fromMSecsSinceEpoch(1004);
  t.model().setAlign(Align::Wall);
  QCOMPARE(t.model().offset(1), -4'000'000);
  QCOMPARE(t.model().offset(0), 0);
}

void TimelineTest::keysMoveTheRange() {
  TwoRuns t;
  t.view().setFocus();
  const TimeRange before = t.range();
  QTest::keyClick(&t.view(), Qt::Key_W);
  QVERIFY(t.range().length() < before.length());
  QTest::keyClick(&t.view(), Qt::Key_S);
  QVERIFY(std::abs(t.range().length() - before.length()) < before.length() / 50);
  QTest::keyClick(&t.view(), Qt::Key_D);
  QVERIFY(t.range().begin > before.begin);
  QTest::keyClick(&t.view(), Qt::Key_A);
  QTest::keyClick(&t.view(), Qt::Key_F);
  QVERIFY(t.range().begin <= t.model().extent().begin && t.range().end >= t.model().extent().end);
}

void TimelineTest::wheelZoomsAtThePointer() {
  TwoRuns t;
  const QPoint at(700, 200);
  const prof::TimeNs under = t.view().timelineGeometry().scale().time(at.x());
  const TimeRange before = t.range();
  QWheelEvent zoom(at, t.view().mapToGlobal(at), {}, {0, 240}, Qt::NoButton, Qt::ControlModifier, Qt::NoScrollPhase,
                   false);
  QApplication::sendEvent(&t.view(), &zoom);
  QVERIFY(t.range().length() < before.length() * 0.7);
  const TimeScale scale{t.range(), double(t.view().timelineGeometry().gutter),
                        double(t.view().width() - t.view().timelineGeometry().gutter)};
  QVERIFY(std::abs(scale.x(under) - at.x()) < 1.5);
  QWheelEvent pan(at, t.view().mapToGlobal(at), {}, {0, -120}, Qt::NoButton, Qt::ShiftModifier, Qt::NoScrollPhase,
                  false);
  const prof::TimeNs begin = t.range().begin;
  QApplication::sendEvent(&t.view(), &pan);
  QVERIFY(t.range().begin > begin);
}

void TimelineTest::zoomIsUndone() {
  TwoRuns t;
  const TimeRange before = t.range();
  t.view().search()->jumpToSlowestStep();
  QVERIFY(!(t.range() == before));
  QTest::keyClick(&t.view(), Qt::Key_Backspace);
  QCOMPARE(t.range(), before);
  t.view().viewport()->redo();
  QVERIFY(!(t.range() == before));
  QTest::keyClick(&t.view(), Qt::Key_Left, Qt::AltModifier);
  QCOMPARE(t.range(), before);
}

void TimelineTest::aPanStopsFollowing() {
  TwoRuns t;
  t.cursor.setFollow(true);
  QTest::mousePress(&t.view(), Qt::MiddleButton, {}, {600, 200});
  QTest::mouseMove(&t.view(), {500, 200});
  QTest::mouseRelease(&t.view(), Qt::MiddleButton, {}, {500, 200});
  QVERIFY(!t.cursor.follow());
}

void TimelineTest::clickSelectsAndEscapeClears() {
  TwoRuns t;
  t.view().search()->jumpToStep(300);
  t.focus.clear();
  const QPoint at = t.blockIn(t.lane(0, prof::TrackKind::Stream));
  QVERIFY(!at.isNull());
  QTest::mouseClick(&t.view(), Qt::LeftButton, {}, at);
  const auto* chosen = t.focus.get<SpanChoice>();
  QVERIFY(chosen);
  QCOMPARE(chosen->span.span_kind(), prof::SpanKind::Kernel);
  QVERIFY(t.view().accessibleDescription().contains("stream 7"));
  QTest::keyClick(&t.view(), Qt::Key_Escape);
  QVERIFY(!t.focus.get<SpanChoice>());
}

void TimelineTest::dragSumsARange() {
  TwoRuns t;
  QTest::mousePress(&t.view(), Qt::LeftButton, {}, {500, 300});
  QTest::mouseMove(&t.view(), {560, 300});
  QTest::mouseMove(&t.view(), {700, 300});
  QTest::mouseRelease(&t.view(), Qt::LeftButton, {}, {700, 300});
  QCOMPARE(t.focus.ranges().size(), size_t{2});
  const TimeScale scale = t.view().timelineGeometry().scale();
  const TimeRange expected{scale.time(500), scale.time(700)};
  QVERIFY(std::abs(t.focus.ranges()[0].range.begin - expected.begin) < 200);
  QVERIFY(std::abs(t.focus.ranges()[0].range.end - expected.end) < 200);
  // The handle at its right edge moves that edge alone.
  QTest::mousePress(&t.view(), Qt::LeftButton, {}, {700, 300});
  QTest::mouseMove(&t.view(), {800, 300});
  QTest::mouseRelease(&t.view(), Qt::LeftButton, {}, {800, 300});
  QVERIFY(std::abs(t.focus.ranges()[0].range.end - scale.time(800)) < 200);
  QVERIFY(std::abs(t.focus.ranges()[0].range.begin - expected.begin) < 200);
}

void TimelineTest::nextOfTheSameName() {
  TwoRuns t;
  t.view().search()->jumpToStep(120);
  QTest::mouseClick(&t.view(), Qt::LeftButton, {}, t.blockIn(t.lane(0, prof::TrackKind::Stream)));
  const prof::Span first = t.focus.get<SpanChoice>()->span;
  QTest::keyClick(&t.view(), Qt::Key_Period);
  const prof::Span next = t.focus.get<SpanChoice>()->span;
  QCOMPARE(next.name, first.name);
  QVERIFY(next.start > first.start);
  QTest::keyClick(&t.view(), Qt::Key_Comma);
  QCOMPARE(t.focus.get<SpanChoice>()->span.start, first.start);
}

void TimelineTest::findGoesRound() {
  TwoRuns t;
  QSignalSpy said(&t.view(), &TimelineView::said);
  QVERIFY(t.view().search()->find("dW1", true));
  const auto* chosen = t.focus.get<SpanChoice>();
  QCOMPARE(QString::fromStdString(chosen->run->trace.ops[chosen->span.op].name).contains("dW1"), true);
  QVERIFY(t.range().contains(chosen->span.start - t.model().offset(t.model().indexOf(chosen->run))));
  QVERIFY(!t.view().search()->find("no such kernel", true));
  QCOMPARE(said.size(), 1);
  QVERIFY(t.view().search()->find("150", true));
  QCOMPARE(t.focus.get<SpanChoice>()->span.step, 151u);
}

void TimelineTest::marksHaveNotes() {
  TwoRuns t;
  t.view().search()->addMark();
  t.cursor.setCursor(t.range().begin + 10);
  QTest::keyClick(&t.view(), Qt::Key_M);
  QCOMPARE(t.model().marks().size(), size_t{2});
  QVERIFY(t.model().marks()[0].time < t.model().marks()[1].time);
  t.model().setNote(0, "here");
  QCOMPARE(t.model().marks()[0].note, QString("here"));
  t.model().removeMark(1);
  QCOMPARE(t.model().marks().size(), size_t{1});
}

void TimelineTest::jumpsToStepSlowestAndGap() {
  TwoRuns t;
  QVERIFY(t.view().search()->jumpToStep(333));
  QVERIFY(t.range().contains(span_of_step(t.fast.trace, 333)->start));
  QVERIFY(!t.view().search()->jumpToStep(5));
  t.view().search()->jumpToSlowestStep();
  QCOMPARE(t.focus.get<SpanChoice>()->span.duration, slowest_step(t.fast.trace)->span.duration);
  t.view().search()->jumpToLongestGap();
  QCOMPARE(t.focus.ranges()[0].range, *longest_gap(t.fast.trace));
}

// A run that lies in a file; of its trace only the end stays in memory once it was evicted.
struct KeptRun : TwoRuns {
  KeptRun() {
    test::add_steps(trace(), test::StepStyle::GraphArena, 500, 4000);
    fast.path = folder.filePath("fast.wsrun");
    {
      prof::RunFileWriter writer(fast.path.toStdString(), {});
      writer.add(trace());
      writer.finish();
    }
    pane.setRuns({&fast});
    while (trace().tracks()[stream].kind != prof::TrackKind::Stream) ++stream;
    first = track().blocks.front().spans.front(), last = track().blocks.back().spans.back();
  }
  prof::Trace& trace() { return fast.trace; }
  const prof::Track& track() { return trace().tracks()[stream]; }
  bool evict() {
    trace().backed = true;
    trace().evict(0);
    return !prof::in_memory(track(), first.start, last.start);
  }
  void choose(const prof::Span& span) { focus.choose(SpanChoice{&fast, stream, span}); }
  prof::TimeNs chosen() {
    const auto* choice = focus.get<SpanChoice>();
    return choice ? choice->span.start : -1;
  }

  QTemporaryDir folder;
  size_t stream = 0;
  prof::Span first, last;  // of the stream
};

// What lies before is asked of the file, and the answers are the same as for the whole.
void TimelineTest::whatIsOutOfMemoryIsFoundInTheFile() {
  KeptRun t;
  const auto slowest = slowest_step(t.trace());
  const auto gap = longest_gap(t.trace());
  const prof::Span middle = t.track().blocks[1].spans[5],
                   before = *prof::previous_named(t.track(), middle.name, middle.start),
                   after = *prof::next_named(t.track(), t.first.name, t.first.start);
  const QString name = QString::fromStdString(t.trace().name(t.first.name));
  t.choose(t.first);
  QVERIFY(t.view().search()->find(name, true));
  const prof::TimeNs found = t.chosen();
  QVERIFY(t.evict());
  QSignalSpy said(&t.view(), &TimelineView::said);
  const auto go = [&](const prof::Span& from, bool forward) {
    t.choose(from);
    t.view().search()->nextSame(forward);
  };
  go(t.first, true);
  QVERIFY(said.back()[0].toString().contains("in the run file"));
  QTRY_COMPARE(t.chosen(), after.start);
  go(middle, false);
  QTRY_COMPARE(t.chosen(), before.start);
  go(t.first, false);
  QTRY_COMPARE(said.back()[0].toString(), QString("No earlier span has this name."));
  t.choose(t.first);
  QVERIFY(t.view().search()->find(name, true));
  QTRY_COMPARE(t.chosen(), found);
  QVERIFY(!t.view().search()->find("no such kernel", true));
  t.view().search()->jumpToSlowestStep();
  QTRY_COMPARE(t.chosen(), slowest->span.start);
  t.view().search()->jumpToLongestGap();
  QTRY_VERIFY(!t.focus.ranges().empty() && t.focus.ranges()[0].range == *gap);
  // No file: that is said, and what is known is shown.
  t.fast.path.clear();
  go(t.first, true);
  QVERIFY(said.back()[0].toString().contains("there is no run file"));
}

// The sums of a range: nothing is said of it before all of it was read.
void TimelineTest::whatIsOutOfMemoryIsSummedFromTheFile() {
  KeptRun t;
  const RunRange range{&t.fast, {t.first.start, t.last.start}};
  const QString sums = range_details({range}, 20);
  QVERIFY(sums.contains("×"));
  QVERIFY(t.evict());
  t.focus.chooseRanges({range});
  DetailsPanel details(&t.focus);
  QVERIFY(details.html().contains("Reading the rest"));
  const auto summed = [&] { return !details.html().contains("Reading the rest") && details.html().contains("×"); };
  QTRY_VERIFY(summed());
  for (const QString& row : sums.split("<tr>"))
    if (row.contains("×")) QVERIFY2(details.html().contains(row.section("×", 1)), qPrintable(row));
  t.focus.clear();
  QTRY_VERIFY(!details.html().contains("×"));
  t.focus.chooseRanges({range});
  QTRY_VERIFY(summed());
}

void TimelineTest::hoverShowsACardAfterAWhile() {
  TwoRuns t;
  t.view().search()->jumpToStep(300);
  QTest::mouseMove(&t.view(), t.blockIn(t.lane(0, prof::TrackKind::Stream)));
  const QImage pointed = t.view().grab().toImage();
  QTRY_VERIFY(t.view().grab().toImage() != pointed);
  const HoverCard card = span_card(t.fast.trace, 2, t.fast.trace.tracks()[2].blocks.front().spans[5]);
  QVERIFY(card.rows.size() >= 4);
  QCOMPARE(card.title, QString("dW1"));
  const auto row = [](const HoverCard& of, const QString& name) {
    const auto at = std::ranges::find(of.rows, name, &std::pair<QString, QString>::first);
    return at == of.rows.end() ? QString() : at->second;
  };
  QVERIFY(row(card, "theoretical").isEmpty());  // of an unknown device
  const HoverCard on_h200 = span_card(t.fast.trace, 2, t.fast.trace.tracks()[2].blocks.front().spans[5], "NVIDIA H200");
  QVERIFY2(row(on_h200, "theoretical").startsWith("occupancy 18.8 %, limit: "), qPrintable(row(on_h200, "theoretical")));
}

// The card of the start would cover what a drag goes over. The other timeline is pointed at later: when its card is there,
// the card of the first one would be there too.
void TimelineTest::noCardComesUpDuringADrag() {
  TwoRuns t, other;
  for (TwoRuns* each : {&t, &other}) each->view().search()->jumpToStep(300);
  const QPoint at = t.blockIn(t.lane(0, prof::TrackKind::Stream));
  QTest::mouseMove(&t.view(), at);
  QTest::mousePress(&t.view(), Qt::LeftButton, {}, at);
  const QImage pressed = t.view().grab().toImage();
  QMouseEvent move(QEvent::MouseMove, at, other.view().mapToGlobal(at), Qt::NoButton, {}, {});
  QCoreApplication::sendEvent(&other.view(), &move);
  const QImage pointed = other.view().grab().toImage();
  QTRY_VERIFY(other.view().grab().toImage() != pointed);
  QCOMPARE(t.view().grab().toImage(), pressed);
  QTest::mouseRelease(&t.view(), Qt::LeftButton, {}, at);
}

// The other run has a long start before its first step.
void TimelineTest::aRunWithoutStepsStandsBesideTheSteps() {
  TwoRuns t;
  const auto add = [](prof::Trace& trace, prof::TimeNs start) {
    prof::Span span;
    span.start = start, span.duration = 50'000, span.kind = static_cast<uint64_t>(prof::SpanKind::Phase), span.name = trace.intern("load");
    trace.append(trace.track(prof::TrackKind::Ranges, "ranges 1", "CPU"), span);
  };
  Run late, plain;
  late.id = "late", late.slot = 0, late.summary = Summary{};
  add(late.trace, t.slow.trace.first_time() - 17'000'000'000);
  test::add_steps(late.trace, test::StepStyle::EagerDirect, 100, 200);
  plain.id = "plain", plain.slot = 1, plain.summary = Summary{};
  for (int i = 0; i < 40; ++i) add(plain.trace, 1'000'000 + i * 100'000);
  for (const std::vector<Run*>& runs : {std::vector{&late, &plain}, std::vector{&plain, &late}}) {
    t.pane.setRuns(runs);
    t.view().fit();
    QVERIFY2(t.range().length() < 1'000'000'000, qPrintable(QString::number(t.range().length())));
    for (int run = 0; run < 2; ++run) {
      bool seen = false;
      for (const Lane& lane : t.model().lanes())
        for (int x = t.view().timelineGeometry().gutter; x < t.view().width() && lane.run == run && lane.kind == LaneKind::Spans; x += 2)
          seen = seen || t.view().hitAt(t.middleOf(lane, x));
      QVERIFY2(seen, qPrintable(QString::number(run)));
    }
  }
  t.pane.setRuns({});
}

void TimelineTest::foldedSpansSayTheirCount() {
  TwoRuns t;
  t.view().fit();
  bool any = false;
  for (int x = 200; x < t.view().width() && !any; ++x)
    if (const auto hit = t.view().hitAt(t.middleOf(t.lane(1, prof::TrackKind::Api), x)); hit && hit->rect.count > 1) {
      const HoverCard card = folded_card(t.slow.trace, hit->track, hit->rect, {0, 1'000'000});
      QVERIFY(card.title.contains(QString::number(hit->rect.count)));
      QVERIFY(card.title.contains("% busy"));
      any = true;
    }
  QVERIFY(any);
}

void TimelineTest::aFoldedRowHasNoLabels() {
  TwoRuns t;
  const prof::Span* step = span_of_step(t.fast.trace, 150);
  const prof::NameId name = t.fast.trace.intern("host waits for the stream");
  t.fast.trace.append(t.fast.trace.track(prof::TrackKind::Overhead, "profiler", "CPU"), prof::Span{.start = step->start, .duration = step->duration, .name = name});
  emit t.fast.changed();
  t.model().cursor()->setRange(step->start, step->end());
  const auto labels = [&t] {
    const auto texts = painted_texts(t.view());
    return std::ranges::count_if(texts, [](const PaintedText& one) { return one.text.startsWith("host waits"); });
  };
  QVERIFY(std::ranges::any_of(t.model().lanes(), [](const Lane& lane) { return lane.title == "1 more row" && lane.folded; }));
  QCOMPARE(labels(), 0);
  t.model().setQuietRows(true);
  QVERIFY2(labels() > 0, "its own row has a label");
}

// The column of names grows with them up to a limit; a person's own width stays.
void TimelineTest::longLaneNamesGetWidth() {
  TwoRuns t;
  const auto cut = [&t] {
    const TimelineGeometry& g = t.view().timelineGeometry();
    return std::ranges::any_of(t.model().lanes(), [&g](const Lane& lane) {
      return lane.kind != LaneKind::Group && g.titleLeft(lane) + QFontMetricsF(ui_font(11)).horizontalAdvance(lane.title) + kTitleEnd > g.gutter;
    });
  };
  const prof::TrackId stream = t.fast.trace.track(prof::TrackKind::Stream, "stream of a library 99", "GPU 0");
  for (uint32_t i = 0; i < 300; ++i) {
    prof::Span span{.start = t.fast.trace.first_time() + i * 20'000, .duration = 9000};
    span.step = 101 + i;
    t.fast.trace.append(stream, span);
  }
  t.view().resize(900, t.view().height());
  t.model().setRuns({});
  t.model().setRuns({&t.fast, &t.slow});
  QVERIFY(std::ranges::any_of(t.model().lanes(), [](const Lane& lane) { return lane.title.contains("library 99"); }));
  QVERIFY(!cut());
  t.view().viewport()->setGutter(80);
  t.model().setRuns({&t.slow});
  QCOMPARE(t.view().timelineGeometry().gutter, 80);
  QVERIFY(cut());
}

void TimelineTest::groupsFoldOnClick() {
  TwoRuns t;
  const size_t before = t.model().lanes().size();
  QTest::mouseClick(&t.view(), Qt::LeftButton, {}, {60, t.view().timelineGeometry().top() + 8});
  QVERIFY(t.model().lanes().size() < before);
  QVERIFY(t.model().lanes()[0].folded);
  const QByteArray saved = t.model().saveLanes();
  QTest::mouseClick(&t.view(), Qt::LeftButton, {}, {60, t.view().timelineGeometry().top() + 8});
  QCOMPARE(t.model().lanes().size(), before);
  t.model().restoreLanes(saved);
  QVERIFY(t.model().lanes()[0].folded);
  t.model().restoreLanes("not a state");
  QVERIFY(t.model().lanes()[0].folded);
}

void TimelineTest::changingRunsDropsTheOld() {
  TwoRuns t;
  t.pane.setRuns({&t.slow});
  QCOMPARE(t.model().runCount(), size_t{1});
  t.view().grab();
  t.pane.setRuns({});
  QCOMPARE(t.model().lanes().size(), size_t{0});
  t.view().grab();
  {
    Run gone;
    test::add_steps(gone.trace, test::StepStyle::Persistent, 0, 10);
    t.pane.setRuns({&gone});
    QVERIFY(t.model().lanes().size() > 2);
  }
  QCOMPARE(t.model().runCount(), size_t{0});
  t.view().grab();
}

void TimelineTest::everyPixelIsPainted() {
  TwoRuns t;
  QImage image(t.view().size(), QImage::Format_ARGB32);
  image.fill(Qt::transparent);
  t.view().render(&image, {}, {}, QWidget::RenderFlags{});
  for (int y = 0; y < image.height(); y += 3)
    for (int x = 0; x < image.width(); x += 3) QCOMPARE(qAlpha(image.pixel(x, y)), 255);
}

// Both begin in one column of pixels, as a batch that lies ready and the forward phase do.
void TimelineTest::aTinySpanLeavesTheLongOneBehindItItsLook() {
  const auto column = [](bool tiny) {
    Run run;
    const auto add = [&run](prof::TimeNs start, prof::TimeNs end, const char* name) {
      prof::Span span;
      span.start = start, span.duration = static_cast<uint64_t>(end - start), span.name = run.trace.intern(name);
      span.kind = static_cast<uint64_t>(prof::SpanKind::Phase);
      run.trace.append(run.trace.track(prof::TrackKind::Phases, "phases", "CPU"), span);
    };
    if (tiny) add(1000, 1005, "input");
    add(tiny ? 1010 : 1000, 200'000, "forward");
    TwoRuns t;
    t.pane.setRuns({&run});
    QTest::keyClick(&t.view(), Qt::Key_F);
    const QImage image = t.view().grab().toImage();
    std::vector<QRgb> colours;
    for (int y = 0; y < image.height(); ++y) colours.push_back(image.pixel(image.width() / 2, y));
    t.pane.setRuns({});
    return colours;
  };
  QVERIFY(column(true) == column(false));
}

// One meaning, one colour: the legend names it once.
void TimelineTest::callsThatAllocateAndFreeHaveOneColour() {
  const auto middle = [](prof::SpanKind kind) {
    Run run;
    prof::Span span;
    span.start = 1000, span.duration = 200'000, span.name = run.trace.intern("call");
    span.kind = static_cast<uint64_t>(kind), span.meaning = static_cast<uint64_t>(prof::Meaning::Allocation);
    run.trace.append(run.trace.track(prof::TrackKind::Api, "thread calls", "CPU"), span);
    TwoRuns t;
    t.pane.setRuns({&run});
    QTest::keyClick(&t.view(), Qt::Key_F);
    const QImage image = t.view().grab().toImage();
    std::vector<QRgb> colours;
    for (int y = 0; y < image.height(); ++y) colours.push_back(image.pixel(image.width() / 2, y));
    t.pane.setRuns({});
    return colours;
  };
  const std::vector<QRgb> allocates = middle(prof::SpanKind::Alloc);
  QVERIFY(std::ranges::find(allocates, theme().of(prof::Meaning::Allocation).rgb()) != allocates.end());
  QVERIFY(allocates == middle(prof::SpanKind::Free));
}

WARPSIGHT_QTEST(TimelineTest)
#include "timeline_test.moc"

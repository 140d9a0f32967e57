// The Kernels tab: its sums are those of the trace, it sorts, filters and shows what each execution belongs to.
#include <QAbstractItemModelTester>
#include <QLineEdit>
#include <QtTest>
#include <algorithm>

#include "app/panels/kernels_panel.h"
#include "app/panels/theme.h"
#include "tests/app/made_run.h"
#include "tests/support/synthetic_trace.h"

using namespace ws;
using namespace ws::app;

class KernelsTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { set_theme(*qApp, ThemeName::Dark); }
  void kernelsSumToTheTrace();
  void kernelsSortAndFilter();
  void slowestExecutionComesFirst();
  void executionsOutsideOfStepsAreEvaluations();
};

void KernelsTest::kernelsSumToTheTrace() {
  const auto run = test::traced(test::StepStyle::EagerDirect);
  Selection selection;
  KernelsPanel panel(&selection);
  QAbstractItemModelTester tester(panel.model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  panel.setRun(run.get());
  panel.refresh();
  int64_t shown = 0, expected = 0;
  double share = 0;
  for (int row = 0; row < panel.model()->rowCount(); ++row)
    shown += panel.model()->rowAt(row)->time.total, share += panel.model()->rowAt(row)->share;
  for (const auto& track : run->trace.tracks())
    if (track.kind == prof::TrackKind::Stream)
      for (const auto& block : track.blocks)
        for (const auto& span : block.spans) expected += static_cast<int64_t>(span.duration);
  QCOMPARE(shown, expected);
  QVERIFY(std::abs(share - 1) < 1e-9);
}

void KernelsTest::kernelsSortAndFilter() {
  const auto run = test::traced(test::StepStyle::EagerDirect);
  Selection selection;
  KernelsPanel panel(&selection);
  panel.setRun(run.get());
  panel.refresh();
  auto* shown = panel.table()->model();
  for (int column : {int(KernelModel::Total), int(KernelModel::Count), int(KernelModel::Max)}) {
    panel.table()->sortByColumn(column, Qt::DescendingOrder);
    for (int row = 1; row < shown->rowCount(); ++row)
      QVERIFY(shown->index(row - 1, column).data(kSortRole).toDouble() >=
              shown->index(row, column).data(kSortRole).toDouble());
  }
  const int all = shown->rowCount();
  panel.findChild<QLineEdit*>()->setText("softmax");
  QVERIFY(shown->rowCount() > 0 && shown->rowCount() < all);
}

void KernelsTest::slowestExecutionComesFirst() {
  const auto run = test::traced(test::StepStyle::EagerDirect);
  Selection selection;
  KernelsPanel panel(&selection);
  QSignalSpy revealed(&selection, &Selection::revealed);
  panel.setRun(run.get());
  panel.refresh();
  double total = 0;
  for (double count : panel.histogram()->data().counts) total += count;
  const auto* row = panel.model()->rowAt(0);
  QCOMPARE(static_cast<uint64_t>(total), row->time.count);
  panel.instances()->setCurrentIndex(panel.instances()->model()->index(0, 0));
  QCOMPARE(revealed.size(), 1);
  QCOMPARE(static_cast<int64_t>(selection.get<SpanChoice>()->span.duration), row->time.max);
}

// What a run does outside of its steps is evaluation; of another program's trace nobody knows.
void KernelsTest::executionsOutsideOfStepsAreEvaluations() {
  const auto run = test::traced(test::StepStyle::EagerDirect);
  const auto stream = std::ranges::find(run->trace.tracks(), prof::TrackKind::Stream, &prof::Track::kind);
  prof::Span span = stream->blocks.front().spans.front();
  span.start = run->trace.last_time() + 1000, span.duration = 9'000'000, span.step = 0;
  const prof::TrackId track = run->trace.track(prof::TrackKind::Stream, stream->name, stream->group);
  run->trace.append(track, span);
  Selection selection;
  KernelsPanel panel(&selection);
  const auto slowest = [&] { return panel.instances()->model()->index(0, 1).data().toString(); };
  panel.setRun(run.get());
  panel.refresh();
  QCOMPARE(slowest(), QString("evaluation"));
  QVERIFY(panel.instances()->model()->index(1, 1).data().toString() != "evaluation");
  run->origin = RunOrigin::Imported;
  panel.refresh();
  QCOMPARE(slowest(), QString::fromUtf8("—"));
  QVERIFY(!panel.table()->isColumnHidden(KernelModel::Grid));
  // Where there is room all columns stand; in a narrow window the names have it.
  panel.show();
  panel.resize(1400, 600);
  QVERIFY(!panel.table()->isColumnHidden(KernelModel::Registers));
  panel.resize(1000, 600);
  QVERIFY(panel.table()->isColumnHidden(KernelModel::Registers));
  QVERIFY(panel.table()->columnWidth(KernelModel::Name) > 300);
}

QTEST_MAIN(KernelsTest)
#include "kernels_test.moc"

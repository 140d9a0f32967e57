// Does the window's memory come to rest? A fast training on a GPU is played into the window at a hundred times its pace,
// 150 seconds of it (WARPSIGHT_SOAK=7200 for so many). What the heap holds may not rise in its second half.
#include <malloc.h>

#include <QSignalSpy>
#include <QTest>
#include <algorithm>

#include "app/window/status_line.h"
#include "profiling/base/statistics.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/sanitizers.h"

using namespace ws::app;

namespace {

constexpr int kUpdatesPerSecond = 30, kStepsPerUpdate = 2000, kStepsPerLaunch = 20, kKernelsPerStep = 5;

double heap_mib() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<double>(heap.uordblks + heap.hblkhd) / (1 << 20);
}

// A network of 16 µs per step: each graph is launched for twenty steps.
class FastTraining {
 public:
  RunUpdate next() {
    RunUpdate update;
    ws::Progress progress;
    ws::prof::TraceBatch batch;
    batch.names = {"step", "gemm", "cudaGraphLaunch", "cudaMallocAsync"};
    batch.memory_sources = {"cudaMallocAsync"};
    batch.tracks.resize(3);
    batch.tracks[0] = {ws::prof::TrackKind::Steps, "steps", "CPU", 0, {}};
    batch.tracks[1] = {ws::prof::TrackKind::Stream, "stream 7", "GPU 0", 0, {}};
    batch.tracks[2] = {ws::prof::TrackKind::Api, "CUDA API", "CPU", 0, {}};
    batch.counters.push_back({"memory used", "B", prof::CounterKind::MemoryUsed, {}});
    for (int i = 0; i < kStepsPerUpdate; ++i) step(update, batch);
    for (int i = 0; i < 20; ++i) block(batch, i);
    update.epochs.push_back(epoch());
    progress.step = progress.started = step_, progress.steps = 1'000'000'000, progress.epochs = 500'000;
    progress.epoch = static_cast<int>(step_ / kStepsPerUpdate), progress.elapsed_s = static_cast<double>(time_) * 1e-9;
    update.progress = progress;
    update.traces.push_back(std::move(batch));
    return update;
  }

 private:
  void add(ws::prof::TraceBatch& batch, size_t track, int64_t ns, ws::prof::SpanKind kind, uint32_t name) {
    ws::prof::Span span{.start = time_, .duration = static_cast<uint64_t>(ns), .kind = static_cast<uint64_t>(kind)};
    span.name = ws::prof::NameId{name}, span.step = static_cast<uint32_t>(step_);
    batch.tracks[track].spans.push_back(span);
  }
  void step(RunUpdate& update, ws::prof::TraceBatch& batch) {
    ++step_;
    ws::StepResult result;
    result.step = step_, result.loss = 1.0f + static_cast<float>(step_ % 97), result.finished_s = static_cast<double>(time_) * 1e-9;
    update.steps.push_back(result);
    add(batch, 0, 16'000, ws::prof::SpanKind::Step, 0);
    if (step_ % kStepsPerLaunch == 0) add(batch, 2, 2000, ws::prof::SpanKind::Api, 2);
    for (int i = 0; i < kKernelsPerStep; ++i, time_ += 3200) add(batch, 1, 3000, ws::prof::SpanKind::Kernel, 1);
  }
  void block(ws::prof::TraceBatch& batch, int i) {
    ws::prof::MemoryEvent event;
    event.time = time_ - 1000 + i, event.bytes = 4096, event.address = 0x1000;
    event.kind = i % 2 ? ws::prof::MemoryAction::Free : ws::prof::MemoryAction::Allocate;
    batch.memory.push_back(event);
    batch.counters[0].points.push_back({event.time, i % 2 ? 0.0 : 4096.0});
  }
  ws::EpochResult epoch() const {
    ws::EpochResult result;
    result.epoch = static_cast<int>(step_ / kStepsPerUpdate), result.step = step_;
    result.wall_s = static_cast<double>(time_) * 1e-9;
    result.test.emplace();
    return result;
  }

  int64_t time_ = 0, step_ = 0;
};

}  // namespace

class SoakTest : public QObject, WindowHome {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void memoryComesToRest();
  void fourShortRunsStaySmall();
  void theStatusLineReportsTheMemoryOfTheProgram();
};

void SoakTest::memoryComesToRest() {
  if (ws::test::kSanitized) QSKIP("A sanitizer has a heap of its own, which does not tell what the program holds.");
  auto window = open();
  auto* run = new Run(window.get());
  run->id = "soak", run->title = "soak", run->created = QDateTime::currentDateTime();
  run->spec.exec.launch = ws::Launch::Graph, run->spec.exec.graph_steps = kStepsPerLaunch;
  run->path = runs() + "/soak.wsrun";  // as of a run whose file has what memory frees
  run->history_bytes = 48u << 20;      // a small history is full soon
  window->workspace()->library()->adopt(run);
  window->workspace()->library()->setTicked(run, true);
  const int seconds = qEnvironmentVariableIsSet("WARPSIGHT_SOAK") ? qEnvironmentVariableIntValue("WARPSIGHT_SOAK") : 150;
  FastTraining training;
  std::array<std::vector<double>, 4> heap;  // MiB, by quarter
  const double before = heap_mib();
  for (int i = 0, all = seconds * kUpdatesPerSecond; i < all; ++i) {
    run->apply(training.next());
    if (i % 60 != 0) continue;
    window->tabs()->setCurrentIndex(i / 60 % window->tabs()->count());
    QApplication::processEvents();
    heap.at(static_cast<size_t>(i) * 4 / static_cast<size_t>(all)).push_back(heap_mib());
  }
  std::array<double, 4> usual{};  // medians: on a busy machine, work that came late is a peak
  std::ranges::transform(heap, usual.begin(), [](const std::vector<double>& quarter) { return ws::median(quarter); });
  const QString said = QString("the heap held %1 MiB before, then in the median of each quarter %2, %3, %4, %5 MiB")
                           .arg(before).arg(usual[0]).arg(usual[1]).arg(usual[2]).arg(usual[3]);
  qInfo("%s", qPrintable(said));
  QVERIFY2(usual[1] > before + 20, "the history was never filled");
  QVERIFY2(usual[3] - usual[2] < 0.03 * (usual[2] - before), qPrintable(said));
}

// Four trainings of 24,000 steps, each kernel of them traced.
void SoakTest::fourShortRunsStaySmall() {
  if (ws::test::kSanitized) QSKIP("A sanitizer has a heap of its own, which does not tell what the program holds.");
  clear();
  auto window = open();
  const double before = heap_mib();
  size_t spans = 0;
  for (const char* allocator : {"direct", "caching", "arena", "direct"}) {
    iris(*window, 3000);
    window->workspace()->choices()->set("exec.allocator", allocator);
    QSignalSpy ended(window->workspace()->session(), &TrainingSession::ended);
    window->train();
    QTRY_COMPARE(ended.count(), 1);
    spans += window->workspace()->shownRun()->trace.span_count();
  }
  const double held = heap_mib() - before;
  qInfo("four runs of %zu spans in all hold %.0f MiB", spans, held);
  QVERIFY(spans > 500'000);
  QVERIFY2(held < 250, qPrintable(QString::number(held)));
}

void SoakTest::theStatusLineReportsTheMemoryOfTheProgram() {
  auto window = open();
  QRegularExpression memory_text("This program uses [0-9.]+ [MG]iB of memory\\.");
  QTRY_VERIFY2(memory_text.match(window->statusLine()->toolTip()).hasMatch(), qPrintable(window->statusLine()->toolTip()));
}

WARPSIGHT_QTEST(SoakTest)
#include "soak_test.moc"

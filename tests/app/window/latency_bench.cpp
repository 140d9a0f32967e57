// How long the window keeps a person waiting: until it is there, until the first step after the click, and while half
// a million spans a second stream into it.
#include <QApplication>
#include <QElapsedTimer>
#include <QMetaEnum>
#include <QTemporaryDir>
#include <QThread>
#include <QTimer>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <mutex>
#include <thread>

#include "app/pages/setup/setup_panel.h"
#include "app/widgets/theme.h"
#include "app/window/main_window.h"
#include "app/window/program_actions.h"
#include "app/window/window_layout.h"
#include "tests/support/machine.h"

using namespace ws::app;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kSpansPerSecond = 500'000, kBatchesPerSecond = 30, kSeconds = 8;

// One thirtieth of a second of a trace: steps of forty spans on a stream and as many calls.
ws::prof::TraceBatch batch(int64_t& time, uint32_t& step) {
  ws::prof::TraceBatch out;
  out.names = {"step", "gemm", "cudaLaunchKernel", "bias relu"};
  out.tracks.resize(3);
  out.tracks[0] = {ws::prof::TrackKind::Steps, "steps", "CPU", 0, {}};
  out.tracks[1] = {ws::prof::TrackKind::Stream, "stream 7", "GPU 0", 0, {}};
  out.tracks[2] = {ws::prof::TrackKind::Api, "CUDA API", "CPU", 0, {}};
  for (int spans = 0; spans < kSpansPerSecond / kBatchesPerSecond; spans += 81) {
    const int64_t begin = time;
    ++step;
    for (int i = 0; i < 40; ++i, time += 4000) {
      ws::prof::Span kernel{.start = time,
                            .duration = 3000,
                            .kind = static_cast<uint64_t>(ws::prof::SpanKind::Kernel),
                            .meaning = static_cast<uint64_t>(i % 5)};
      kernel.name = ws::prof::NameId{1}, kernel.step = step;
      ws::prof::Span call{.start = time,
                          .duration = 1500,
                          .kind = static_cast<uint64_t>(ws::prof::SpanKind::Api),
                          .meaning = static_cast<uint64_t>(ws::prof::Meaning::Launch)};
      call.name = ws::prof::NameId{2}, call.step = step;
      out.tracks[1].spans.push_back(kernel);
      out.tracks[2].spans.push_back(call);
    }
    ws::prof::Span whole{.start = begin,
                         .duration = static_cast<uint64_t>(time - begin),
                         .kind = static_cast<uint64_t>(ws::prof::SpanKind::Step)};
    whole.step = step;
    out.tracks[0].spans.push_back(whole);
  }
  return out;
}

struct Latencies {
  std::vector<double> ms;
  double at(double share) {
    std::sort(ms.begin(), ms.end());
    return ms.empty() ? 0 : ms[std::min(ms.size() - 1, static_cast<size_t>(share * static_cast<double>(ms.size())))];
  }
};

// Measures the work of the window's thread for each event, in time of its core: a busy machine changes it little.
class Measured : public QApplication {
 public:
  using QApplication::QApplication;
  struct Work {
    double ms;
    std::string what;
  };
  bool notify(QObject* to, QEvent* event) override {
    if (inside_ || thread() != QThread::currentThread()) return QApplication::notify(to, event);
    inside_ = true;
    const std::string what = std::string(to->metaObject()->className()) + " " + to->objectName().toStdString() + ", " +
                             QMetaEnum::fromType<QEvent::Type>().valueToKey(event->type());
    const double before = ws::test::thread_cpu_ms();
    const bool taken = QApplication::notify(to, event);
    works_.push_back({ws::test::thread_cpu_ms() - before, what});
    inside_ = false;
    return taken;
  }
  // Longest first.
  std::vector<Work> take() {
    std::ranges::sort(works_, std::greater(), &Work::ms);
    return std::exchange(works_, {});
  }

 private:
  bool inside_ = false;
  std::vector<Work> works_;
};

// Posts an event every two milliseconds; the window's thread notes how late it arrives.
Latencies stream(MainWindow& window, Run& run) {
  Latencies late;
  std::atomic<bool> over{false};
  std::mutex mutex;
  std::vector<ws::prof::TraceBatch> waiting;
  std::thread source([&] {
    int64_t time = 0;
    uint32_t step = 0;
    auto next = Clock::now();
    while (!over) {
      auto made = batch(time, step);
      {
        std::lock_guard lock(mutex);
        waiting.push_back(std::move(made));
      }
      next += std::chrono::milliseconds(1000 / kBatchesPerSecond);
      std::this_thread::sleep_until(next);
    }
  });
  std::thread pulse([&] {
    while (!over) {
      const auto sent = Clock::now();
      QMetaObject::invokeMethod(&window, [&late, sent] {
        late.ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - sent).count());
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  QTimer poll;
  QObject::connect(&poll, &QTimer::timeout, [&] {
    RunUpdate update;
    {
      std::lock_guard lock(mutex);
      std::swap(update.traces, waiting);
    }
    run.apply(std::move(update));
  });
  poll.start(33);
  QTimer::singleShot(kSeconds * 1000, qApp, &QApplication::quit);
  QApplication::exec();
  over = true;
  source.join();
  pulse.join();
  QApplication::processEvents();
  return late;
}

// From Train to the first step that the window knows of.
qint64 first_step_ms(MainWindow& window) {
  window.workspace()->choices()->usePreset("iris");
  window.workspace()->choices()->set("exec.device", "cpu");
  QElapsedTimer clock;
  clock.start();
  window.train();
  const auto stepped = [&] {
    const Run* run = window.workspace()->session()->run();
    return run && !run->steps.empty();
  };
  while (clock.elapsed() < 10'000 && !stepped()) QApplication::processEvents(QEventLoop::AllEvents, 5);
  const qint64 took = clock.elapsed();
  window.workspace()->session()->stopAndWait(10'000);
  return took;
}

}  // namespace

int main(int argc, char** argv) {
  QElapsedTimer start;
  start.start();
  Measured app(argc, argv);
  set_theme(app, ThemeName::Dark);
  QTemporaryDir folder;
  MainWindow window(folder.path());
  window.windowLayout()->setKeep(false);
  window.resize(1920, 1080);
  window.show();
  QApplication::processEvents();
  const auto visible = start.elapsed();
  while (!window.workspace()->device()->info()) QApplication::processEvents(QEventLoop::AllEvents, 5);
  const qint64 first_step = first_step_ms(window);
  auto* run = new Run(&window);
  run->title = "synthetic";
  run->created = QDateTime::currentDateTime();
  window.workspace()->library()->adopt(run);
  window.workspace()->library()->setTicked(run, true);
  app.take();
  Latencies late = stream(window, *run);
  const std::vector<Measured::Work> works = app.take();
  const double p99 = late.at(0.99), worst = late.at(1);
  std::printf(
      "window visible after %lld ms\nfirst step %lld ms after the click\nspans %zu\nevent loop latency p50 %.2f ms  "
      "p99 %.2f ms  worst %.2f ms  (%zu "
      "events)\nhistory %.0f MiB\n",
      static_cast<long long>(visible), static_cast<long long>(first_step), run->trace.span_count(), late.at(0.5), p99,
      worst, late.ms.size(), static_cast<double>(run->trace.resident_bytes()) / (1 << 20));
  for (size_t i = 0; i < std::min<size_t>(works.size(), 5); ++i)
    std::printf("%6.1f ms of a core: %s\n", works[i].ms, works[i].what.c_str());
  return visible <= 700 && first_step <= 1000 && p99 <= 16 && worst <= 50 ? 0 : 1;
}

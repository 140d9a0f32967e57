// Opens a recording of 8 ranks with 100 million spans (made here; the argument asks for another number) in a real window:
// the time until the timeline stands there and until the Ranks page has its report, and the memory that it takes.
// Fails if the first picture takes over 10 s or the process more than 2 GiB.
#include <QApplication>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QTabBar>
#include <QTemporaryDir>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

#include "app/pages/ranks/ranks_panel.h"
#include "app/timeline/timeline_pane.h"
#include "app/widgets/theme.h"
#include "app/window/main_window.h"
#include "app/window/window_layout.h"
#include "profiling/run_file/run_file.h"

using namespace ws::app;
namespace prof = ws::prof;

namespace {

constexpr int kRanks = 8, kKernels = 250, kStepsOfBatch = 50;
constexpr int64_t kSpansOfStep = kRanks * (kKernels + 3);
constexpr prof::TimeNs kKernel = 4'000, kTransfer = 150'000;

prof::Span span(prof::TimeNs start, prof::TimeNs duration, prof::SpanKind kind, prof::Meaning meaning, uint32_t name, int64_t step) {
  prof::Span made{.start = start,
                  .duration = static_cast<uint64_t>(duration),
                  .kind = static_cast<uint64_t>(kind),
                  .meaning = static_cast<uint64_t>(meaning)};
  made.name = prof::NameId{name};
  made.step = static_cast<uint32_t>(step + 1);
  return made;
}

// Rank 5 comes 1 ms late in every tenth step.
prof::TraceBatch batch(int64_t first_step, prof::TimeNs& now, std::mt19937& random) {
  prof::TraceBatch out;
  out.names = {"step", "gemm", "relu", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"};
  out.details.push_back({});
  out.details[1].bytes = 25 << 20;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string group = "rank " + std::to_string(rank) + " · ";
    out.tracks.push_back({prof::TrackKind::Stream, "stream 7", group + "GPU 0", 0, {}, rank});
    out.tracks.push_back({prof::TrackKind::Stream, "stream 20", group + "GPU 0", 0, {}, rank});
    out.tracks.push_back({prof::TrackKind::Steps, "steps", group + "CPU", 0, {}, rank});
  }
  for (int64_t step = first_step; step < first_step + kStepsOfBatch; ++step) {
    const prof::TimeNs late = step % 10 == 9 ? 1'000'000 : 0, all_there = now + late + kKernels * kKernel;
    for (int rank = 0; rank < kRanks; ++rank) {
      const size_t at = static_cast<size_t>(rank) * 3;
      const prof::TimeNs begin = now + (rank == 5 ? late : rank * 100);
      for (int k = 0; k < kKernels; ++k)
        out.tracks[at].spans.push_back(span(begin + k * kKernel + random() % 400, kKernel - 500 - random() % 2'000, prof::SpanKind::Kernel,
                                            k % 3 ? prof::Meaning::Matrix : prof::Meaning::Pointwise, 1 + k % 2, step));
      const prof::TimeNs ready = begin + kKernels * kKernel;
      for (const auto& [from, to] : {std::pair{ready, all_there + kTransfer},
                                     std::pair{all_there + kTransfer + 1'000, all_there + 2 * kTransfer}}) {
        out.tracks[at + 1].spans.push_back(span(from, to - from, prof::SpanKind::Kernel, prof::Meaning::Communication, 3, step));
        out.tracks[at + 1].spans.back().detail = prof::DetailId{1};
      }
      out.tracks[at + 2].spans.push_back(
          span(begin - 50, all_there + 2 * kTransfer - begin, prof::SpanKind::Step, prof::Meaning::Other, 0, step));
    }
    now = all_there + 2 * kTransfer + 10'000;
  }
  return out;
}

void write_file(const std::string& path, int64_t spans) {
  prof::RunSummary summary;
  summary.name = "eight ranks";
  summary.origin = "recorded";
  prof::RunFileWriter writer(path, summary);
  prof::TimeNs now = 1'000'000;
  std::mt19937 random(7);
  for (int64_t step = 0; step * kSpansOfStep < spans; step += kStepsOfBatch) {
    writer.add(batch(step, now, random));
    writer.flush_if_due();
  }
  writer.finish();
}

long peak_mib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM")) return std::atol(line.c_str() + 6) / 1024;
  return 0;
}

// Returns the milliseconds until `there()`, or -1 after two minutes.
template <class There>
qint64 wait_for(const QElapsedTimer& clock, There there) {
  while (!there()) {
    if (clock.elapsed() > 120'000) return -1;
    QApplication::processEvents(QEventLoop::AllEvents, 5);
  }
  return clock.elapsed();
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t spans = argc > 1 ? std::atoll(argv[1]) : 100'000'000;
  const QTemporaryDir folder;
  const QString path = folder.path() + "/ranks.wsrun";
  if (const pid_t child = fork(); child == 0) {  // so that its memory is not counted
    write_file(path.toStdString(), spans);
    _exit(0);
  } else {
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      std::puts("the file could not be made");
      return 1;
    }
  }
  QApplication app(argc, argv);
  set_theme(app, ThemeName::Dark);
  const QTemporaryDir home;
  MainWindow window(home.path());
  window.windowLayout()->setKeep(false);
  window.resize(1920, 1080);
  window.show();
  QElapsedTimer clock;
  clock.start();
  wait_for(clock, [&] { return window.workspace()->device()->info() != nullptr; });
  clock.restart();
  window.openFiles({path});
  auto* pane = window.findChild<TimelinePane*>();
  const qint64 opened = wait_for(clock, [&] {
    const Run* run = window.workspace()->shownRun();
    return run && run->loaded && pane->model()->lanes().size() >= kRanks;
  });
  window.grab();
  const qint64 picture = clock.elapsed();
  auto* ranks = window.findChild<RanksPanel*>();
  for (int tab = 0; tab < window.tabs()->count(); ++tab)
    if (window.tabs()->tabText(tab) == "Ranks") window.tabs()->setCurrentIndex(tab);
  const qint64 report = wait_for(clock, [&] { return ranks->report().straggler.rank == 5; });
  const Run* run = window.workspace()->shownRun();
  window.grab().save(argc > 2 ? QString(argv[2]) : folder.path() + "/picture.png");
  std::printf("spans %zu, file %.2f GB\nloaded after %lld ms, first picture after %lld ms, ranks compared after %lld ms\nmemory %ld MiB\n",
              run ? run->trace.span_count() : 0, static_cast<double>(QFileInfo(path).size()) * 1e-9,
              static_cast<long long>(opened), static_cast<long long>(picture), static_cast<long long>(report), peak_mib());
  return opened >= 0 && picture <= 10'000 && report >= 0 && peak_mib() <= 2048 ? 0 : 1;
}

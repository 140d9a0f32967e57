// From an event on another machine to its pixel in the timeline here, over a slow line.
#include <QTest>
#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "app/core/remote/job_request.h"
#include "app/timeline/timeline_view.h"
#include "app/window/machine_actions.h"
#include "profiling/base/clock.h"
#include "tests/app/support/loop_turns.h"
#include "tests/app/support/window_home.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/machine.h"
#include "tests/support/made_job.h"

using namespace ws;
using namespace ws::app;

namespace {

// Notes after each painting of the timeline which time it shows last.
class Paintings : public QObject {
 public:
  struct Painting {
    int64_t until, done;  // the last time that it shows; when it was done
  };
  Paintings(TimelineView& view, const Run& run) : view_(view), run_(run) { view.installEventFilter(this); }
  bool eventFilter(QObject* view, QEvent* event) override {
    if (event->type() != QEvent::Paint || painting_) return false;
    painting_ = true;
    QCoreApplication::sendEvent(view, event);
    painting_ = false;
    all_.push_back({std::min(view_.timelineGeometry().range.end, run_.trace.last_time()), prof::steady_ns()});
    return true;
  }
  // How long each 100 µs of the time after `from` had to wait for its first painting, sorted.
  std::vector<double> waits_ms(int64_t from) const {
    std::vector<double> waits;
    for (const Painting& painting : all_)
      for (; from < painting.until; from += 100'000) waits.push_back(static_cast<double>(painting.done - from) * 1e-6);
    std::ranges::sort(waits);
    return waits;
  }
  size_t count() const { return all_.size(); }

 private:
  TimelineView& view_;
  const Run& run_;
  std::vector<Painting> all_;
  bool painting_ = false;
};

// True if a kernel that ends where the timeline ends has a colour of its own in the picture.
bool newest_kernel_is_drawn(TimelineView& view) {
  const QImage picture = view.grab().toImage();
  const qreal ratio = picture.devicePixelRatio();
  const QColor back = picture.pixelColor(QPointF(view.width() - 3, view.height() - 3).toPoint() * ratio);
  const auto drawn = [&](int near, int y) {  // a thin block can be hit from beside it
    for (int x = near - 3; x < std::min(near + 4, view.width()); ++x)
      if (picture.pixelColor(QPoint(x, y) * ratio) != back) return true;
    return false;
  };
  const TimeRange range = view.timelineGeometry().range;
  for (int x = view.width() - 1; x > view.width() - 10; --x)
    for (int y = view.timelineGeometry().top(); y < view.height(); ++y)
      if (const auto hit = view.hitAt({x, y}); hit && static_cast<prof::SpanKind>(hit->rect.span.kind) == prof::SpanKind::Kernel)
        return range.end - hit->rect.span.start < range.length() / 50 && drawn(x, hit->box.center().y());
  return false;
}

}  // namespace

class RemotePixelsTest : public QObject, private WindowHome {
  Q_OBJECT
 private:
  QString there() const { return home_.path() + "/there"; }
  QString address() const { return "pipe:exec " WARPSIGHT_SLOW_LINE " 25 100000000 0 " WARPSIGHT_CLI " serve --folder " + there(); }

 private slots:
  void initTestCase() { moveIn(); }
  void anEventIsSeenInTime();
};

// 500,000 spans a second over 100 Mbit/s with a turn of 50 ms.
void RemotePixelsTest::anEventIsSeenInTime() {
  const std::string request = train_request(RunSpec{}, "made", {}, false).dump();
  test::MadeJob job({there().toStdString(), "made"}, 500'000, 10'000, request);
  job.begin_at(prof::steady_ns());
  std::jthread telling([&job](const std::stop_token& ended) {
    for (; !ended.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(10))) job.send_until(prof::steady_ns());
  });
  auto window = open();
  window->resize(1600, 972);
  window->machines()->connectTo(address());
  TrainingSession& session = *window->workspace()->session();
  QVERIFY(QTest::qWaitFor([&] { return session.run() && session.run()->trace.span_count() > 100'000; }, 60'000));
  auto* timeline = window->findChild<TimelineView*>("timeline");
  QVERIFY(timeline && timeline->isVisible());
  std::optional<Paintings> paintings(std::in_place, *timeline, *session.run());
  const test::Pulse pulse;
  const test::LoopTurns turns;
  const int64_t from = prof::steady_ns();
  const size_t enough = test::kSanitized ? 100 : 30'000;  // of the two million events that are sent in 4 s
  std::vector<double> waits;
  do QTest::qWait(4000);
  while ((waits = paintings->waits_ms(from)).size() <= enough && prof::steady_ns() - from < 60'000'000'000);
  QVERIFY2(waits.size() > enough, qPrintable(QString::number(waits.size())));
  const double median = waits[waits.size() / 2], p99 = waits[waits.size() * 99 / 100];
  std::printf("event to pixel: %.0f ms (median), %.0f ms (p99), %zu paintings; the window's thread worked at most %.0f ms at a time; "
              "the machine made others wait %.0f ms\n",
              median, p99, paintings->count(), turns.longest_ms(), pulse.longest_ms());
  QVERIFY(p99 <= test::busy() * 250 + 4 * pulse.longest_ms());
  QVERIFY(turns.longest_ms() <= test::busy() * 100);
  telling.request_stop();
  telling.join();
  QVERIFY2(newest_kernel_is_drawn(*timeline), "what counts as painted is in the picture");
}

WARPSIGHT_QTEST(RemotePixelsTest)
#include "remote_pixels_test.moc"

// Two runs in a timeline, for the tests that drive it.
#pragma once
#include "app/timeline/timeline_pane.h"
#include "tests/support/synthetic_trace.h"

namespace ws::app {

// Two runs of one network, the second thirteen times as slow a step.
struct TwoRuns {
  Run fast, slow;
  TimeCursor cursor;
  Focus focus;
  TimelinePane pane{&cursor, &focus};

  explicit TwoRuns(QSize size = {1240, 674}) {
    fast.id = "fast", fast.title = "graph · arena", fast.slot = 0, fast.summary = Summary{};
    slow.id = "slow", slow.title = "eager · direct", slow.slot = 1, slow.summary = Summary{};
    test::add_steps(fast.trace, test::StepStyle::GraphArena, 100, 400);
    test::add_steps(slow.trace, test::StepStyle::EagerDirect, 100, 200);
    pane.resize(size);
    pane.show();
    pane.setRuns({&fast, &slow});
  }
  TimelineView& view() { return *pane.view(); }
  TimelineModel& model() { return *pane.model(); }
  TimeRange range() { return model().range(); }

  const Lane& lane(int run, prof::TrackKind kind) {
    for (const Lane& lane : model().lanes())
      if (lane.run == run && lane.kind == LaneKind::Spans && lane.track_kind == kind) return lane;
    throw std::runtime_error("no such lane");
  }
  QPoint middleOf(const Lane& lane, int x) { return {x, view().timelineGeometry().laneY(lane) + lane.height / 2}; }
  // A pixel of that lane where a single block stands.
  QPoint blockIn(const Lane& lane) {
    for (int x = 400; x < view().width(); ++x)
      if (const auto hit = view().hitAt(middleOf(lane, x));
          hit && hit->rect.count == 1 && hit->rect.x1 - hit->rect.x0 > 8)
        return middleOf(lane, x + 2);
    return {};
  }
};

}  // namespace ws::app

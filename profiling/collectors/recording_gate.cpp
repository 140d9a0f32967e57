#include "profiling/collectors/recording_gate.h"

#include <algorithm>

namespace ws::prof {

namespace {

// Between windows, graphs keep one record per launch. Eager kernels pause, because they would cost as much as inside.
bool between_node_windows(const GateSetting& setting, const GateState& state) {
  return setting.node_windows && state.level == TraceLevel::Graph && !state.node_window && !state.graphs_seen;
}

// Each part of a step on each block is a span: with all steps of a launch, that would be about ten million spans a
// second.
int64_t stamped_steps(TraceLevel level) {
  constexpr int64_t kSome = 16, kMany = 64;
  if (level == TraceLevel::Full) return kMany;
  return level == TraceLevel::Kernels ? kSome : 0;
}

}  // namespace

// Between clock windows the driver goes on recording, and the parser drops those records. Reason: if kernel records are
// switched on again while the program launches, the driver sometimes records no more kernels.
Wanted wanted(const GateSetting& setting, const GateState& state) {
  Wanted wanted;
  wanted.listener = state.level != TraceLevel::Off;
  const auto graphs_are_whole = [&](TraceLevel level) { return level == TraceLevel::Graph || (setting.whole_graphs && level > TraceLevel::Graph); };
  wanted.kinds.whole_graphs = setting.gpu && graphs_are_whole(state.level);
  if (!state.capturing) {
    wanted.gap = Gap::Uncaptured;
    return wanted;
  }
  const bool quiet = state.sampling > 0 || state.paused || !state.clock_open || between_node_windows(setting, state);
  if (quiet) wanted.gap = Gap::Untraced;
  const TraceLevel now = quiet ? std::min(state.level, TraceLevel::Steps) : state.level;
  wanted.marks.ops = now >= TraceLevel::Graph;
  wanted.marks.ranges = setting.program_ranges && state.level >= TraceLevel::Steps;
  wanted.marks.nvtx = setting.nvtx && !setting.program_ranges;
  if (!setting.gpu) return wanted;
  const TraceLevel of_gpu = setting.by_clock && state.sampling == 0 ? state.level : now;
  wanted.kinds.allocations = of_gpu >= TraceLevel::Steps;
  wanted.kinds.kernels = of_gpu >= TraceLevel::Graph && !state.settling;
  wanted.kinds.graph_runs = graphs_are_whole(of_gpu) && !state.node_window && !state.settling;
  wanted.kinds.calls = of_gpu >= TraceLevel::Full;
  wanted.kinds.hide_calls = setting.by_clock && quiet;
  wanted.kinds.sampling = state.level >= TraceLevel::Steps ? state.sampling : 0;
  wanted.stamped_steps = stamped_steps(state.level);
  return wanted;
}

void RecordingGate::begin(const GateSetting& setting, const GateState& state, int64_t now) {
  const std::lock_guard lock(mutex_);
  setting_ = setting;
  open_ = true;
  parts_.set_hooks(state.capturing, now);
  if (!state.capturing) times_.uncaptured.close(now);
  state_ = state;
  apply(state, When::Anywhere, now);
}

void RecordingGate::end() {
  const std::lock_guard lock(mutex_);
  open_ = false;
  overdue_at_ = 0;
  parts_.set_stamps(0);
  parts_.set_listener(false);
}

void RecordingGate::step(bool pause, bool node_window, int64_t now, uint32_t sampling) {
  const GateState seen = state();
  const bool graphs = setting_.node_windows && parts_.graphs_seen();
  if (pause == seen.paused && node_window == seen.node_window && sampling == seen.sampling && graphs == seen.graphs_seen && !seen.settling && overdue_at_ == 0)
    return;
  const std::lock_guard lock(mutex_);
  GateState next = state();  // the clock window may have changed meanwhile
  next.paused = pause;
  next.node_window = node_window;
  next.graphs_seen = graphs;
  next.sampling = static_cast<uint8_t>(sampling);
  apply(next, When::BetweenSteps, now);
}

void RecordingGate::set_clock(bool open, int64_t now) {
  const std::lock_guard lock(mutex_);
  GateState next = state();
  next.clock_open = open;
  apply(next, When::Anywhere, now);
}

// The program's own thread is here, and may capture a graph.
void RecordingGate::set_sampling(uint32_t sampling, int64_t now) {
  const std::lock_guard lock(mutex_);
  GateState next = state();
  if (next.sampling == sampling) return;
  next.sampling = static_cast<uint8_t>(sampling);
  apply(next, When::Anywhere, now);
}

// The program's own thread is here, so no step is open on it that launches meanwhile.
bool RecordingGate::set_capturing(bool on, int64_t now) {
  const std::lock_guard lock(mutex_);
  GateState next = state();
  if (!open_ || on == next.capturing) return false;
  next.capturing = on;
  apply(next, When::BetweenSteps, now);
  return true;
}

bool RecordingGate::set_level(TraceLevel level, int64_t now, int64_t latest) {
  const std::lock_guard lock(mutex_);
  GateState next = state();
  if (!open_ || level == next.level) return false;
  next.level = level;
  if (latest == 0)
    apply(next, When::Anywhere, now);
  else
    state_ = next, overdue_at_ = latest;
  return true;
}

void RecordingGate::apply_overdue(int64_t now) {
  if (overdue_at_ == 0 || now <= overdue_at_) return;
  const std::lock_guard lock(mutex_);
  if (overdue_at_ != 0) apply(state(), When::Anywhere, now);
}

void RecordingGate::add_gpu(bool gpu, int64_t now) {
  const std::lock_guard lock(mutex_);
  setting_.gpu = gpu;
  GateState next = state();
  next.clock_open = true;  // while the window is closed, the work that begins the clock would not be seen
  apply(next, When::Anywhere, now);
}

// After node records, graphs run once without any records before they are recorded as a whole. Clock windows have no
// step boundary where this could happen. The parts are set even if nothing else is wanted than before: a tracer changes
// its kinds itself while graphs end.
void RecordingGate::apply(GateState next, When when, int64_t now) {
  if (!open_) return;
  const GateState before = state();
  next.settling = false;
  Wanted wants = wanted(setting_, next);
  next.settling = !setting_.by_clock && wants.kinds.graph_runs && settled_ < 2 && parts_.graphs_unsettled();
  settled_ = next.settling ? settled_ + 1 : 0;
  if (next.settling) wants = wanted(setting_, next);
  state_ = next;
  overdue_at_ = 0;
  const bool samples_are_read = before.sampling > 0 && next.sampling == 0;  // as a part of the gap, because the program waits
  if (!samples_are_read) note_gap(wants.gap, now);
  if (before.clock_open && !next.clock_open) times_.clock.close(now);
  if (!before.clock_open && next.clock_open) times_.clock.open(now);
  if (before.capturing && !next.capturing) times_.uncaptured.close(now);
  if (!before.capturing && next.capturing) times_.uncaptured.open(now);
  if (before.capturing && !next.capturing) parts_.set_hooks(false, now);
  if (setting_.gpu) parts_.set_gpu(wants.kinds, when == When::BetweenSteps);
  if (samples_are_read) note_gap(wants.gap, parts_.time_after(now));
  parts_.set_marks(wants.marks);
  parts_.set_stamps(wants.stamped_steps);
  parts_.set_listener(wants.listener);
  if (!before.capturing && next.capturing) parts_.set_hooks(true, now);
}

// Nothing is drawn before the first capture range.
void RecordingGate::note_gap(Gap gap, int64_t now) {
  const bool first = gap_ == Gap::Uncaptured && gap != Gap::Uncaptured && !std::exchange(captured_, true);
  if (first || gap_ == Gap::None) gap_since_ = now;
  if (gap == Gap::None && gap_ != Gap::None && now > gap_since_) gaps_.emplace_back(gap_since_, now);
  gap_ = gap;
}

std::vector<std::pair<int64_t, int64_t>> RecordingGate::take_gaps(int64_t now, bool last) {
  const std::lock_guard lock(mutex_);
  if (gap_ == Gap::Untraced && now > gap_since_ && (last || !state().paused))
    gaps_.emplace_back(std::exchange(gap_since_, now), now);
  return std::exchange(gaps_, {});
}

}  // namespace ws::prof

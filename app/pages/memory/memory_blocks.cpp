#include "app/pages/memory/memory_blocks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "app/core/runs/plan_times.h"
#include "app/text/units.h"
#include "app/timeline/time_scale.h"
#include "engine/passes/lifetimes.h"
#include "engine/plan/op_tags.h"
#include "profiling/analysis/trace_queries.h"

namespace ws::app {

MemoryContent content_of_phase(const std::string& phase) {
  if (phase == "forward") return MemoryContent::Activations;
  if (phase == "backward") return MemoryContent::Gradients;
  return phase == "optimizer" ? MemoryContent::Optimizer : MemoryContent::Other;
}

QString content_name(MemoryContent content) {
  switch (content) {
    case MemoryContent::Activations:
      return QObject::tr("activations");
    case MemoryContent::Gradients:
      return QObject::tr("gradients");
    case MemoryContent::Weights:
      return QObject::tr("weights");
    case MemoryContent::Optimizer:
      return QObject::tr("optimizer");
    case MemoryContent::Batch:
      return QObject::tr("batch");
    case MemoryContent::Other:
      break;
  }
  return QObject::tr("other");
}

// The colours of the work that is most of the phase that makes them.
prof::Meaning meaning_of(MemoryContent content) {
  switch (content) {
    case MemoryContent::Activations:
      return prof::Meaning::Matrix;
    case MemoryContent::Gradients:
      return prof::Meaning::Pointwise;
    case MemoryContent::Weights:
      return prof::Meaning::Loss;
    case MemoryContent::Optimizer:
      return prof::Meaning::Optimizer;
    case MemoryContent::Batch:
      return prof::Meaning::Copy;
    case MemoryContent::Other:
      break;
  }
  return prof::Meaning::Other;
}

namespace {

constexpr uint64_t kSeamFrom = 4u << 20;  // larger gaps between addresses are cut out
constexpr size_t kMostEvents = 20'000;

// Returns the op that first writes a buffer, not counting allocations.
int writer_of(const Plan& plan, BufferId id) {
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].kind == OpKind::Alloc) continue;
    if (std::find(plan.ops[i].out.begin(), plan.ops[i].out.end(), id) != plan.ops[i].out.end())
      return static_cast<int>(i);
  }
  return -1;
}

void add_sections(MemoryMap& map, const Plan& plan) {
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const QString phase = QString::fromUtf8(to_string(plan.ops[i].phase).data());
    if (map.sections.empty() || map.sections.back().second != phase)
      map.sections.push_back({static_cast<double>(i), phase});
  }
}

std::string block_of(const Plan& plan, const Op& op) {
  return op.layer >= 0 && static_cast<size_t>(op.layer) < plan.layer_parts.size() ? plan.layer_parts[static_cast<size_t>(op.layer)] : "";
}

QString layer_text(const Plan& plan, const Op& op, bool folded = true) {
  if (op.layer < 0 || static_cast<size_t>(op.layer) >= plan.layer_names.size()) return {};
  const std::string block = block_of(plan, op);
  return QString::fromStdString(folded && !block.empty() ? block : plan.layer_names[static_cast<size_t>(op.layer)]);
}

// True if the backward phase reads the buffer.
bool read_on_the_way_back(const Plan& plan, BufferId id) {
  return std::ranges::any_of(plan.ops, [id](const Op& op) {
    return op.phase == Phase::Backward && op.kind != OpKind::Free && std::ranges::find(op.in, id) != op.in.end();
  });
}

void add_layers(MemoryMap& map, const Plan& plan, const std::function<bool(const std::string&)>& folded) {
  if (plan.layer_names.size() < 2) return;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    const bool forward = op.phase == Phase::Forward, backward = op.phase == Phase::Backward;
    const std::string block = block_of(plan, op);
    const QString name = layer_text(plan, op, !block.empty() && folded(block));
    if (name.isEmpty() || (!forward && !backward) || is_bookkeeping(op.kind)) continue;
    if (map.layers.empty() || map.layers.back().name != name || map.layers.back().backward != backward)
      map.layers.push_back({static_cast<double>(i), 0, name, backward, 0, block});
    map.layers.back().x1 = static_cast<double>(i + 1);
    for (const BufferId id : op.out)
      if (forward && lives_in_step(plan.buffer(id)) && read_on_the_way_back(plan, id))
        map.layers.back().kept += static_cast<uint64_t>(plan.buffer(id).bytes());
  }
}

void add_use(MemoryMap& map) {
  std::map<double, int64_t> changes;
  for (const MapBlock& block : map.blocks)
    changes[block.x0] += static_cast<int64_t>(block.bytes), changes[block.x1] -= static_cast<int64_t>(block.bytes);
  int64_t used = 0;
  for (const auto& [x, change] : changes) {
    used += change;
    map.use.push_back({x, static_cast<uint64_t>(std::max<int64_t>(0, used)), map.reserved});
    if (static_cast<uint64_t>(std::max<int64_t>(0, used)) > map.peak)
      map.peak = static_cast<uint64_t>(used), map.peak_x = x;
  }
  if (map.reserved == 0)
    for (UsePoint& point : map.use) point.reserved = point.used;
}

// Blocks of one segment keep their distances. The empty address space between segments is removed.
void fold_addresses(MemoryMap& map) {
  std::vector<MapBlock*> order;
  for (MapBlock& block : map.blocks) order.push_back(&block);
  std::sort(order.begin(), order.end(), [](const MapBlock* a, const MapBlock* b) { return a->y0 < b->y0; });
  uint64_t reached = 0, removed = 0;
  bool first = true;
  for (MapBlock* block : order) {
    if (first) removed = block->y0, reached = block->y0, first = false;
    if (block->y0 > reached + kSeamFrom) {
      map.seams.push_back(reached - removed);
      removed += block->y0 - reached;
    }
    reached = std::max(reached, block->y1);
    block->y0 -= removed, block->y1 -= removed;
    map.height = std::max(map.height, block->y1);
  }
}

MapBlock block_of(const prof::Trace& trace, const prof::MemoryEvent& event) {
  MapBlock block;
  block.x0 = static_cast<double>(event.time), block.y0 = event.address, block.y1 = event.address + event.bytes;
  block.bytes = event.bytes, block.op = event.op;
  if (event.op >= trace.ops.size() || event.op == prof::kNoOp) return block;
  const prof::OpInfo& op = trace.ops[event.op];
  block.name = QString::fromStdString(op.name), block.content = content_of_phase(op.phase);
  return block;
}

}  // namespace

namespace {

MemoryContent content_of(const Plan& plan, BufferId id) {
  switch (plan.buffer(id).role) {
    case Role::Batch:
      return MemoryContent::Batch;
    case Role::Parameter:
    case Role::Shadow:
      return MemoryContent::Weights;
    case Role::State:
      return MemoryContent::Optimizer;
    case Role::Metric:
      return MemoryContent::Other;
    case Role::Temp:
      break;
  }
  const int writer = writer_of(plan, id);
  if (writer < 0) return MemoryContent::Other;
  const Op& op = plan.ops[static_cast<size_t>(writer)];
  if (op.phase == Phase::Update) return MemoryContent::Optimizer;
  constexpr OpKind kGradients[] = {OpKind::SoftmaxGrad, OpKind::SquaredErrorGrad, OpKind::SoftmaxCrossEntropy, OpKind::SquaredErrorFused, OpKind::OutputLayer};
  const bool of_loss = std::ranges::find(kGradients, op.kind) != std::end(kGradients);
  return op.phase == Phase::Backward || of_loss ? MemoryContent::Gradients : MemoryContent::Activations;
}

}  // namespace

std::map<prof::OpTag, MapBlock> contents(const Plan& plan, const prof::Trace& trace) {
  std::map<prof::OpTag, MapBlock> found;
  const std::vector<prof::OpTag> tags = op_tags(plan, trace);
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const int writer = plan.ops[i].kind == OpKind::Alloc && !plan.ops[i].out.empty() ? writer_of(plan, plan.ops[i].out.front()) : -1;
    if (writer < 0 || tags[i] == prof::kNoOp) continue;
    const Op& op = plan.ops[static_cast<size_t>(writer)];
    MapBlock& block = found[tags[i]];
    block.buffer = plan.ops[i].out.front(), block.layer = layer_text(plan, op);
    block.name = QString::fromStdString(plan.buffer(block.buffer).name), block.content = content_of(plan, block.buffer);
  }
  return found;
}

void name_contents(MemoryMap& map, const std::map<prof::OpTag, MapBlock>& contents) {
  for (MapBlock& block : map.blocks)
    if (const auto at = contents.find(block.op); at != contents.end())
      block.buffer = at->second.buffer, block.layer = at->second.layer, block.name = at->second.name,
      block.content = at->second.content;
}

MemoryMap plan_map(const Plan& plan, const std::function<bool(const std::string&)>& folded) {
  MemoryMap map;
  map.x_end = std::max<double>(1, static_cast<double>(plan.ops.size()));
  map.reserved = static_cast<uint64_t>(std::max<int64_t>(0, plan.arena_bytes));
  map.height = std::max<uint64_t>(1, map.reserved);
  const auto lives = lifetimes(plan);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.offset < 0 || lives[i].first < 0) continue;
    const int writer = writer_of(plan, static_cast<BufferId>(i));
    MapBlock block{static_cast<double>(lives[i].first),
                   lives[i].last + 1.0,
                   static_cast<uint64_t>(buffer.offset),
                   static_cast<uint64_t>(buffer.offset + buffer.bytes()),
                   QString::fromStdString(buffer.name),
                   static_cast<uint64_t>(buffer.bytes()),
                   static_cast<BufferId>(i)};
    if (writer >= 0) block.layer = layer_text(plan, plan.ops[static_cast<size_t>(writer)]);
    block.content = content_of(plan, block.buffer);
    map.height = std::max(map.height, block.y1);
    map.sum_bytes += block.bytes;
    map.blocks.push_back(std::move(block));
  }
  add_sections(map, plan);
  add_layers(map, plan, folded);
  add_use(map);
  for (const Op& op : plan.ops) map.allocations += op.kind == OpKind::Alloc ? op.out.size() : 0;
  return map;
}

namespace {

// The calls to the program's own allocator. The driver's calls would mostly repeat them; they
// count only if there are no others.
std::vector<prof::MemoryEvent> events_of_steps(const prof::Trace& trace, int source) {
  const auto driver = [&](const prof::MemoryEvent& event) {
    return event.source < trace.memory_sources.size() && prof::is_driver_source(trace.memory_sources[event.source]);
  };
  const auto& all = trace.memory();
  if (source >= 0) {
    std::vector<prof::MemoryEvent> its;
    for (auto event = all.rbegin(); event != all.rend() && its.size() < kMostEvents; ++event)
      if (event->source == source) its.push_back(*event);
    std::ranges::reverse(its);
    return its;
  }
  const auto newest = all.end() - static_cast<std::ptrdiff_t>(std::min(all.size(), kMostEvents));
  std::vector<prof::MemoryEvent> own;
  std::copy_if(newest, all.end(), std::back_inserter(own), [&](const auto& event) { return !driver(event); });
  return own.empty() ? std::vector<prof::MemoryEvent>(newest, all.end()) : own;
}

// The most that was taken from the driver at once, from event `first` on.
uint64_t most_reserved(const std::vector<prof::MemoryEvent>& events, size_t first) {
  std::map<uint64_t, uint64_t> taken;
  uint64_t now = 0, most = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == prof::MemoryAction::Reserve) now += events[i].bytes, taken[events[i].address] = events[i].bytes;
    if (const auto at = taken.find(events[i].address); events[i].kind == prof::MemoryAction::Release && at != taken.end())
      now -= at->second, taken.erase(at);
    if (i >= first) most = std::max(most, now);
  }
  return most;
}

void add_steps(MemoryMap& map, const prof::Trace& trace, int64_t from, int64_t last) {
  for (int64_t step = from; step <= last; ++step)
    if (const prof::Span* span = span_of_step(trace, step - 1))
      map.sections.push_back({static_cast<double>(span->start), QString("step %1").arg(step - 1)});
  map.by_step = !map.sections.empty();
}

// Events of another program have no step: its own marks have.
void add_marked_steps(MemoryMap& map, const prof::Trace& trace) {
  constexpr uint64_t kMost = 40;  // more have no width
  const prof::Span *first = prof::step_at(trace, static_cast<prof::TimeNs>(map.x_begin)), *last = prof::step_at(trace, static_cast<prof::TimeNs>(map.x_end));
  if (first && last && first->step > 0 && last->step > first->step && last->step - first->step < kMost)
    add_steps(map, trace, static_cast<int64_t>(first->step), static_cast<int64_t>(last->step));
}

constexpr size_t kFewestSteps = 4;

std::vector<double> lengths_of_steps(const MemoryMap& map) {
  std::vector<double> lengths;
  for (size_t i = 0; i + 1 < map.sections.size(); ++i) lengths.push_back(map.sections[i + 1].first - map.sections[i].first);
  return lengths;
}

double median_of(std::vector<double> lengths) {
  std::ranges::nth_element(lengths, lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2));
  return lengths[lengths.size() / 2];
}

// The first steps warm up: one that is many times longer than the median would leave little width to normal steps.
double normal_begin(const MemoryMap& map) {
  constexpr double kManyTimes = 4;
  if (!map.by_step || map.sections.size() < kFewestSteps) return map.x_begin;
  const std::vector<double> lengths = lengths_of_steps(map);
  const double most = kManyTimes * median_of(lengths);
  const size_t normal = static_cast<size_t>(std::ranges::find_if(lengths, [most](double length) { return length <= most; }) - lengths.begin());
  return normal == 0 || map.sections[normal].first > map.peak_x ? map.x_begin : map.sections[normal].first;
}

// Takes the step that a view opens with.
void choose_step(MemoryMap& map) {
  constexpr double kLonger = 2;
  map.x_from = map.x_normal, map.x_until = map.x_end;
  if (!map.by_step || map.sections.size() < kFewestSteps) return;
  const std::vector<double> lengths = lengths_of_steps(map);
  const std::vector<UsePoint> peaks = peaks_of_steps(map);
  const double most = kLonger * median_of(lengths);
  std::optional<size_t> best;
  for (size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] <= most && (!best || peaks[i].used > peaks[*best].used)) best = i;
  if (best) map.x_from = map.sections[*best].first, map.x_until = map.sections[*best + 1].first;
}

void add_times(MemoryMap& map) {
  constexpr double kWidth = 6, kApart = 1;  // approximate
  const TimeRange whole{static_cast<prof::TimeNs>(map.x_begin), static_cast<prof::TimeNs>(map.x_end)};
  const Ruler times = ruler({whole, 0, kWidth}, kApart);
  for (const Ruler::Tick& tick : times.ticks)
    map.sections.push_back({static_cast<double>(tick.time), offset_time(tick.time, times.step)});
}

}  // namespace

MemoryMap event_map(const prof::Trace& trace, int64_t steps, int source) {
  MemoryMap map;
  map.by_op = false;
  std::vector<prof::MemoryEvent> events = events_of_steps(trace, source);
  // Events after the last step (an evaluation or the end of the run) belong to no step.
  while (events.size() > 1 && events.back().step == 0 && events.front().step + events[events.size() / 2].step > 0)
    events.pop_back();
  if (events.empty()) return map;
  const uint32_t last_step = events.back().step;
  const auto from_step = static_cast<uint32_t>(std::max<int64_t>(0, static_cast<int64_t>(last_step) - steps));
  size_t first = 0;
  while (last_step > 0 && first + 1 < events.size() && events[first].step <= from_step) ++first;
  map.x_begin = static_cast<double>(events[first].time), map.x_end = static_cast<double>(events.back().time) + 1;
  map.reserved = most_reserved(events, first);
  std::map<uint64_t, MapBlock> open;
  for (size_t i = first; i < events.size(); ++i) {
    const prof::MemoryEvent& event = events[i];
    if (event.kind == prof::MemoryAction::Allocate)
      open[event.address] = block_of(trace, event), ++map.allocations, map.sum_bytes += event.bytes;
    if (event.kind != prof::MemoryAction::Free) continue;
    auto it = open.find(event.address);
    if (it == open.end()) continue;
    it->second.x1 = static_cast<double>(event.time);
    map.blocks.push_back(std::move(it->second));
    open.erase(it);
  }
  for (auto& [address, block] : open) block.x1 = map.x_end, map.blocks.push_back(std::move(block));
  map.steps = last_step > 0 ? steps : 0;
  last_step > 0 ? add_steps(map, trace, from_step, last_step) : add_marked_steps(map, trace);
  if (last_step == 0 && !map.by_step) add_times(map);
  fold_addresses(map);
  add_use(map);
  map.x_normal = normal_begin(map);
  choose_step(map);
  return map;
}

namespace {

std::vector<MemoryPart> largest_first(const std::map<QString, uint64_t>& bytes) {
  std::vector<MemoryPart> parts;
  for (const auto& [name, sum] : bytes)
    if (sum > 0) parts.push_back({name, sum});
  std::ranges::stable_sort(parts, std::greater(), &MemoryPart::bytes);
  return parts;
}

struct Live {
  uint64_t bytes = 0, blocks = 0;
};
std::map<MemoryContent, Live> live_at(const MemoryMap& map, double x) {
  std::map<MemoryContent, Live> live;
  for (const MapBlock& block : map.blocks)
    if (block.x0 <= x && x < block.x1) live[block.content].bytes += block.bytes, ++live[block.content].blocks;
  return live;
}

}  // namespace

QString short_bytes_text(double bytes) {
  if (bytes < 1024) return bytes_text(bytes);
  double value = bytes;
  while (value >= 1024) value /= 1024;
  const int decimals = 2 - (value >= 9.995) - (value >= 99.95);
  return fixed_text(value, decimals) + ' ' + bytes_text(bytes).section(' ', -1);
}

QString growth_between(const MemoryMap& map, double from, double to) {
  auto before = live_at(map, from);
  const auto after = live_at(map, to);
  const auto grows = [&before](const auto& now) { return static_cast<double>(now.second.bytes) - static_cast<double>(before[now.first].bytes); };
  const auto most = std::ranges::max_element(after, {}, grows);
  if (most == after.end() || grows(*most) <= 0) return {};
  const Live &was = before[most->first], &is = most->second;
  const auto count = [](uint64_t blocks) { return count_text(static_cast<int64_t>(blocks)); };
  const QString name = most->first == MemoryContent::Other ? QObject::tr("other blocks") : content_name(most->first);
  const QString blocks = is.blocks != was.blocks ? QObject::tr("from %1 blocks to %2").arg(count(was.blocks), count(is.blocks))
                         : is.blocks == 1        ? QObject::tr("in one block")
                                                 : QObject::tr("still %1 blocks, but larger ones").arg(count(is.blocks));
  return QObject::tr("%1 from %2 to %3, %4").arg(name, short_bytes_text(static_cast<double>(was.bytes)), short_bytes_text(static_cast<double>(is.bytes)), blocks);
}

std::vector<MemoryPart> parts_at_peak(const MemoryMap& map) {
  std::map<QString, uint64_t> bytes;
  for (const auto& [content, sum] : live_at(map, map.peak_x)) bytes[content_name(content)] += sum.bytes;
  return largest_first(bytes);
}

std::vector<MemoryPart> kept_parts(const Plan& plan) {
  MemoryPart weights{content_name(MemoryContent::Weights)}, state{content_name(MemoryContent::Optimizer)};
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.role == Role::Parameter || buffer.role == Role::Shadow) weights.bytes += static_cast<uint64_t>(buffer.bytes());
    if (buffer.role == Role::State) state.bytes += static_cast<uint64_t>(buffer.bytes());
  }
  std::vector<MemoryPart> parts{weights, state};
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes == 0; });
  return parts;
}

std::vector<UsePoint> peaks_of_steps(const MemoryMap& map) {
  std::vector<UsePoint> peaks(map.by_step ? map.sections.size() : 0);
  size_t step = 0;
  for (const UsePoint& point : map.use) {
    while (step + 1 < peaks.size() && point.x >= map.sections[step + 1].first) ++step;
    if (step < peaks.size() && point.x >= map.sections[step].first) peaks[step] = std::max(peaks[step], point, [](const UsePoint& a, const UsePoint& b) { return a.used < b.used; });
  }
  return peaks;
}

uint64_t used_at(const MemoryMap& map, double x) {
  uint64_t used = 0;
  for (const UsePoint& point : map.use)
    if (point.x <= x) used = point.used;
  return used;
}

}  // namespace ws::app

#include "profiling/trace/trace_batch.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ws::prof {

namespace {

constexpr int kMaxLanes = 4;

void copy_ops(Trace& trace, const TraceBatch& batch) {
  OpTag highest = 0;
  for (const BatchTrack& track : batch.tracks) {
    for (const Span& span : track.spans) highest = std::max(highest, span.op);
  }
  for (const MemoryEvent& event : batch.memory) highest = std::max(highest, event.op);
  for (const StepAllocations& calls : batch.allocations) highest = std::max(highest, calls.op);
  for (size_t tag = trace.ops.size(); tag <= highest; ++tag) trace.ops.push_back(op_info(static_cast<OpTag>(tag)));
}

void append_memory(Trace& trace, TraceBatch& batch) {
  std::vector<uint8_t> source_of;
  for (const std::string& source : batch.memory_sources) {
    auto& known = trace.memory_sources;
    auto at = std::find(known.begin(), known.end(), source);
    if (at == known.end()) at = known.insert(known.end(), source);
    source_of.push_back(static_cast<uint8_t>(at - known.begin()));
  }
  for (MemoryEvent& event : batch.memory) {
    event.source = source_of[event.source];
    trace.append_memory(event);
  }
}

}  // namespace

bool TraceBatch::empty() const {
  return tracks.empty() && counters.empty() && memory.empty() && allocations.empty() && sampled.empty() && sampled_code.empty() && sampled_windows.empty() && losses.dropped_records == 0 &&
         losses.invalid_records == 0 && losses.unjoined_kernels == 0;
}

size_t TraceBatch::span_count() const {
  size_t count = 0;
  for (const BatchTrack& track : tracks) count += track.spans.size();
  return count;
}

void append(Trace& trace, TraceBatch&& batch) {
  copy_ops(trace, batch);
  std::vector<NameId> names;
  std::vector<std::shared_ptr<const CodeStack>> stacks(batch.names.size());
  for (auto& [name, stack] : batch.stacks) stacks[static_cast<size_t>(name)] = std::move(stack);
  for (size_t i = 0; i < batch.names.size(); ++i)
    names.push_back(stacks[i] ? trace.intern(stacks[i]) : trace.intern(batch.names[i]));
  std::vector<DetailId> details;
  for (const Detail& detail : batch.details) details.push_back(trace.intern(detail));
  for (BatchTrack& track : batch.tracks) {
    for (Span& span : track.spans) {
      span.name = names[static_cast<size_t>(span.name)];
      span.detail = details[static_cast<size_t>(span.detail)];
    }
    const TrackId id = trace.track(track.kind, track.name, track.group, track.depth, track.rank);
    if (track.replaces > 0) trace.drop_steps(id, track.replaces);
    trace.append(id, track.spans);
  }
  for (const BatchCounter& counter : batch.counters) {
    const TrackId id = trace.counter(counter.name, counter.unit, counter.kind);
    trace.append_counter(id, counter.points);
  }
  append_memory(trace, batch);
  for (SampledInstruction& one : batch.sampled) {
    one.function = names[static_cast<size_t>(one.function)], one.file = names[static_cast<size_t>(one.file)];
    trace.stalls.add(one);
  }
  for (SampledCode& code : batch.sampled_code) {
    code.function = names[static_cast<size_t>(code.function)];
    trace.stalls.add(std::move(code));
  }
  for (const SampledWindow& window : batch.sampled_windows) trace.stalls.add(window);
  trace.losses.add(batch.losses);
}

BatchBuilder::Name& BatchBuilder::name(std::string_view text) {
  const auto [at, fresh] = names_.try_emplace(std::string(text));
  if (fresh) at->second.text = &at->first;
  return at->second;
}

BatchBuilder::Name& BatchBuilder::name(const std::shared_ptr<const CodeStack>& stack) {
  Name& name = stacks_[stack.get()];
  name.stack = stack;
  return name;
}

size_t BatchBuilder::DetailHash::operator()(const Detail& d) const {
  size_t hash = std::hash<std::string>{}(d.copy_kind);
  const auto mix = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  for (int i = 0; i < 3; ++i) {
    mix(static_cast<uint64_t>(d.grid[i]));
    mix(static_cast<uint64_t>(d.block[i]));
  }
  mix(static_cast<uint64_t>(d.registers));
  mix(static_cast<uint64_t>(d.static_shared));
  mix(static_cast<uint64_t>(d.dynamic_shared));
  mix(d.bytes);
  return hash;
}

BatchBuilder::Shape& BatchBuilder::shape(const Detail& detail) {
  const auto [at, fresh] = shapes_.try_emplace(detail);
  if (fresh) at->second.detail = &at->first;
  return at->second;
}

BatchBuilder::Row& BatchBuilder::row(TrackKind kind, std::string_view name, std::string_view group, int depth,
                                     int rank) {
  const uint64_t hash = row_hash(kind, name, group, depth, rank);
  const int64_t known = row_places_.find(hash, [&](size_t place) {
    const Row& row = *rows_[place];
    return row.kind == kind && row.depth == depth && row.rank == rank && row.name == name && row.group == group;
  });
  if (known >= 0) return *rows_[static_cast<size_t>(known)];
  row_places_.add(hash, rows_.size());
  rows_.push_back(std::make_unique<Row>(Row{kind, std::string(name), std::string(group), depth, {}, nullptr, 0, rank}));
  return *rows_.back();
}

NameId BatchBuilder::add(Name& name) {
  name.batch = batch_;
  name.id = static_cast<NameId>(current_.names.size());
  if (name.stack) current_.stacks.emplace_back(name.id, name.stack);
  current_.names.push_back(name.text ? *name.text : std::string());
  return name.id;
}

DetailId BatchBuilder::add(Shape& shape) {
  if (current_.details.size() > 0xffff) return DetailId{0};
  shape.batch = batch_;
  shape.id = static_cast<DetailId>(current_.details.size());
  current_.details.push_back(*shape.detail);
  return shape.id;
}

void BatchBuilder::counter(std::string_view name, std::string_view unit, CounterPoint point, CounterKind kind) {
  const uint64_t hash = mixed(0, name);
  const int64_t known =
      counter_places_.find(hash, [&](size_t place) { return current_.counters[place].name == name; });
  if (known >= 0) return current_.counters[static_cast<size_t>(known)].points.push_back(point);
  counter_places_.add(hash, current_.counters.size());
  current_.counters.push_back({std::string(name), std::string(unit), kind, {point}});
}

uint8_t BatchBuilder::memory_source(std::string_view name) {
  auto& sources = current_.memory_sources;
  const auto at = std::find(sources.begin(), sources.end(), name);
  if (at != sources.end()) return static_cast<uint8_t>(at - sources.begin());
  sources.emplace_back(name);
  return static_cast<uint8_t>(sources.size() - 1);
}

void BatchBuilder::allocations(const StepAllocations& more) {
  for (auto at = current_.allocations.rbegin(); at != current_.allocations.rend() && at->step >= more.step; ++at) {
    if (at->step != more.step || at->op != more.op) continue;
    at->allocations += more.allocations;
    at->frees += more.frees;
    at->async_allocations += more.async_allocations;
    at->async_frees += more.async_frees;
    at->host_allocations += more.host_allocations;
    at->host_frees += more.host_frees;
    at->time_ns += more.time_ns;
    at->bytes += more.bytes;
    return;
  }
  current_.allocations.push_back(more);
}

size_t BatchBuilder::spans() const {
  size_t count = 0;
  for (const auto& row : rows_) count += row->spans.size();
  return count;
}

// Work of one stream can overlap (programmatic dependent launch, branches of a graph). What overlaps moves to the row
// below, so spans of one row never overlap. Beside computation it is the communication that moves: then a step's
// computation stays in one row.
void BatchBuilder::spread_overlaps(Row& row) {
  if (row.depth + 1 == kMaxLanes) return;
  TimeNs end = row.end;
  const bool fits = std::ranges::all_of(row.spans, [&end](const Span& span) {
    return span.start >= std::exchange(end, std::max(end, span.end()));
  });
  if (fits) {
    row.end = end;
    return;
  }
  const auto lower = [&](const Span& span) {
    if (!row.overflow) row.overflow = &this->row(row.kind, row.name, row.group, row.depth + 1, row.rank);
    row.overflow->spans.push_back(span);
  };
  const auto gives_way = [](const Span& span) { return span.meaning == static_cast<uint64_t>(Meaning::Communication); };
  std::vector<Span> first, second;  // in order of time, both without overlaps
  end = row.end;
  for (const Span& span : row.spans) {
    if (gives_way(span)) continue;
    if (span.start < end) {
      lower(span);
    } else {
      first.push_back(span), end = span.end();
    }
  }
  auto next = first.begin();
  for (const Span& span : row.spans) {
    if (!gives_way(span)) continue;
    next = std::find_if(next, first.end(), [&](const Span& other) { return other.end() > span.start; });
    const TimeNs before = second.empty() ? row.end : second.back().end();
    if (span.start < before || (next != first.end() && next->start < span.end())) {
      lower(span);
    } else {
      second.push_back(span);
    }
  }
  row.spans.clear();
  std::ranges::merge(first, second, std::back_inserter(row.spans), {}, &Span::start, &Span::start);
  for (const Span& span : row.spans) row.end = std::max(row.end, span.end());
}

TraceBatch BatchBuilder::finish() {
  for (size_t i = 0; i < rows_.size(); ++i) {  // by index: spreading can add rows, which this loop then sorts too
    Row& row = *rows_[i];
    if (row.spans.empty()) continue;
    if (!std::ranges::is_sorted(row.spans, {}, &Span::start)) std::ranges::stable_sort(row.spans, {}, &Span::start);
    const bool branches = std::ranges::any_of(row.spans, [](const Span& span) { return (span.flags & kInGraph) != 0; });
    if (row.kind == TrackKind::Stream || (row.kind == TrackKind::Copies && branches)) spread_overlaps(row);
    const size_t usual = row.spans.size();
    current_.tracks.push_back({row.kind, row.name, row.group, row.depth, std::move(row.spans), row.rank});
    row.spans = {};
    row.spans.reserve(usual);
  }
  TraceBatch done = std::move(current_);
  current_ = {};
  counter_places_.clear();
  ++batch_;
  return done;
}

TraceBatch whole_batch(const Trace& trace) {
  std::vector<OpTag> ops(trace.ops.size(), kNoOp);
  if (ops.size() > 1) {
    const OpTag first = register_ops({trace.ops.begin() + 1, trace.ops.end()});
    for (size_t i = 1; i < ops.size(); ++i) ops[i] = static_cast<OpTag>(first + i - 1);
  }
  const auto op = [&](OpTag known) { return known < ops.size() ? ops[known] : kNoOp; };
  BatchBuilder builder;
  for (const Track& track : trace.tracks()) {
    auto& row = builder.row(track.kind, track.name, track.group, track.depth, track.rank);
    for (const SpanBlock& block : track.blocks)
      for (Span span : block.spans) {
        const auto& stack = trace.shared_stack(span.name);
        span.name = builder.id(stack ? builder.name(stack) : builder.name(trace.name(span.name)));
        span.detail = span.detail == DetailId{0} ? span.detail : builder.id(builder.shape(trace.detail(span.detail)));
        span.op = op(span.op);
        row.spans.push_back(span);
      }
  }
  for (const CounterTrack& counter : trace.counters())
    for (const CounterPoint& point : counter.points) builder.counter(counter.name, counter.unit, point, counter.kind);
  for (MemoryEvent event : trace.memory()) {
    event.op = op(event.op);
    event.source = builder.memory_source(event.source < trace.memory_sources.size() ? trace.memory_sources[event.source] : "");
    builder.memory(event);
  }
  for (SampledInstruction one : trace.stalls.instructions()) {
    one.function = builder.id(builder.name(trace.name(one.function))), one.file = builder.id(builder.name(trace.name(one.file)));
    builder.sampled(one);
  }
  for (SampledCode code : trace.stalls.code()) {
    code.function = builder.id(builder.name(trace.name(code.function)));
    builder.sampled(std::move(code));
  }
  for (const SampledWindow& window : trace.stalls.windows()) builder.sampled(window);
  return builder.finish();
}

}  // namespace ws::prof

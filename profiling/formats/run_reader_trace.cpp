// The trace in a run file: blocks known by their sums, and their spans when they are asked for.
#include "profiling/formats/run_reader_impl.h"
#include "profiling/formats/span_codec.h"

namespace ws::prof {

namespace {

constexpr size_t kMostBlocks = 20'000'000;
constexpr int64_t kMostSpansPerBlock = 1 << 16;
constexpr TimeNs kFarthest = TimeNs{1} << 61;  // 73 years either way: sums and differences cannot overflow

bool possible(TimeNs time) { return time > -kFarthest && time < kFarthest; }

}  // namespace

std::unordered_map<int64_t, std::vector<StoredBlock>> RunFileReader::Impl::read_index() {
  std::unordered_map<int64_t, std::vector<StoredBlock>> index;
  size_t blocks = 0;
  each_row("The list of span blocks", "blocks", "track, first, last, count, sums", [&](Statement& row) {
    if (row.integer(4) <= 0 || row.integer(4) > kMostSpansPerBlock || ++blocks > kMostBlocks) return;
    index[row.integer(1)].push_back({row.integer(0), row.integer(2), row.integer(3),
                                     static_cast<uint32_t>(row.integer(4)), std::string(row.blob(5))});
  });
  keys.clear();
  for (auto& [track, list] : index) {
    std::ranges::stable_sort(list, {}, &StoredBlock::first);
    for (const StoredBlock& block : list)
      keys.emplace(std::pair(track, block.first), std::pair(block.key, block.count));
  }
  return index;
}

// The list of blocks has no checksum of its own: sums that cannot be are taken as 0.
void RunFileReader::Impl::read_sums(const std::string& bytes, SpanBlock& block) {
  SpanBlock read;
  unpack_sums(bytes, read);
  int64_t sum = 0;
  for (const int64_t time : read.total) {
    if (time < 0 || time > int64_t{block.count} << 40) throw Failure("Its sums are damaged.");
    sum += time;
  }
  if (summed + sum >= kFarthest) throw Failure("Its sums are damaged.");
  summed += sum;
  block.total = read.total;
  block.head = read.head;
}

void RunFileReader::Impl::add_stubs(Trace& trace) {
  auto index = read_index();
  for (const StoredTrack& track : tracks) {
    const TrackId id = trace.track(track.kind, track.name, track.group, track.depth);
    for (const StoredBlock& stored : index[track.id]) {
      if (!possible(stored.first) || !possible(stored.last)) {
        add_problem("A span block: Its times are damaged.");
        continue;
      }
      SpanBlock block;
      block.first = stored.first;
      block.last = std::max(stored.first, stored.last);
      block.count = stored.count;
      guard("A span block", [&] { read_sums(stored.sums, block); });
      block.head.start = stored.first;
      if (static_cast<size_t>(block.head.name) >= trace.name_count()) block.head.name = trace.intern("");
      if (static_cast<size_t>(block.head.detail) >= trace.detail_count()) block.head.detail = DetailId{0};
      if (block.head.op >= trace.ops.size()) block.head.op = kNoOp;
      trace.add_stub(id, std::move(block));
    }
  }
}

void RunFileReader::Impl::add_points(Trace& trace) {
  std::unordered_map<int64_t, TrackId> counters;
  each_row("The counters", "counters", "name, unit",
           [&](Statement& row) { counters[row.integer(0)] = trace.counter(row.text(1), row.text(2)); });
  each_row("A counter's values", "counter_data", "counter, count, data", [&](Statement& row) {
    const auto at = counters.find(row.integer(1));
    if (at == counters.end()) return;
    guard("A counter's values", [&] {
      for (const CounterPoint& point : decode_points(row.blob(3), static_cast<size_t>(row.integer(2)))) {
        if (possible(point.time)) trace.append_counter(at->second, point);
      }
    });
  });
  each_row("The names of allocators", "memory_sources", "value", [&](Statement& row) {
    if (row.integer(0) < 0 || row.integer(0) > 255) return;
    trace.memory_sources.resize(std::max(trace.memory_sources.size(), static_cast<size_t>(row.integer(0)) + 1));
    trace.memory_sources[static_cast<size_t>(row.integer(0))] = row.text(1);
  });
  each_row("The memory events", "memory_data", "count, data", [&](Statement& row) {
    guard("The memory events", [&] {
      for (MemoryEvent event : decode_memory(row.blob(2), static_cast<size_t>(row.integer(1)))) {
        if (event.source >= trace.memory_sources.size()) trace.memory_sources.resize(event.source + 1u, "unknown");
        if (event.op >= trace.ops.size()) event.op = kNoOp;
        if (possible(event.time)) trace.append_memory(event);
      }
    });
  });
}

const StoredTrack* RunFileReader::Impl::find(const Track& track) const {
  for (const StoredTrack& stored : tracks) {
    if (stored.kind == track.kind && stored.depth == track.depth && stored.name == track.name &&
        stored.group == track.group)
      return &stored;
  }
  return nullptr;
}

RunFileReader::Impl::Renumbering RunFileReader::Impl::renumber(Trace& trace) const {
  Renumbering to;
  for (const std::string& name : names) to.names.push_back(trace.intern(name));
  for (const Detail& detail : details) to.details.push_back(trace.intern(detail));
  return to;
}

// Which row holds the block; -1: none. A live file may have grown since we looked.
int64_t RunFileReader::Impl::key_of(int64_t stored_track, const SpanBlock& block) {
  const auto find_key = [&] {
    const auto [from, to] = keys.equal_range({stored_track, block.first});
    const auto at = std::find_if(from, to, [&](const auto& item) { return item.second.second == block.count; });
    return at == to ? int64_t{-1} : at->second.first;
  };
  const int64_t key = find_key();
  if (key >= 0 || looked_again) return key;
  looked_again = true;
  read_index();
  return find_key();
}

bool RunFileReader::Impl::read_block(Trace& trace, TrackId id, size_t index, int64_t stored_track,
                                     const Renumbering& to) {
  const SpanBlock& block = trace.tracks()[static_cast<size_t>(id)].blocks[index];
  const int64_t key = key_of(stored_track, block);
  if (key < 0 || !unreadable.insert(key).second) return false;
  Statement query = db.prepare("SELECT data FROM block_data WHERE id = ?");
  query.bind_all(key);
  if (!query.step()) throw Failure("Its data is missing.");
  std::vector<Span> spans = decode_spans(query.blob(0), block.count);
  for (Span& span : spans) {
    const auto name = static_cast<size_t>(span.name), detail = static_cast<size_t>(span.detail);
    span.name = name < to.names.size() ? to.names[name] : trace.intern("");
    span.detail = detail < to.details.size() ? to.details[detail] : DetailId{0};
    if (span.op >= trace.ops.size()) span.op = kNoOp;
    if (!possible(span.start)) throw Failure("Its times are damaged.");
  }
  if (!trace.fill(id, index, std::move(spans))) throw Failure("It does not match its entry in the list.");
  unreadable.erase(key);
  return true;
}

size_t RunFileReader::Impl::fill(Trace& trace, TimeNs begin, TimeNs end, size_t most) {
  read_names();  // a live file may know more by now
  read_tracks();
  const Renumbering to = renumber(trace);
  looked_again = false;
  size_t filled = 0;
  for (size_t t = 0; t < trace.tracks().size(); ++t) {
    const Track& track = trace.tracks()[t];
    const StoredTrack* stored = find(track);
    if (!stored) continue;
    for (size_t i = first_block(track, begin); i < track.blocks.size() && track.blocks[i].first < end && filled < most;
         ++i) {
      if (track.blocks[i].resident()) continue;
      guard("A span block", [&] { filled += read_block(trace, static_cast<TrackId>(t), i, stored->id, to); });
    }
  }
  return filled;
}

size_t RunFileReader::Impl::first_block(const Track& track, TimeNs begin) {
  const auto at = std::partition_point(track.blocks.begin(), track.blocks.end(),
                                       [&](const SpanBlock& b) { return b.reach <= begin; });
  return static_cast<size_t>(at - track.blocks.begin());
}

Trace RunFileReader::trace() {
  Trace trace;
  impl_->summed = 0;
  impl_->read_names();
  impl_->read_tracks();
  impl_->renumber(trace);
  trace.ops = impl_->ops;
  trace.losses = impl_->losses;
  impl_->add_stubs(trace);
  impl_->add_points(trace);
  trace.backed = true;
  return trace;
}

size_t RunFileReader::fill(Trace& trace, TimeNs begin, TimeNs end, size_t most_blocks) {
  return impl_->fill(trace, begin, end, most_blocks);
}

size_t RunFileReader::fill(Trace& trace) {
  return impl_->fill(trace, std::numeric_limits<TimeNs>::min(), std::numeric_limits<TimeNs>::max(),
                     std::numeric_limits<size_t>::max());
}

}  // namespace ws::prof

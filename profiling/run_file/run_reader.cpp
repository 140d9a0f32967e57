#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "profiling/base/sqlite_log.h"
#include "profiling/base/stop_when.h"
#include "profiling/run_file/run_file.h"
#include "profiling/run_file/run_schema.h"
#include "profiling/run_file/span_codec.h"
#include "profiling/trace/batch_codec.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/kernel_names.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

constexpr size_t kMostIds = 1 << 22, kLongestName = 1 << 16;
constexpr uint64_t kStackCopies = 8;  // its bytes, its frames, its text
constexpr uint64_t kRowCopies = 3;  // while a list grows, its old and its new space exist

double real_or_nan(const Statement& row, int column) {
  return row.null(column) ? std::numeric_limits<double>::quiet_NaN() : row.real(column);
}

// Many spans may share one name, and some tables look at it for each of them: a longer one is cut.
std::string name_in(const Statement& row, int column) { return std::string(row.text(column).substr(0, kLongestName)); }

// The name of an op today. Older files have other words for two kinds of ops.
std::string op_name(std::string name, const std::string& phase) {
  if (name.starts_with("spread b")) return "broadcast" + name.substr(6);
  if (const auto at = name.find("xent"); at != std::string::npos && (phase == "loss" || phase == "test" || phase == "evaluate")) name.replace(at, 4, "cross-entropy");
  return name;
}

template <class Kind>
std::optional<Kind> known_kind(int64_t number, Kind last) {
  return number >= 0 && number <= static_cast<int64_t>(last) ? std::optional(static_cast<Kind>(number)) : std::nullopt;
}

constexpr size_t kMostBlocks = 20'000'000;
constexpr int64_t kMostSpansPerBlock = 1 << 16;
constexpr TimeNs kFarthest = TimeNs{1} << 61;  // 73 years in both directions: sums and differences cannot overflow

bool possible(TimeNs time) { return time > -kFarthest && time < kFarthest; }

}  // namespace

struct RunFileReader::Impl {
  explicit Impl(const std::string& path) : db(open_run(path)) {}

  void add_problem(std::string text) {
    for (auto& [known, times] : problems) {
      if (known == text) return void(++times);
    }
    if (problems.size() < 100) problems.emplace_back(std::move(text), 1);
  }

  // Runs one part of the reading. If the file is damaged there, notes the problem and continues with the rest.
  template <class Part>
  void guard(const char* what, Part part) {
    try {
      part();
    } catch (const Failure& failure) {
      add_problem(std::string(what) + ": " + failure.what());
    }
  }

  // Visits rows in order of id. If a damaged page stops the query, reads the rows after it from the other end.
  template <class Row>
  void each_row(const char* what, const std::string& table, const std::string& columns, Row row) {
    int64_t highest = std::numeric_limits<int64_t>::min();
    bool whole = false;
    guard(what, [&] {
      Statement query = db.prepare("SELECT id, " + columns + " FROM " + table + " ORDER BY id");
      for (; query.step(); row(query)) {
        highest = query.integer(0);
        end_if_stopped();
      }
      whole = true;
    });
    if (whole) return;
    guard(what, [&] {
      Statement query = db.prepare("SELECT id, " + columns + " FROM " + table + " ORDER BY id DESC");
      while (query.step() && query.integer(0) > highest) row(query);
    });
  }

  // Returns the number of items that a block claims, after taking their memory from the budget.
  size_t count_in(const Statement& row, int column, size_t bytes_each) {
    const auto count = static_cast<size_t>(std::clamp<int64_t>(row.integer(column), 0, int64_t{1} << 40));
    budget.take(count * bytes_each);
    return count;
  }

  bool typed() const { return version >= 5; }  // rows and counters have their kinds; before, only their names show them
  void read_header(const std::string& path);
  void read_tracks();
  void read_lists();
  void read_names();
  void read_details();
  void read_ops();
  std::unordered_map<int64_t, std::vector<StoredBlock>> read_index();
  void read_sums(const std::string& bytes, SpanBlock& block);
  void add_stubs(Trace& trace);
  void add_points(Trace& trace);
  void add_stalls(Trace& trace);
  const StoredTrack* find(const Track& track) const;

  // Maps name and detail numbers of the file to numbers of the trace.
  struct Renumbering {
    std::vector<NameId> names;
    std::vector<DetailId> details;
  };
  Renumbering renumber(Trace& trace) const;
  static void put_in_order(std::vector<StoredRow>& list);
  void read_new_rows();
  int64_t key_of(int64_t stored_track, const SpanBlock& block);
  const std::vector<Span>& decoded(int64_t key);
  void renumber(Trace& trace, const Track& track, std::vector<Span>& spans, const Renumbering& to);
  void class_by_name(const Trace& trace, const Track& track, Span& span);
  Meaning meaning_by_name(size_t name);
  std::vector<Span> gathered(const Track& track, size_t index, int64_t stored_track);
  bool read_block(Trace& trace, TrackId id, size_t index, int64_t stored_track, const Renumbering& to);
  size_t fill(Trace& trace, TimeNs begin, TimeNs end, size_t most);
  static size_t first_block(const Track& track, TimeNs begin);

  Database db;
  int64_t file_bytes = 0;
  MetaMap meta;
  RunSummary summary;
  Losses losses;
  std::vector<std::pair<std::string, int>> problems;  // with the number of occurrences
  std::vector<std::string> names;
  std::unordered_map<size_t, std::shared_ptr<const CodeStack>> name_stacks;
  std::vector<Detail> details;
  std::vector<OpInfo> ops{{}};
  std::vector<StoredTrack> tracks;
  LookUp track_places;  // index into tracks
  Budget budget;  // for what is being read; the reader itself keeps none of it
  std::unordered_map<int64_t, std::vector<StoredRow>> rows;     // by track
  std::deque<std::pair<int64_t, std::vector<Span>>> just_read;  // the newest few, by key, with the file's numbers
  Renumbering outline_to;                                       // for the trace of outline()
  std::vector<std::optional<Meaning>> kernel_meanings;  // by name
  bool looked_again = false;
  int64_t version = 0;
  int64_t summed = 0;                      // over all blocks of the trace
  std::unordered_set<int64_t> unreadable;  // damaged blocks are tried once
};

void RunFileReader::Impl::read_header(const std::string& path) {
  guard("The file's version", [&] {
    version = db.integer("PRAGMA user_version");
    if (version > kRunFileVersion) {
      add_problem("The file was written by a newer version (" + std::to_string(version) +
                  "); what is unknown here is left out");
    }
  });
  guard("The summary", [&] { meta = read_meta(db); });
  for (const auto& [key, count] : {std::pair{"dropped_records", &losses.dropped_records},
                                   {"invalid_records", &losses.invalid_records},
                                   {"unjoined_kernels", &losses.unjoined_kernels},
                                   {"evicted_spans", &losses.evicted_spans}}) {
    if (auto node = meta.extract(key)) *count = std::strtoull(node.mapped().c_str(), nullptr, 10);
  }
  summary = from_meta(meta);
  // A program that ended while it moved its log into the file has already written the new size: the rest is in the log.
  if (const int64_t expected = claimed_bytes(path); expected > file_bytes + bytes_of_log(path)) {
    add_problem("The file ends after " + std::to_string(file_bytes) + " of " + std::to_string(expected) + " bytes");
  }
}

void RunFileReader::Impl::read_tracks() {
  tracks.clear();
  track_places.clear();
  bool ranked = false;  // false for files from before runs of many ranks
  guard("The list of tracks", [&] { ranked = std::ranges::count(db.columns("tracks"), "rank") > 0; });
  const std::string columns = std::string("kind, name, grp, depth, ") + (ranked ? "rank" : "-1") + (typed() ? ", row_kind" : ", -1");
  each_row("The list of tracks", "tracks", columns, [&](Statement& row) {
    if (row.integer(0) < 0 || row.integer(0) >= int64_t{kMostIds} || tracks.size() >= kMostIds || row.text(2).size() > kLongestName || row.text(3).size() > kLongestName) return;
    const auto broad = known_kind(row.integer(1), TrackKind::Other).value_or(TrackKind::Other);
    const auto kind = known_kind(row.integer(6), kLastTrackKind).value_or(kind_of_row(broad, row.text(2)));
    const auto rank = static_cast<int>(std::clamp<int64_t>(row.integer(5), -1, kMostRanks - 1));
    tracks.push_back({row.integer(0), kind, std::string(row.text(2)), std::string(row.text(3)),
                      static_cast<int>(row.integer(4)), rank});
    const StoredTrack& track = tracks.back();
    track_places.add(row_hash(track.kind, track.name, track.group, track.depth, track.rank), tracks.size() - 1);
  });
}

// Older files have the stack of an op in its detail, after "at ".
void take_stack_from_detail(OpInfo& op) {
  constexpr std::string_view kAtLine = "at ";
  const std::string_view detail = op.detail;
  if (!detail.starts_with(kAtLine) || detail.find(':') == std::string_view::npos) return;
  op.stack = stack_from_text(detail.substr(kAtLine.size()));
  op.detail.clear();
}

// The lists that spans point into.
void RunFileReader::Impl::read_lists() {
  read_names();
  read_details();
  read_ops();
  read_tracks();
}

void RunFileReader::Impl::read_names() {
  const auto fits = [most = std::min<int64_t>(kMostIds, db.bounds().rows)](int64_t id) { return id >= 0 && id < most; };
  each_row("The names", "names", "value", [&](Statement& row) {
    if (!fits(row.integer(0))) return;
    names.resize(std::max(names.size(), static_cast<size_t>(row.integer(0)) + 1));
    names[static_cast<size_t>(row.integer(0))] = name_in(row, 1);
  });
  if (db.has_table("name_stacks"))
    each_row("The stacks of samples", "name_stacks", "frames", [&](Statement& row) {
      if (!fits(row.integer(0)) || name_stacks.contains(static_cast<size_t>(row.integer(0)))) return;
      guard("A stack of samples", [&] {
        budget.take(kStackCopies * row.blob(1).size());
        name_stacks[static_cast<size_t>(row.integer(0))] = std::make_shared<CodeStack>(decode_stack(row.blob(1)));
      });
    });
}

void RunFileReader::Impl::read_details() {
  details.resize(1);
  each_row(
      "The launch configurations", "details",
      "grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, static_shared, dynamic_shared, bytes, copy_kind",
      [&](Statement& row) {
        if (row.integer(0) < 0 || row.integer(0) > 0xffff) return;
        details.resize(std::max(details.size(), static_cast<size_t>(row.integer(0)) + 1));
        Detail& d = details[static_cast<size_t>(row.integer(0))];
        const auto number = [&row](int column) { return static_cast<int>(row.integer(column)); };
        for (int i = 0; i < 3; ++i) d.grid[i] = number(1 + i), d.block[i] = number(4 + i);
        d.registers = number(7), d.static_shared = number(8), d.dynamic_shared = number(9);
        d.bytes = static_cast<uint64_t>(row.integer(10));
        d.copy_kind = name_in(row, 11);
      });
}

void RunFileReader::Impl::read_ops() {
  std::unordered_map<int64_t, std::shared_ptr<const CodeStack>> stacks;
  bool with_stacks = false;  // false for files before version 3
  guard("The ops", [&] { with_stacks = std::ranges::count(db.columns("ops"), "stack") > 0; });
  if (with_stacks)
    each_row("The stacks", "stacks", "frames", [&](Statement& row) {
      if (stacks.size() <= 0xffff) stacks[row.integer(0)] = std::make_shared<CodeStack>(decode_stack(row.blob(1)));
    });
  const std::string columns = std::string("name, detail, layer, phase, meaning, flops, bytes, ") + (with_stacks ? "stack" : "0");
  each_row("The ops", "ops", columns, [&](Statement& row) {
    if (row.integer(0) <= 0 || row.integer(0) > 0xffff) return;
    ops.resize(std::max(ops.size(), static_cast<size_t>(row.integer(0)) + 1));
    const auto meaning = static_cast<Meaning>(std::clamp<int64_t>(row.integer(5), 0, kMeanings - 1));
    ops[static_cast<size_t>(row.integer(0))] = {op_name(name_in(row, 1), name_in(row, 4)), name_in(row, 2), name_in(row, 3), name_in(row, 4),
                                                meaning,         row.integer(6), row.integer(7)};
    OpInfo& op = ops[static_cast<size_t>(row.integer(0))];
    if (const auto stack = stacks.find(row.integer(8)); stack != stacks.end()) op.stack = stack->second;
    if (!with_stacks) take_stack_from_detail(op);
    // Older files count "column sum dz2 → db2" as pointwise.
    if (op.meaning == Meaning::Pointwise && meaning_of_kernel(op.detail) == Meaning::Reduction) op.meaning = Meaning::Reduction;
    // And they count "dW adam" as optimizer: the products of the gradients are most of its work.
    if (op.meaning == Meaning::Optimizer && op.name.starts_with("dW ")) op.meaning = Meaning::Matrix;
  });
}

RunFileReader::RunFileReader(const std::string& path) : impl_(std::make_unique<Impl>(path)) {
  impl_->file_bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  impl_->read_header(path);
}

RunFileReader::~RunFileReader() = default;

const RunSummary& RunFileReader::summary() const { return impl_->summary; }

std::vector<std::string> RunFileReader::problems() const {
  std::vector<std::string> texts;
  for (const auto& [text, times] : impl_->problems) {
    texts.push_back(times == 1 ? text : text + " (" + std::to_string(times) + " times)");
  }
  return texts;
}

std::vector<Metric> RunFileReader::metrics() {
  std::vector<Metric> rows;
  impl_->budget = Budget();
  impl_->each_row("The losses", "metrics", "step, wall_s, loss, accuracy", [&](Statement& row) {
    impl_->budget.take(kRowCopies * sizeof(Metric));
    rows.push_back({row.integer(1), seconds_in_run(row.real(2)), real_or_nan(row, 3), real_or_nan(row, 4)});
  });
  if (impl_->db.has_table("metric_data")) {
    impl_->each_row("The losses", "metric_data", "count, data", [&](Statement& row) {
      impl_->guard("Losses of some steps", [&] {
        const auto part = decode_metrics(row.blob(2), impl_->count_in(row, 1, sizeof(Metric)));
        rows.insert(rows.end(), part.begin(), part.end());
      });
    });
  }
  std::ranges::stable_sort(rows, {}, &Metric::step);
  return rows;
}

std::vector<Evaluation> RunFileReader::evaluations() {
  std::vector<Evaluation> rows;
  impl_->budget = Budget();
  impl_->each_row(
      "The evaluations", "evaluations", "step, epoch, wall_s, test_loss, test_accuracy", [&](Statement& row) {
        impl_->budget.take(kRowCopies * sizeof(Evaluation));
        const double epoch = row.real(2), seconds = seconds_in_run(row.real(3));
        rows.push_back({row.integer(1), std::isfinite(epoch) ? epoch : 0, seconds, real_or_nan(row, 4), real_or_nan(row, 5)});
      });
  std::ranges::stable_sort(rows, {}, &Evaluation::step);
  return rows;
}

std::vector<ChangeMark> RunFileReader::marks() {
  std::vector<ChangeMark> rows;
  impl_->budget = Budget();
  impl_->each_row("The marks", "marks", "step, wall_s, text", [&](Statement& row) {
    const std::string_view text = row.text(3);
    impl_->budget.take(kRowCopies * sizeof(ChangeMark) + text.size());
    rows.push_back({row.integer(1), seconds_in_run(row.real(2)), std::string(text)});
  });
  return rows;
}

std::vector<StepWindow> RunFileReader::step_windows() {
  std::vector<StepWindow> rows;
  impl_->budget = Budget();
  std::string columns =
      "first_step, steps, begin, \"end\", matrix_ns, pointwise_ns, loss_ns, optimizer_ns, copy_ns, allocation_ns, "
      "sync_ns, "
      "launch_ns, idle_ns, other_ns, ";
  std::vector<std::string> known;
  impl_->guard("The step times", [&] { known = impl_->db.columns("step_windows"); });
  for (const char* later : {"communication_ns", "reduction_ns"})  // older files lack them
    columns += std::string(std::ranges::count(known, later) > 0 ? later : "0") + ", ";
  impl_->each_row("The step times", "step_windows", columns + "allocations, frees", [&](Statement& row) {
    impl_->budget.take(kRowCopies * sizeof(StepWindow));
    StepWindow window{row.integer(1), row.integer(2), row.integer(3), row.integer(4), {}, 0, 0};
    for (size_t m = 0; m < kMeanings; ++m) window.times[m] = row.integer(5 + static_cast<int>(m));
    window.allocations = static_cast<uint64_t>(row.integer(17));
    window.frees = static_cast<uint64_t>(row.integer(18));
    rows.push_back(window);
  });
  return rows;
}

std::vector<StepAllocations> RunFileReader::allocations() {
  std::vector<StepAllocations> all;
  impl_->budget = Budget();
  impl_->each_row("The allocator calls", "allocation_data", "count, data", [&](Statement& row) {
    impl_->guard("The allocator calls", [&] {
      const auto part = decode_allocations(row.blob(2), impl_->count_in(row, 1, sizeof(StepAllocations)));
      all.insert(all.end(), part.begin(), part.end());
    });
  });
  return all;
}

// Reads the list of blocks: their sums are known now, their spans are read on demand.
std::unordered_map<int64_t, std::vector<StoredBlock>> RunFileReader::Impl::read_index() {
  std::unordered_map<int64_t, std::vector<StoredBlock>> index;
  size_t blocks = 0;
  each_row("The list of span blocks", "blocks", "track, first, last, count, sums", [&](Statement& row) {
    if (row.integer(4) <= 0 || row.integer(4) > kMostSpansPerBlock || ++blocks > kMostBlocks) return;
    index[row.integer(1)].push_back({row.integer(0), row.integer(2), row.integer(3),
                                     static_cast<uint32_t>(row.integer(4)), std::string(row.blob(5))});
  });
  rows.clear();
  for (auto& [track, list] : index) {
    std::ranges::stable_sort(list, {}, &StoredBlock::first);
    for (const StoredBlock& block : list) rows[track].push_back({block.first, block.last, block.count, block.key});
    put_in_order(rows[track]);
  }
  return index;
}

// The list of blocks has no checksum of its own, so impossible sums count as 0.
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
    end_if_stopped();
    const TrackId id = trace.track(track.kind, track.name, track.group, track.depth, track.rank);
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
  std::unordered_map<TrackId, std::vector<CounterPoint>> points_of;
  each_row("The counters", "counters", typed() ? "name, unit, kind" : "name, unit, -1", [&](Statement& row) {
    const auto kind = known_kind(row.integer(3), kLastCounterKind).value_or(kind_of_counter(row.text(1), row.text(2)));
    counters[row.integer(0)] = trace.counter(row.text(1), row.text(2), kind);
  });
  each_row("A counter's values", "counter_data", "counter, count, data", [&](Statement& row) {
    const auto at = counters.find(row.integer(1));
    if (at == counters.end()) return;
    guard("A counter's values", [&] {
      auto points = decode_points(row.blob(3), count_in(row, 2, sizeof(CounterPoint)));
      std::erase_if(points, [](const CounterPoint& point) { return !possible(point.time); });
      auto& all = points_of[at->second];
      all.insert(all.end(), points.begin(), points.end());
    });
  });
  for (auto& [counter, points] : points_of) trace.append_counter(counter, std::move(points));
  each_row("The names of allocators", "memory_sources", "value", [&](Statement& row) {
    if (row.integer(0) < 0 || row.integer(0) > 255) return;
    trace.memory_sources.resize(std::max(trace.memory_sources.size(), static_cast<size_t>(row.integer(0)) + 1));
    trace.memory_sources[static_cast<size_t>(row.integer(0))] = row.text(1);
  });
  each_row("The memory events", "memory_data", "count, data", [&](Statement& row) {
    guard("The memory events", [&] {
      for (MemoryEvent event : decode_memory(row.blob(2), count_in(row, 1, sizeof(MemoryEvent)))) {
        if (event.source >= trace.memory_sources.size()) trace.memory_sources.resize(event.source + 1u, "unknown");
        if (event.op >= trace.ops.size()) event.op = kNoOp;
        if (possible(event.time)) trace.append_memory(event);
      }
    });
  });
}

// Files of earlier versions have no samples.
void RunFileReader::Impl::add_stalls(Trace& trace) {
  if (!db.has_table("stalls")) return;
  const auto name = [&](int64_t id) { return id >= 0 && static_cast<size_t>(id) < outline_to.names.size() ? outline_to.names[static_cast<size_t>(id)] : trace.intern(""); };
  const auto amount = [](int64_t number) { return static_cast<uint64_t>(std::clamp<int64_t>(number, 0, int64_t{1} << 48)); };
  const auto small = [](int64_t number, int64_t most) { return std::clamp<int64_t>(number, 0, most); };
  std::map<int64_t, SampledInstruction> code;
  each_row("The sampled instructions", "sampled_code", "module, function, \"offset\", file, line", [&](Statement& row) {
    if (code.size() >= kMostIds) return;
    budget.take(kRowCopies * sizeof(SampledInstruction));
    code[row.integer(0)] = {.module = static_cast<uint64_t>(row.integer(1)), .offset = static_cast<uint32_t>(small(row.integer(3), 0xffffffff)),
                            .line = static_cast<int32_t>(small(row.integer(5), 0x7fffffff)), .function = name(row.integer(2)), .file = name(row.integer(4))};
  });
  each_row("The samples of instructions", "stalls", "samples", [&](Statement& row) {
    const auto at = code.find(row.integer(0) >> 8);
    const size_t reason = std::min(static_cast<size_t>(row.integer(0) & 0xff), kStalls - 1);  // of a newer version: other
    if (at != code.end()) at->second.samples[reason] += amount(row.integer(1));
  });
  for (const auto& [id, one] : code) trace.stalls.add(one);
  if (db.has_table("sampled_functions"))
    each_row("The sampled machine code", "sampled_functions", "module, function, compute, code, calls", [&](Statement& row) {
      guard("The sampled machine code", [&] {
        std::string bytes = unpacked(row.blob(4)), calls = unpacked(row.blob(5));
        budget.take(bytes.size() + calls.size());
        trace.stalls.add(SampledCode{static_cast<uint64_t>(row.integer(1)), name(row.integer(2)), static_cast<int32_t>(small(row.integer(3), 999)), std::move(bytes), std::move(calls)});
      });
    });
  each_row("The sampled windows", "sampled_windows", "begin, \"end\", first_step, end_step, period, samples, dropped, hidden", [&](Statement& row) {
    if (!possible(row.integer(1)) || !possible(row.integer(2)) || trace.stalls.windows().size() >= kMostIds) return;
    budget.take(kRowCopies * sizeof(SampledWindow));
    const auto step = [&](int column) { return static_cast<uint32_t>(small(row.integer(column), 0xffffffff)); };
    trace.stalls.add(SampledWindow{.begin = row.integer(1), .end = row.integer(2), .first_step = step(3), .end_step = step(4),
                                   .period = static_cast<uint32_t>(small(row.integer(5), 31)), .samples = amount(row.integer(6)), .dropped = amount(row.integer(7)),
                                   .hidden = amount(row.integer(8))});
  });
}

const StoredTrack* RunFileReader::Impl::find(const Track& track) const {
  const int64_t place =
      track_places.find(row_hash(track.kind, track.name, track.group, track.depth, track.rank), [&](size_t candidate) {
        const StoredTrack& stored = tracks[candidate];
        return stored.kind == track.kind && stored.depth == track.depth && stored.name == track.name &&
               stored.group == track.group && stored.rank == track.rank;
      });
  return place < 0 ? nullptr : &tracks[static_cast<size_t>(place)];
}

RunFileReader::Impl::Renumbering RunFileReader::Impl::renumber(Trace& trace) const {
  Renumbering to;
  for (size_t i = 0; i < names.size(); ++i) {
    end_if_stopped();
    const auto stack = name_stacks.find(i);
    to.names.push_back(stack == name_stacks.end() ? trace.intern(names[i]) : trace.intern(stack->second));
  }
  for (const Detail& detail : details) to.details.push_back(trace.intern(detail));
  return to;
}

void RunFileReader::Impl::put_in_order(std::vector<StoredRow>& list) {
  std::ranges::stable_sort(list, {}, &StoredRow::first);
  TimeNs reach = std::numeric_limits<TimeNs>::min();
  for (StoredRow& row : list) row.reach = reach = std::max(reach, row.last);
}

// A file that is being written has grown since. The newest block of a track is rewritten repeatedly.
void RunFileReader::Impl::read_new_rows() {
  for (const StoredTrack& track : tracks) {
    end_if_stopped();
    auto& list = rows[track.id];
    int64_t from = block_id(track.id, 0);
    for (const StoredRow& row : list) from = std::max(from, row.key);
    std::erase_if(list, [from](const StoredRow& row) { return row.key == from; });
    guard("The list of span blocks", [&] {
      Statement query = db.prepare("SELECT id, first, last, count FROM blocks WHERE id >= ? AND id < ? AND track = ?");
      query.bind_all(from, block_id(track.id + 1, 0), track.id);
      while (query.step())
        if (query.integer(3) > 0 && query.integer(3) <= kMostSpansPerBlock)
          list.push_back(
              {query.integer(1), query.integer(2), static_cast<uint32_t>(query.integer(3)), query.integer(0)});
    });
    put_in_order(list);
  }
  just_read.clear();
}

// Returns the key of the row that holds the block, or -1 if there is none.
int64_t RunFileReader::Impl::key_of(int64_t stored_track, const SpanBlock& block) {
  const auto find_key = [&] {
    const auto at = std::ranges::equal_range(rows[stored_track], block.first, {}, &StoredRow::first);
    const auto row = std::ranges::find_if(
        at, [&](const StoredRow& r) { return r.count == block.count && std::max(r.first, r.last) == block.last; });
    return row == at.end() ? int64_t{-1} : row->key;
  };
  const int64_t key = find_key();
  if (key >= 0 || looked_again) return key;
  looked_again = true;
  read_new_rows();
  return find_key();
}

// If the file is being written, its newest block may now have more spans than when it was listed.
const std::vector<Span>& RunFileReader::Impl::decoded(int64_t key) {
  constexpr size_t kFew = 4;
  for (const auto& [known, spans] : just_read)
    if (known == key) return spans;
  Statement query = db.prepare("SELECT data, count FROM block_data JOIN blocks USING(id) WHERE id = ?");
  query.bind_all(key);
  if (!query.step()) throw Failure("Its data is missing.");
  const int64_t count = query.integer(1);
  if (count <= 0 || count > kMostSpansPerBlock) throw Failure("Its number of spans is damaged.");
  std::vector<Span> spans = decode_spans(query.blob(0), static_cast<size_t>(count));
  if (!std::ranges::all_of(spans, [](const Span& span) { return possible(span.start); }))
    throw Failure("Its times are damaged.");
  if (just_read.size() == kFew) just_read.pop_front();
  return just_read.emplace_back(key, std::move(spans)).second;
}

Meaning RunFileReader::Impl::meaning_by_name(size_t name) {
  if (kernel_meanings.size() < names.size()) kernel_meanings.resize(names.size());
  if (!kernel_meanings[name]) kernel_meanings[name] = meaning_of_kernel(names[name]);
  return *kernel_meanings[name];
}

// The meaning of a kernel comes from its op, or else from its name. The names that we know grow from version to version, so
// that the file's own meaning may be an older one. Older files also have a cudaStreamWaitEvent as a wait of the host.
void RunFileReader::Impl::class_by_name(const Trace& trace, const Track& track, Span& span) {
  const auto name = static_cast<size_t>(span.name);
  const Meaning of_op = span.op != kNoOp && span.op < trace.ops.size() ? trace.ops[span.op].meaning : Meaning::Other;
  const std::pair read{of_op, span.span_meaning()};
  if (read == std::pair{Meaning::Reduction, Meaning::Pointwise} || read == std::pair{Meaning::Matrix, Meaning::Optimizer}) span.meaning = static_cast<uint8_t>(of_op);
  if (name >= names.size()) return;
  if (span.span_kind() == SpanKind::Kernel && of_op == Meaning::Other) {
    if (const Meaning known = meaning_by_name(name); known != Meaning::Other) span.meaning = static_cast<uint8_t>(known);
  } else if (span.span_kind() == SpanKind::Sync && track.kind == TrackKind::Api) {
    const CallClass call = class_of_call(names[name]);
    span.kind = static_cast<uint8_t>(call.kind), span.meaning = static_cast<uint8_t>(call.meaning);
  }
}

void RunFileReader::Impl::renumber(Trace& trace, const Track& track, std::vector<Span>& spans, const Renumbering& to) {
  for (Span& span : spans) {
    class_by_name(trace, track, span);
    const auto name = static_cast<size_t>(span.name), detail = static_cast<size_t>(span.detail);
    span.name = name < to.names.size() ? to.names[name] : trace.intern("");
    span.detail = detail < to.details.size() ? to.details[detail] : DetailId{0};
    if (span.op >= trace.ops.size()) span.op = kNoOp;
  }
}

namespace {

// Drops what was added to the block after it was listed.
void keep_listed(std::vector<Span>& spans, const SpanBlock& block) {
  if (spans.size() > block.count) std::erase_if(spans, [&](const Span& span) { return span.start < block.first; });
  if (spans.size() > block.count) spans.resize(block.count);
}

// Counts the spans that start at `time` in earlier blocks, as far as those are in memory.
size_t starting_at(const Track& track, size_t index, TimeNs time) {
  size_t count = 0;
  for (size_t i = index; i-- > 0;) {
    const auto& spans = track.blocks[i].spans;
    const auto same = std::ranges::equal_range(spans, time, {}, &Span::start);
    count += same.size();
    if (spans.empty() || same.size() < spans.size()) break;
  }
  return count;
}

}  // namespace

// Reads a live block whose borders differ from the file. A late span is at its sorted place in a live trace, but in the
// file it is in the block that was open then. From there on, blocks begin at different spans. A live block has the
// spans that start in its time. If several start exactly at its begin or end, some may belong to its neighbours.
std::vector<Span> RunFileReader::Impl::gathered(const Track& track, size_t index, int64_t stored_track) {
  constexpr size_t kMostRows = 256;
  const SpanBlock& block = track.blocks[index];
  const TimeNs begin = block.first, end = index + 1 < track.blocks.size() ? track.blocks[index + 1].first : kAlways;
  const auto& list = rows[stored_track];
  std::vector<StoredRow> about;
  for (auto row = std::ranges::upper_bound(list, end, {}, &StoredRow::first);
       row != list.begin() && std::prev(row)->reach >= begin && about.size() < kMostRows; --row)
    if (std::prev(row)->last >= begin) about.push_back(*std::prev(row));
  std::ranges::sort(about, {}, &StoredRow::key);  // in order of arrival, which is the order of spans with equal start
  std::vector<Span> spans;
  for (const StoredRow& row : about)
    std::ranges::copy_if(decoded(row.key), std::back_inserter(spans),
                         [&](const Span& s) { return s.start >= begin && s.start <= end; });
  order_by_start(spans);
  const auto at_begin = static_cast<size_t>(std::ranges::count(spans, begin, &Span::start));
  const auto at_end = begin == end ? 0 : static_cast<size_t>(std::ranges::count(spans, end, &Span::start));
  const size_t inside = spans.size() - at_begin - at_end;
  if (block.count <= inside || block.count > spans.size()) return {};
  const size_t own = at_begin - std::min(at_begin, starting_at(track, index, begin));
  const size_t from_begin = std::min<size_t>(own, block.count - inside);
  if (from_begin == 0 || at_begin - from_begin + block.count > spans.size()) return {};
  const auto first = spans.begin() + static_cast<std::ptrdiff_t>(at_begin - from_begin);
  return {first, first + block.count};
}

// Returns false if there is nothing to read.
bool RunFileReader::Impl::read_block(Trace& trace, TrackId id, size_t index, int64_t stored_track,
                                     const Renumbering& to) {
  const Track& track = trace.tracks()[static_cast<size_t>(id)];
  const SpanBlock& block = track.blocks[index];
  const int64_t key = key_of(stored_track, block);
  if (key >= 0 && !unreadable.insert(key).second) return false;
  std::vector<Span> spans = key >= 0 ? decoded(key) : gathered(track, index, stored_track);
  if (spans.empty() && key < 0) return false;
  keep_listed(spans, block);
  renumber(trace, track, spans, to);
  if (!trace.fill(id, index, std::move(spans))) throw Failure("It does not match its entry in the list.");
  unreadable.erase(key);
  return true;
}

size_t RunFileReader::Impl::fill(Trace& trace, TimeNs begin, TimeNs end, size_t most) {
  read_lists();  // a live file may have more names by now
  const Renumbering to = renumber(trace);
  looked_again = false;
  budget = Budget();
  size_t filled = 0, tried = 0;
  for (size_t t = 0; t < trace.tracks().size(); ++t) {
    end_if_stopped();
    const Track& track = trace.tracks()[t];
    const StoredTrack* stored = find(track);
    if (!stored) continue;
    for (size_t i = first_block(track, begin);
         i < track.blocks.size() && track.blocks[i].first < end && filled < most && tried / 4 < most; ++i) {
      if (track.blocks[i].resident()) continue;
      if (const size_t bytes = track.blocks[i].count * sizeof(Span); budget.has(bytes))
        budget.take(bytes);
      else {
        add_problem(budget.spent_text() + "; the rest of the trace is left out");
        return filled;
      }
      ++tried;
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

Trace RunFileReader::newest_trace() {
  constexpr size_t kMostBlocks = 1000;
  constexpr TimeNs kFirstPiece = 250'000'000;
  Trace newest = trace();
  const TimeNs first = newest.first_time(), last = newest.last_time();
  size_t left = kMostBlocks;
  for (TimeNs begin = last, reach = kFirstPiece; begin > first && left > 0; reach *= 2) {
    begin = std::max(first, last - reach);
    left -= fill(newest, begin, last, left);
  }
  return newest;
}

Trace RunFileReader::outline() {
  Trace trace;
  impl_->summed = 0;
  impl_->read_lists();
  impl_->outline_to = impl_->renumber(trace);
  trace.ops = impl_->ops;
  trace.losses = impl_->losses;
  impl_->add_stubs(trace);
  trace.backed = true;
  return trace;
}

Trace RunFileReader::trace() {
  Trace trace = outline();
  impl_->budget = Budget();
  impl_->add_points(trace);
  impl_->add_stalls(trace);
  return trace;
}

std::vector<Span> RunFileReader::spans(Trace& trace, TrackId id, size_t index) {
  const Track& track = trace.tracks()[static_cast<size_t>(id)];
  const SpanBlock& block = track.blocks[index];
  if (!block.spans.empty()) return block.spans;
  const StoredTrack* stored = impl_->find(track);
  impl_->looked_again = true;  // the list comes from outline()
  const int64_t key = stored ? impl_->key_of(stored->id, block) : -1;
  if (key < 0) throw Failure("A span block: It is not in the file.");
  std::vector<Span> spans = impl_->decoded(key);
  impl_->renumber(trace, track, spans, impl_->outline_to);
  return spans;
}

size_t RunFileReader::fill(Trace& trace, TimeNs begin, TimeNs end, size_t most_blocks) {
  return impl_->fill(trace, begin, end, most_blocks);
}

size_t RunFileReader::fill(Trace& trace) {
  return impl_->fill(trace, std::numeric_limits<TimeNs>::min(), std::numeric_limits<TimeNs>::max(),
                     std::numeric_limits<size_t>::max());
}

}  // namespace ws::prof

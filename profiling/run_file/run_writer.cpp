#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "profiling/base/failure.h"
#include "profiling/base/ownership.h"
#include "profiling/base/sqlite_log.h"
#include "profiling/base/whole_file.h"
#include "profiling/run_file/run_file.h"
#include "profiling/run_file/run_schema.h"
#include "profiling/run_file/span_codec.h"
#include "profiling/run_file/sqlite.h"
#include "profiling/trace/batch_codec.h"

namespace ws::prof {

namespace {

constexpr size_t kPointsPerBlock = 4096;
constexpr size_t kFewMetrics = 16;
constexpr auto kFlushEvery = std::chrono::milliseconds(300);  // a killed program loses less than a second
using Clock = std::chrono::steady_clock;

constexpr int64_t kFoldFrom = 8u << 20;  // bytes of log
constexpr auto kLookEvery = std::chrono::seconds(1);

void keep_short(const std::stop_token& ended, const std::string& path) {
  std::mutex waiting;
  std::condition_variable_any wake;
  std::unique_lock lock(waiting);
  while (!wake.wait_for(lock, ended, kLookEvery, [&ended] { return ended.stop_requested(); })) {
    if (bytes_of_log(path) < kFoldFrom) continue;
    try {
      Database(path, Database::Mode::Update).exec("PRAGMA wal_checkpoint(PASSIVE)");
    } catch (const std::exception&) {
    }  // for example a full disk: the log grows on, and the writer reports the error
  }
}

// Moves the write-ahead log of a database into the database, on its own thread. This thread waits for the disk (fsync),
// so the writer waits only for the page cache.
class WalKeeper {
 public:
  explicit WalKeeper(const std::string& path)  // path of the database; its writer must not checkpoint itself
      : thread_([path](const std::stop_token& ended) { keep_short(ended, path); }) {}

 private:
  std::jthread thread_;
};

// Which parts of a trace are already in the file.
struct Saved {
  size_t names = 0, details = 1, ops = 1, counters = 0, sources = 0, memory = 0, windows = 0, functions = 0;
  uint64_t stalls = 0;  // changes of the samples
  std::vector<size_t> blocks;  // complete blocks, by track
  std::vector<size_t> points;  // points, by counter
};

class TraceSaver {
 public:
  explicit TraceSaver(Database& db)
      : name_(db.prepare("INSERT OR REPLACE INTO names VALUES(?, ?)")),
        name_stack_(db.prepare("INSERT OR REPLACE INTO name_stacks VALUES(?, ?)")),
        detail_(db.prepare("INSERT OR REPLACE INTO details VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")),
        op_(db.prepare("INSERT OR REPLACE INTO ops VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)")),
        stack_(db.prepare("INSERT OR REPLACE INTO stacks VALUES(?, ?)")),
        track_(db.prepare("INSERT OR REPLACE INTO tracks VALUES(?, ?, ?, ?, ?, ?, ?)")),
        block_(db.prepare("INSERT OR REPLACE INTO blocks VALUES(?, ?, ?, ?, ?, ?, ?)")),
        data_(db.prepare("INSERT OR REPLACE INTO block_data VALUES(?, ?)")),
        counter_(db.prepare("INSERT OR REPLACE INTO counters VALUES(?, ?, ?, ?)")),
        points_(db.prepare("INSERT INTO counter_data(counter, first, last, count, data) VALUES(?, ?, ?, ?, ?)")),
        source_(db.prepare("INSERT OR REPLACE INTO memory_sources VALUES(?, ?)")),
        memory_(db.prepare("INSERT INTO memory_data(first, last, count, data) VALUES(?, ?, ?, ?)")),
        window_(db.prepare("INSERT OR REPLACE INTO sampled_windows VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)")),
        code_(db.prepare("INSERT OR REPLACE INTO sampled_code VALUES(?, ?, ?, ?, ?, ?)")),
        function_(db.prepare("INSERT OR REPLACE INTO sampled_functions VALUES(?, ?, ?, ?, ?, ?)")),
        stall_(db.prepare("INSERT OR REPLACE INTO stalls VALUES(?, ?)")) {}

  void save(const Trace& trace) {
    save_names(trace);
    for (size_t t = 0; t < trace.tracks().size(); ++t) save_track(t, trace.tracks()[t]);
    save_counters(trace);
    save_memory(trace);
    save_stalls(trace.stalls);
  }

  // Call it after the saved counters and memory events were dropped from the trace.
  void forget_points() {
    saved_.memory = 0;
    std::fill(saved_.points.begin(), saved_.points.end(), 0);
  }

 private:
  void save_names(const Trace& trace) {
    for (; saved_.names < trace.name_count(); ++saved_.names)
      save_name(trace, static_cast<NameId>(saved_.names));
    for (; saved_.details < trace.detail_count(); ++saved_.details) {
      const Detail& d = trace.detail(static_cast<DetailId>(saved_.details));
      detail_.run(saved_.details, d.grid[0], d.grid[1], d.grid[2], d.block[0], d.block[1], d.block[2], d.registers,
                  d.static_shared, d.dynamic_shared, static_cast<int64_t>(d.bytes), d.copy_kind);
    }
    for (; saved_.ops < trace.ops.size(); ++saved_.ops) {
      const OpInfo& op = trace.ops[saved_.ops];
      op_.run(saved_.ops, op.name, op.detail, op.layer, op.phase, static_cast<int>(op.meaning), op.flops, op.bytes,
              stack_number(op.stack));
    }
    for (; saved_.sources < trace.memory_sources.size(); ++saved_.sources) {
      source_.run(saved_.sources, trace.memory_sources[saved_.sources]);
    }
  }

  void save_name(const Trace& trace, NameId id) {
    const CodeStack* const stack = trace.stack(id);
    if (stack) name_stack_.run(static_cast<int64_t>(id), Blob{encode_stack(*stack)});
    name_.run(static_cast<int64_t>(id), stack ? std::string() : trace.name(id));
  }

  // Returns 0 for no stack. Ops share most stacks.
  int64_t stack_number(const std::shared_ptr<const CodeStack>& stack) {
    if (!stack) return 0;
    const auto [at, fresh] = stacks_.try_emplace(stack, static_cast<int64_t>(stacks_.size()) + 1);
    if (fresh) stack_.run(at->second, Blob{encode_stack(*stack)});
    return at->second;
  }

  // The last block is still being filled, so it is written again the next time.
  void save_track(size_t id, const Track& track) {
    if (id >= saved_.blocks.size()) {
      saved_.blocks.push_back(0);
      track_.run(id, static_cast<int>(broad_kind(track.kind)), track.name, track.group, track.depth, track.rank, static_cast<int>(track.kind));
    }
    for (size_t i = saved_.blocks[id]; i < track.forgotten + track.blocks.size(); ++i) {
      const SpanBlock& block = track.blocks[i - track.forgotten];
      if (block.spans.empty()) continue;
      const int64_t key = block_id(static_cast<int64_t>(id), static_cast<int64_t>(i));
      block_.run(key, id, i, block.first, block.last, block.count, Blob{pack_sums(block)});
      data_.run(key, Blob{encode_spans(block.spans)});
    }
    if (!track.blocks.empty()) saved_.blocks[id] = track.forgotten + track.blocks.size() - 1;
  }

  void save_counters(const Trace& trace) {
    for (size_t c = 0; c < trace.counters().size(); ++c) {
      const CounterTrack& counter = trace.counters()[c];
      if (c >= saved_.points.size()) {
        saved_.points.push_back(0);
        counter_.run(c, counter.name, counter.unit, static_cast<int>(counter.kind));
      }
      size_t& at = saved_.points[c];
      while (at < counter.points.size()) {
        const size_t end = std::min(at + kPointsPerBlock, counter.points.size());
        const std::vector<CounterPoint> points(counter.points.begin() + static_cast<std::ptrdiff_t>(at),
                                               counter.points.begin() + static_cast<std::ptrdiff_t>(end));
        points_.run(c, points.front().time, points.back().time, points.size(), Blob{encode_points(points)});
        at = end;
      }
    }
  }

  void save_memory(const Trace& trace) {
    while (saved_.memory < trace.memory().size()) {
      const size_t end = std::min(saved_.memory + kPointsPerBlock, trace.memory().size());
      const std::vector<MemoryEvent> events(trace.memory().begin() + static_cast<std::ptrdiff_t>(saved_.memory),
                                            trace.memory().begin() + static_cast<std::ptrdiff_t>(end));
      memory_.run(events.front().time, events.back().time, events.size(), Blob{encode_memory(events)});
      saved_.memory = end;
    }
  }

  // Windows are few, and the samples of an instruction grow with each one: then all are written again.
  void save_stalls(const StallSamples& stalls) {
    if (saved_.stalls == stalls.changes()) return;
    saved_.stalls = stalls.changes();
    for (; saved_.windows < stalls.windows().size(); ++saved_.windows) {
      const SampledWindow& w = stalls.windows()[saved_.windows];
      window_.run(saved_.windows, w.begin, w.end, w.first_step, w.end_step, w.period, static_cast<int64_t>(w.samples), static_cast<int64_t>(w.dropped),
                  static_cast<int64_t>(w.hidden));
    }
    for (; saved_.functions < stalls.code().size(); ++saved_.functions) {
      const SampledCode& code = stalls.code()[saved_.functions];
      function_.run(saved_.functions, static_cast<int64_t>(code.module), static_cast<int64_t>(code.function), code.compute, Blob{quickly_packed(code.bytes)}, Blob{quickly_packed(code.calls)});
    }
    for (size_t i = 0; i < stalls.instructions().size(); ++i) {
      const SampledInstruction& one = stalls.instructions()[i];
      code_.run(i, static_cast<int64_t>(one.module), static_cast<int64_t>(one.function), one.offset, static_cast<int64_t>(one.file), one.line);
      for (size_t reason = 0; reason < kStalls; ++reason)
        if (one.samples[reason] > 0) stall_.run(stall_id(static_cast<int64_t>(i), reason), static_cast<int64_t>(one.samples[reason]));
    }
  }

  Statement name_, name_stack_, detail_, op_, stack_, track_, block_, data_, counter_, points_, source_, memory_, window_, code_, function_, stall_;
  Saved saved_;
  std::unordered_map<std::shared_ptr<const CodeStack>, int64_t> stacks_;  // numbers in the file
};

// Returns the name of its log, which no other file has.
std::string make_file(const std::string& path, const RunSummary& summary) {
  Database db(path, Database::Mode::Create);
  db.exec("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  db.exec("BEGIN");  // one for all: each of its own would write whole pages to the log
  db.exec(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str());
  db.exec(("PRAGMA user_version = " + std::to_string(kRunFileVersion)).c_str());
  db.exec(kRunSchema);
  db.name_log();
  Statement put = db.prepare("INSERT INTO meta VALUES(?, ?)");
  for (const auto& [key, value] : to_meta(summary)) put.run(key, value);
  db.exec("COMMIT");
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");  // closing would do this too, but would not report a failure
  return db.log_name();
}

[[noreturn]] void fail_as_moved(const std::string& path) { throw RunFileMoved(path + " was moved, deleted or replaced while it was being written."); }

// Creates the file under another name and renames it: a program that is killed meanwhile leaves no broken file, and none that
// does not say what it is.
Database create(const std::string& path, const RunSummary& summary, const std::optional<FoundFile>& found) {
  std::string made;
  if (is_part(path))
    made = make_file(path, summary);
  else
    replace_file(path, [&](const std::string& part) { made = make_file(part, summary); }, found);
  Database db(path, Database::Mode::Update);
  if (db.log_name() != made) fail_as_moved(path);  // another file was moved here since
  db.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0");
  return db;
}

// SQLite keeps the number of the application at byte 68, the highest byte first.
bool holds_run(std::ifstream& file) {
  constexpr std::string_view kMagic{"SQLite format 3\0", 16};
  constexpr size_t kNumber = 68;
  char head[kNumber + 4] = {};
  file.read(head, sizeof head);
  uint32_t number = 0;
  for (size_t i = kNumber; i < sizeof head; ++i) number = number << 8 | static_cast<unsigned char>(head[i]);
  return std::string_view(head, kMagic.size()) == kMagic && number == kApplicationId;
}

std::string path_for_run(const std::string& wanted) {
  check_run_file(wanted);
  return file_to_write(wanted);
}

}  // namespace

FoundFile check_run_file(const std::string& path) {
  check_writable(path);
  file_to_write(path);
  std::ifstream file(path, std::ios::binary);
  const bool holds_something = file && file.peek() != std::ifstream::traits_type::eof();
  if (holds_something && !holds_run(file))
    throw Failure(path + ": cannot be written: a file that is no run file has this name, and is not replaced");
  return FoundFile::at(path);
}

struct RunFileWriter::Impl {
  Impl(const std::string& wanted, const RunSummary& first, const std::string& owner, const std::optional<FoundFile>& found)
      : path(path_for_run(wanted)),
        owned(is_part(path) ? nullptr : std::make_unique<Ownership>(path, kWriter, owner)),
        db(create(path, first, found)),
        keeper(std::in_place, path),
        saver(std::in_place, db) {
    if (owned) owned->say(db.log_name());
    log.emplace(path);
  }

  // If the file was moved, writes everything into it: under its new name nobody would find the log. Our log must not stay
  // beside the file that has the old name now; a log that came with that file must.
  void must_be_in_place() {
    if (!db.has_moved()) return;
    keeper.reset();
    db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    if (log->is_there()) remove_log(path);
    fail_as_moved(path);
  }

  // Writes only changed keys, so that a name set by another process meanwhile is kept.
  void write_meta() {
    MetaMap meta = to_meta(summary);
    const Losses& lost = held.losses;
    meta["dropped_records"] = std::to_string(lost.dropped_records);
    meta["invalid_records"] = std::to_string(lost.invalid_records);
    meta["unjoined_kernels"] = std::to_string(lost.unjoined_kernels);
    meta["evicted_spans"] = std::to_string(lost.evicted_spans);
    Statement put = db.prepare("INSERT OR REPLACE INTO meta VALUES(?, ?)");
    for (const auto& [key, value] : meta) {
      const auto known = written.find(key);
      if (known == written.end() || known->second != value) put.run(key, value);
    }
    written = std::move(meta);
  }

  void write_rows() {
    write_metrics();
    Statement evaluation =
        db.prepare("INSERT INTO evaluations(step, epoch, wall_s, test_loss, test_accuracy) VALUES(?, ?, ?, ?, ?)");
    for (const Evaluation& e : evaluations) evaluation.run(e.step, e.epoch, e.wall_s, e.test_loss, e.test_accuracy);
    Statement mark = db.prepare("INSERT INTO marks(step, wall_s, text) VALUES(?, ?, ?)");
    for (const ChangeMark& m : marks) mark.run(m.step, m.wall_s, m.text);
    write_windows();
    for (size_t at = 0; at < allocations.size(); at += kPointsPerBlock) {
      const auto part = std::span(allocations).subspan(at, std::min(kPointsPerBlock, allocations.size() - at));
      db.prepare("INSERT INTO allocation_data(count, data) VALUES(?, ?)")
          .run(part.size(), Blob{encode_allocations(part)});
    }
    metrics.clear();
    evaluations.clear();
    marks.clear();
    windows.clear();
    allocations.clear();
  }

  // A row costs five times as much as an item in a block. A block does not pay for a few steps.
  void write_metrics() {
    Statement block = db.prepare("INSERT INTO metric_data(count, data) VALUES(?, ?)");
    std::span<const Metric> left = metrics;
    for (; left.size() >= kFewMetrics; left = left.subspan(std::min(kPointsPerBlock, left.size()))) {
      const auto part = left.first(std::min(kPointsPerBlock, left.size()));
      block.run(part.size(), Blob{encode_metrics(part)});
    }
    Statement metric = db.prepare("INSERT INTO metrics(step, wall_s, loss, accuracy) VALUES(?, ?, ?, ?)");
    for (const Metric& m : left) metric.run(m.step, m.wall_s, m.loss, m.accuracy);
  }

  void write_windows() {
    Statement window =
        db.prepare("INSERT INTO step_windows VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const StepWindow& w : windows) {
      const MeaningTimes& t = w.times;
      window.run(w.first_step, w.steps, w.begin, w.end, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9],
                 static_cast<int64_t>(w.allocations), static_cast<int64_t>(w.frees), t[10], t[11]);
    }
  }

  template <class Work>
  void in_transaction(const Work& work) {
    db.exec("BEGIN IMMEDIATE");
    try {
      work();
      db.exec("COMMIT");
    } catch (...) {
      try {
        db.exec("ROLLBACK");
      } catch (const std::exception&) {
      }  // report the first failure
      throw;
    }
  }

  // Losses are written first, in their own transaction: they are few, and packing a busy trace takes a while.
  void flush_rows() {
    if (finished) return;
    in_transaction([this] {
      write_meta();
      write_rows();
    });
  }

  void flush() {
    if (finished) return;
    must_be_in_place();
    last_flush = Clock::now();  // the begin of this flush: data that arrives meanwhile waits for the next one
    flush_rows();
    in_transaction([this] { saver->save(held); });
    held.forget_saved();
    saver->forget_points();
  }

  void finish() {
    if (finished) return;
    flush();
    finished = true;
    saver.reset();
    keeper.reset();
    try {
      db.fold();
    } catch (const DatabaseBusy&) {
    }  // someone reads the file: the last one to close it moves the log into it
  }

  const std::string path;
  std::unique_ptr<Ownership> owned;
  std::mutex mutex;
  Database db;
  std::optional<LogFile> log;
  std::optional<WalKeeper> keeper;
  std::optional<TraceSaver> saver;
  RunSummary summary;
  MetaMap written;
  Trace held;
  std::vector<Metric> metrics;
  std::vector<Evaluation> evaluations;
  std::vector<ChangeMark> marks;
  std::vector<StepWindow> windows;
  std::vector<StepAllocations> allocations;
  Clock::time_point last_flush = Clock::now();
  bool finished = false;
};

RunFileWriter::RunFileWriter(const std::string& path, const RunSummary& summary, const std::string& owner, const std::optional<FoundFile>& found)
    : impl_(std::make_unique<Impl>(path, summary, owner, found)) {
  impl_->held.backed = true;
  impl_->summary = summary;
  impl_->flush();
}

RunFileWriter::~RunFileWriter() {
  try {
    impl_->finish();
  } catch (const std::exception&) {
  }  // everything flushed before is in the file
}

void RunFileWriter::set_summary(const RunSummary& summary) {
  std::lock_guard lock(impl_->mutex);
  impl_->summary = summary;
}

void RunFileWriter::add(const Metric& metric) {
  std::lock_guard lock(impl_->mutex);
  impl_->metrics.push_back(metric);
}

void RunFileWriter::add(const Evaluation& evaluation) {
  std::lock_guard lock(impl_->mutex);
  impl_->evaluations.push_back(evaluation);
}

void RunFileWriter::add(const ChangeMark& mark) {
  std::lock_guard lock(impl_->mutex);
  impl_->marks.push_back(mark);
}

void RunFileWriter::add(const StepWindow& window) {
  std::lock_guard lock(impl_->mutex);
  impl_->windows.push_back(window);
}

void RunFileWriter::add(TraceBatch&& batch) {
  std::lock_guard lock(impl_->mutex);
  impl_->allocations.insert(impl_->allocations.end(), batch.allocations.begin(), batch.allocations.end());
  append(impl_->held, std::move(batch));
}

void RunFileWriter::add(const Trace& trace) {
  std::lock_guard lock(impl_->mutex);
  impl_->in_transaction([&] { impl_->saver->save(trace); });
  impl_->held.losses = trace.losses;
}

void RunFileWriter::flush() {
  std::lock_guard lock(impl_->mutex);
  impl_->flush();
}

void RunFileWriter::flush_if_due() {
  std::lock_guard lock(impl_->mutex);
  if (Clock::now() - impl_->last_flush >= kFlushEvery)
    impl_->flush();
  else if (!impl_->metrics.empty())
    impl_->flush_rows();
}

void RunFileWriter::finish() {
  std::lock_guard lock(impl_->mutex);
  impl_->finish();
}

namespace {

void set_meta(const std::string& path, const std::string& key, const std::string& value) {
  Database db(path, Database::Mode::Amend);
  db.prepare("INSERT OR REPLACE INTO meta VALUES(?, ?)").run(key, value);
}

}  // namespace

void rename_run(const std::string& path, const std::string& name) { set_meta(path, "name", name); }
void annotate_run(const std::string& path, const std::string& notes) { set_meta(path, "notes", notes); }

void keep_with_run(const std::string& path, const std::string& key, const std::string& value) {
  set_meta(path, key, value);
}

void tag_run(const std::string& path, const std::vector<std::string>& tags) {
  RunSummary summary;
  summary.tags = tags;
  set_meta(path, "tags", to_meta(summary)["tags"]);
}

}  // namespace ws::prof

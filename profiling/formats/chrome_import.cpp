#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <streambuf>
#include <unordered_map>

#include "profiling/trace/code_places.h"
#include "profiling/analysis/card.h"
#include "profiling/analysis/ranks.h"
#include "profiling/base/budget.h"
#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/base/packed_file.h"
#include "profiling/base/safe_text.h"
#include "profiling/formats/chrome_event.h"
#include "profiling/formats/chrome_handler.h"
#include "profiling/formats/chrome_names.h"
#include "profiling/formats/trace_formats.h"
#include "profiling/formats/inner_events.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/formats/pool_readings.h"
#include "profiling/formats/trace_builder.h"
#include "profiling/run_file/run_schema.h"
#include "profiling/trace/kernel_names.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

using Json = nlohmann::json;
using Handler = ChromeHandler;
using Event = ChromeEvent;
constexpr size_t kMostOpen = 1 << 16;  // B events without their E, per thread

uint64_t bytes_of_torch_type(const std::string& type) {
  constexpr std::pair<std::string_view, uint64_t> kSizes[] = {
      {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}, {"Byte", 1},  {"Char", 1},   {"Bool", 1}, {"Short", 2},
      {"Half", 2},          {"BFloat16", 2},    {"Float", 4}, {"Double", 8}, {"Int", 4},  {"Long", 8}};
  for (const auto& [name, bytes] : kSizes)
    if (type == name) return bytes;
  return 0;
}

// Converts the sum to a date, or returns "" if it is not a time of this century.
std::string begin_text(int64_t base, int64_t began) {
  constexpr int64_t kSecond = 1'000'000'000, kFrom = 946'684'800 * kSecond, kTo = 4'102'444'800 * kSecond;
  int64_t ns = 0;
  if (__builtin_add_overflow(base, began, &ns) || ns < kFrom || ns > kTo) return "";
  return utc_text(ns / kSecond);
}

// Converts events to spans.
class ChromeReader final : public ChromeSink {
 public:
  void add(Event& e) override {
    if (e.phase == "X" && e.category == "Trace") return;  // the time window of the profiler
    if (const std::string_view today = category_of_today(e.category, e.name); today != e.category) e.category = today;
    if (e.phase == "X") return add_span(e, e.time, e.duration);
    if (e.phase == "B") return open(e);
    if (e.phase == "E") return close(e);
    if (e.phase == "C") return add_counter(e);
    if (e.phase == "M" && e.name == "thread_name") name_thread(e);
    if (e.phase == "M" && e.name == "process_name") name_process(e);
    if (e.phase == "i" || e.phase == "I") add_instant(e);
  }
  void set_about(const std::string& key, const std::string& value) override {
    if (key == "traceName")  // PyTorch writes the full path
      name_ = value.starts_with('/') ? std::filesystem::path(value).filename().string() : value;
  }
  void set_kept(const std::string& key, const std::string& value) override {
    builder_.take_memory(200 + key.size() + value.size());
    kept_[key] = value;
  }
  void set_frame(const std::string& number, const std::string& key, const std::string& value) override {
    if (!kept_.contains("origin")) return;  // frames of other programs have no common form
    builder_.take_memory(200 + number.size() + value.size());
    Frame& known = frames_[number];
    if (key == "name" && known.frame == CodeFrame()) known.frame = frame_from_text(value);
    if (key == "file") known.frame.path = value;
    if (key == "line") known.frame.line = as_int(number_in(value, 0));
    if (key == "function") known.frame.function = value;
    if (key == "parent") known.caller = value;
  }
  void set_device(const std::string& key, const std::string& value) override {
    if (key == "name" && card_.name.empty()) card_.name = value;
    for (const auto& [name, number] :
         {std::pair{"computeMajor", &card_.major}, {"computeMinor", &card_.minor}, {"numSms", &card_.multiprocessors}})
      if (key == name && *number == 0) *number = static_cast<int>(std::clamp<int64_t>(number_in(value, 0), 0, 4096));
  }
  void set_world(const std::string& key, int64_t value) override {
    if (key == kRankKey) rank_ = value;
    if (key == kWorldKey) ranks_ = value;
  }
  // Origin of the times, on the wall clock.
  void set_base(int64_t ns) override {
    if (ns <= 0) return;
    base_ = ns;
    builder_.set_other_clock();
  }
  RunData finish() {
    for (const auto& [thread, events] : open_) {
      for (size_t i = 0; i < events.size(); ++i) builder_.leave_out("without an end");
    }
    if (kept_.contains("origin")) builder_.keep_steps();
    if (const std::string problem = inner_problem(builder_); !problem.empty()) run_.problems.push_back(problem);
    if (cycles_) run_.problems.push_back("Proton counts clock cycles. They are shown as if the clock ran at 1 GHz.");
    if (const std::string problem = strange_problem(); !problem.empty()) run_.problems.push_back(problem);
    totals_.draw(builder_, "memory");
    run_.trace = builder_.finish(run_.problems);
    summarize();
    return std::move(run_);
  }

 private:
  // Our own run is restored. For another program, only the values of its profiler are known.
  void summarize() {
    RunSummary& s = run_.summary;
    const auto take = [this](const char* key) {
      auto node = kept_.extract(key);
      return node ? static_cast<uint64_t>(std::max<int64_t>(number_in(node.mapped(), 0), 0)) : 0;
    };
    run_.trace.losses = {take("dropped_records"), take("invalid_records"), take("unjoined_kernels"),
                         take("evicted_spans")};
    kept_.erase("writer");
    const bool ours = kept_.contains("origin");
    s = from_meta(std::move(kept_));
    if (!ours || s.origin.empty()) s.origin = "chrome";
    if (!ours || s.status == "running") s.status = "finished";
    if (s.name.empty()) s.name = name_;
    if (s.device.empty()) s.device = card_.name;
    if (s.device.empty()) s.device = other_device_;
    if (s.machine.empty()) s.machine = machine_text(card_);
    if (s.created.empty()) s.created = begin_text(base_, builder_.began());
    if (ours || ranks_ < 2 || ranks_ > kMostRanks || rank_ < 0 || rank_ >= ranks_) return;
    keep_rank(s, static_cast<int>(rank_), static_cast<int>(ranks_));
    int64_t origin = 0;
    if (base_ > 0 && !__builtin_add_overflow(base_, builder_.began(), &origin)) keep_clock(s, kWallClock, origin);
  }

  void name_thread(const Event& e) {
    builder_.take_memory(200 + e.bytes());
    threads_[e.process + '/' + e.thread] = {e.text("name"), row_of_word(e.text("row")), e.text("group"),
                                           static_cast<int>(std::clamp<int64_t>(e.integer("rank", -1), -1, kMostRanks - 1))};
  }

  static std::string device_name(std::string_view kind, int64_t number) {
    return kind.empty() || kind == "GPU" ? gpu_name(number) : std::string(kind) + " " + std::to_string(number);
  }

  // Those that say where their threads run.
  void name_process(const Event& e) {
    const std::string name = e.text("name");
    if (auto device = device_of_process(name)) {
      builder_.take_memory(200 + e.bytes());
      if (device->kind != "GPU" && device->kind != "CPU") other_device_ = device->kind;
      devices_[e.process] = std::move(*device);
    }
    if (!is_multiprocessor(name)) return;
    builder_.take_memory(200 + e.bytes());
    multiprocessors_[e.process] = name;
  }

  std::optional<InnerPlace> inner_place_of(const Event& e) const {
    const auto at = multiprocessors_.find(e.process);
    return at == multiprocessors_.end() ? inner_place(e.process, e.thread) : inner_place(at->second, thread_name(e));
  }

  void add_inner(const Event& e, const InnerPlace& place, int64_t time, int64_t duration) {
    Span span;
    span.kind = static_cast<uint8_t>(SpanKind::Inner);
    span.flags = kHelper;  // these spans need not fill their kernel
    span.meaning = static_cast<uint8_t>(meaning_of_kernel(e.name));
    span.name = builder_.name(e.name);
    span.op = builder_.op({e.name, place.kernel, {}, {}, span.span_meaning()});
    cycles_ |= !place.kernel.empty();
    builder_.add({TrackKind::Inner, place.row, gpu_name(0)}, span, time, duration);
  }

  // The rows of XLA's profiler, which JAX writes. A GPU's streams have its work; "XLA Ops" would count it twice.
  void add_device_work(const Event& e, const NamedDevice& device, int64_t time, int64_t duration) {
    const std::string thread = thread_name(e), group = device_name(device.kind, device.number);
    const bool stream = thread.starts_with("Stream"), work = stream || (thread == "XLA Ops" && device.kind != "GPU");
    const std::string lane = stream ? stream_name(number_in(thread, 0)) : thread;
    CallClass known{SpanKind::Phase, Meaning::Other};
    if (thread == "Steps") known.kind = SpanKind::Step;
    if (work) known = class_of_device_work(e.name);
    Span span;
    span.kind = static_cast<uint8_t>(known.kind), span.meaning = static_cast<uint8_t>(known.meaning);
    span.detail = detail_of(e, known.kind), span.op = op_of(e, known.meaning);
    span.name = builder_.name(known.kind == SpanKind::Step ? "step" : e.name);
    TraceBuilder::Row row{TrackKind::Phases, lane, group};
    if (known.kind == SpanKind::Step) row = {TrackKind::Steps, "steps", "CPU"}, span.step = step_of(number_in(e.name, -1));
    if (known.kind == SpanKind::Kernel || known.kind == SpanKind::Sync) row.kind = TrackKind::Stream;
    if (known.kind == SpanKind::Copy || known.kind == SpanKind::Memset) row.kind = TrackKind::Copies, row.name += " copies";
    builder_.add(row, span, time, duration);
  }

  void open(Event& e) {
    auto& events = open_[e.process + '/' + e.thread];
    if (events.size() >= kMostOpen) return builder_.leave_out("nested too deeply");
    builder_.take_memory(2 * e.bytes());
    events.push_back(std::move(e));
  }

  void close(const Event& e) {
    const auto row = open_.find(e.process + '/' + e.thread);
    if (row == open_.end() || row->second.empty()) return builder_.leave_out("without a beginning");
    auto& events = row->second;
    const Event begun = std::move(events.back());
    events.pop_back();
    int64_t duration = 0;
    if (__builtin_sub_overflow(e.time, begun.time, &duration)) return builder_.leave_out("with a time out of range");
    add_span(begun, begun.time, duration);
  }

  TraceBuilder::Row row_of(const Event& e, SpanKind kind) const {
    TraceBuilder::Row row = row_without_rank(e, kind);
    const Thread* thread = thread_of(e);
    if (!thread || thread->rank < 0) return row;
    row.rank = thread->rank;
    if (runs_on_gpu(row.kind)) row.group = thread->group;
    return row;
  }
  TraceBuilder::Row row_without_rank(const Event& e, SpanKind kind) const {
    const std::string gpu = device_name(device_of_category(e.category), e.integer("device", number_in(e.process, 0)));
    const std::string stream = stream_name(e.integer("stream", number_in(e.thread, 0)));
    if (kind == SpanKind::Kernel) return {TrackKind::Stream, stream, gpu};
    if (kind == SpanKind::Copy || kind == SpanKind::Memset) return {TrackKind::Copies, stream + " copies", gpu};
    if (kind == SpanKind::GraphRun) return {TrackKind::GraphLaunches, stream + " graphs", gpu};
    if (const Thread* thread = thread_of(e); thread && thread->is_row_of(kind))
      return {kind_of_row(*thread->row, thread->name), thread->name, thread->group};
    if (kind == SpanKind::Step) return {TrackKind::Steps, "steps", "CPU"};
    if (e.category == "gpu_user_annotation") return {TrackKind::Ranges, stream + " ranges", gpu};
    if (e.category == "cuda_sync" || (e.category == "kernel" && kind == SpanKind::Sync)) return {TrackKind::StreamWaits, waits_name(e.integer("stream", -1)), gpu};
    if (e.category == "overhead") return {TrackKind::Overhead, "profiler", "CPU"};
    if (e.category.starts_with("cuda_") || e.category.starts_with("hip_") || e.category.ends_with("_runtime"))
      return {TrackKind::Api, "CUDA API, " + thread_name(e), "CPU"};
    if (e.category == "user_annotation") return {TrackKind::Ranges, thread_name(e) + " ranges", "CPU"};
    return {TrackKind::CpuThread, thread_name(e), "CPU"};
  }

  // A host row, and its kind if the file is ours.
  struct Thread {
    std::string name;
    std::optional<TrackKind> row;
    std::string group;
    int rank = -1;
    bool is_row_of(SpanKind kind) const {
      return row && !runs_on_gpu(*row) && (*row == TrackKind::Steps) == (kind == SpanKind::Step);
    }
  };
  const Thread* thread_of(const Event& e) const {
    const auto at = threads_.find(e.process + '/' + e.thread);
    return at == threads_.end() ? nullptr : &at->second;
  }
  std::string thread_name(const Event& e) const {
    const Thread* thread = thread_of(e);
    return !thread || thread->name.empty() ? "thread " + e.thread : thread->name;
  }

  // Devices other than GPUs write events of their own. They are on the rows of their threads.
  std::string strange_problem() const {
    uint64_t events = 0;
    std::string categories;
    for (const auto& [category, count] : strange_)
      events += count, categories += (categories.empty() ? "\"" : ", \"") + printable(category) + "\"";
    if (events == 0) return "";
    return std::to_string(events) + " events of devices are of unknown kinds (" + categories + "). They are shown as they are, and count as no kernels.";
  }

  static void classify(const Event& e, Span& span) {
    const CallClass known = class_of_chrome(e.category, e.name);
    const SpanKind kind = kind_of_word(e.text("kind")).value_or(known.kind);
    span.kind = static_cast<uint8_t>(kind);
    span.meaning = static_cast<uint8_t>(meaning_of_word(e.text("meaning")).value_or(known.meaning));
    const bool on_gpu = kind == SpanKind::Kernel || kind == SpanKind::Copy || kind == SpanKind::Memset;
    if (on_gpu && (e.integer("graph node id") != 0 || e.integer("graph id") != 0)) span.flags = kInGraph;
    if (e.integer("estimated") != 0) span.flags = span.flags | kEstimated;
    if (e.integer("unjoined") != 0) span.flags = span.flags | kUnjoined;
  }

  DetailId detail_of(const Event& e, SpanKind kind) {
    Detail d;
    if (kind == SpanKind::Kernel) {
      const auto triple = [&e](const char* key, int(&to)[3]) {
        if (const auto at = e.triples.find(key); at != e.triples.end()) {
          for (size_t i = 0; i < 3; ++i) to[i] = as_int(at->second[i]);
        }
      };
      triple("grid", d.grid);
      triple("block", d.block);
      d.registers = as_int(e.integer("registers per thread"));
      d.static_shared = as_int(e.integer("shared memory"));
      d.bytes = static_cast<uint64_t>(std::max<int64_t>(e.integer("bytes"), 0));
      d.copy_kind = e.text("communicator");
      if (!e.text("Collective name").empty()) collective(e, d);
    } else {
      d.bytes = static_cast<uint64_t>(std::max<int64_t>(e.integer("bytes"), 0));
      if (kind == SpanKind::Memset) d.copy_kind = place_of_chrome_memset(e.name);
      if (kind == SpanKind::Copy) d.copy_kind = e.text("copy kind");
      if (kind == SpanKind::Copy && d.copy_kind.empty()) d.copy_kind = copy_kind_of_device_work(e.name);
      if (kind == SpanKind::Copy && d.copy_kind.empty()) d.copy_kind = copy_kind_text(ends_of_chrome_copy(e.name));
    }
    return builder_.trace().intern(d);
  }

  // PyTorch says what a kernel of NCCL does: the larger side of the message, the communicator, and the other rank of a send.
  static void collective(const Event& e, Detail& d) {
    const int64_t elements = std::max(e.integer("In msg nelems"), e.integer("Out msg nelems"));
    d.bytes = static_cast<uint64_t>(std::clamp<int64_t>(elements, 0, int64_t{1} << 50)) * bytes_of_torch_type(e.text("dtype"));
    d.copy_kind = e.text("Process Group Name") + " " + e.text("Process Group Ranks");
    const std::string name = e.text("Collective name");  // a broadcast may have a source, too
    if (const int64_t to = e.integer("Dst Rank", -1); to >= 0 && name == "send")
      d.copy_kind += kSentTo + std::to_string(to);
    else if (const int64_t from = e.integer("Src Rank", -1); from >= 0 && name == "recv")
      d.copy_kind += kReceivedFrom + std::to_string(from);
  }

  CodeStack frames_of_event(const Event& e) const {
    CodeStack stack;
    for (auto frame = frames_.find(e.stack); frame != frames_.end() && stack.frames.size() < kMostStackFrames;
         frame = frames_.find(frame->second.caller))
      stack.frames.push_back(frame->second.frame);
    std::ranges::reverse(stack.frames);
    stack.own = stack.frames.size();
    return stack;
  }

  // A sample has a stack but neither an op nor a line.
  std::shared_ptr<const CodeStack> sample_of_event(const Event& e) {
    if (e.stack.empty() || e.texts.contains("op") || e.texts.contains("line")) return nullptr;
    const auto [at, fresh] = stacks_.try_emplace(e.stack);
    if (!fresh) return at->second;
    CodeStack stack = frames_of_event(e);
    if (stack.frames.empty()) return nullptr;
    builder_.take_memory(200 + at->first.size() + stack.frames.size() * 200);
    return at->second = std::make_shared<CodeStack>(std::move(stack));
  }

  // The frame of the event's line is its own.
  std::shared_ptr<const CodeStack> stack_of_event(const Event& e) {
    const std::string line = e.text("line");
    if (line.empty()) return nullptr;
    const auto [at, fresh] = stacks_.try_emplace(e.stack + '\n' + line);
    if (!fresh) return at->second;
    CodeStack stack = frames_of_event(e);
    const auto own = std::ranges::find(stack.frames.rbegin(), stack.frames.rend(), line, place_text);
    if (own == stack.frames.rend()) stack.frames = {frame_from(line)};
    else stack.own = static_cast<size_t>(stack.frames.rend() - own) - 1;
    builder_.take_memory(200 + at->first.size() + stack.frames.size() * 200);
    return at->second = std::make_shared<CodeStack>(std::move(stack));
  }

  // A step as traces store it, counted from 1; 0: not known.
  static uint32_t step_of(int64_t number) {
    return number >= 0 && number < 0xffffffff ? static_cast<uint32_t>(number + 1) : 0;
  }
  OpTag op_of(const Event& e, Meaning meaning) {
    return builder_.op({e.text("op"), "", e.text("layer"), e.text("phase"), meaning, 0, 0, stack_of_event(e)});
  }

  void add_span(const Event& e, int64_t time, int64_t duration) {
    if (const auto place = inner_place_of(e)) return add_inner(e, *place, time, duration);
    if (const auto device = devices_.find(e.process); device != devices_.end()) return add_device_work(e, device->second, time, duration);
    Span span;
    classify(e, span);
    const SpanKind kind = span.span_kind();
    if (const std::string_view device = device_of_category(e.category); !device.empty()) other_device_ = device;
    span.detail = detail_of(e, kind);
    span.correlation = static_cast<uint32_t>(std::clamp<int64_t>(e.integer("correlation"), 0, 0xffffffff));
    const int64_t step = kind == SpanKind::Step ? number_in(e.name, -1) : e.integer("step", -1);
    span.step = step_of(step);
    span.op = op_of(e, span.span_meaning());
    std::string name = e.name;
    if (kind == SpanKind::Copy) name = "copy " + builder_.trace().detail(span.detail).copy_kind;
    if (kind == SpanKind::Memset) name = "memset";
    if (kind == SpanKind::Step) name = "step";
    const auto sample = sample_of_event(e);
    span.name = sample ? builder_.name(sample) : builder_.name(name);
    if (e.phase == "X" && !e.has_duration) return builder_.leave_out("without a duration");
    if (kind == SpanKind::Other && !kept_.contains("origin") && e.integer("device", -1) >= 0 && e.integer("stream", -1) >= 0)
      ++strange_[e.category];
    const int64_t external = e.integer("External id", e.integer("external id"));
    if (e.category == "cpu_op") builder_.add_external(external, span.name, time, duration);
    builder_.add(row_of(e, kind), span, time, duration, launched(e, kind) ? external : 0);
  }

  // True if the External id determines the op that launched the event. Our own files name the op directly.
  bool launched(const Event& e, SpanKind kind) const {
    const bool on_gpu = kind == SpanKind::Kernel || kind == SpanKind::Copy || kind == SpanKind::Memset;
    return on_gpu && !kept_.contains("origin") && !e.texts.contains("op");
  }

  void add_counter(const Event& e) {
    for (const auto& [key, value] : e.numbers) {
      if (key == e.name && add_scalar(e, value)) continue;
      builder_.add_point(e.name, key == "value" ? "" : key, {e.time, value});
    }
  }

  bool add_scalar(const Event& e, double value) {
    if (e.name == "loss")
      metric_of(e, &Metric::loss) = value;
    else if (e.name == "accuracy")
      metric_of(e, &Metric::accuracy) = value;
    else if (e.name == "test loss")
      evaluation_of(e, &Evaluation::test_loss) = value;
    else if (e.name == "test accuracy")
      evaluation_of(e, &Evaluation::test_accuracy) = value;
    else
      return false;
    return true;
  }

  // Consecutive values of one step belong together. A file without steps has one loss per step.
  template <class Row>
  static bool has_place(const std::vector<Row>& rows, const Event& e, double Row::*value) {
    if (rows.empty() || !std::isnan(rows.back().*value)) return false;
    return e.step < 0 || rows.back().step == e.step;
  }
  static double training_s(const Event& e) {
    return std::isfinite(e.wall_s) ? e.wall_s : static_cast<double>(e.time) * 1e-9;
  }
  double& metric_of(const Event& e, double Metric::*value) {
    auto& rows = run_.metrics;
    if (!has_place(rows, e, value)) {
      builder_.take_memory(2 * sizeof(Metric));
      rows.push_back({e.step < 0 ? std::ssize(rows) : e.step, training_s(e), kNaN, kNaN});
    }
    return rows.back().*value;
  }
  double& evaluation_of(const Event& e, double Evaluation::*value) {
    auto& rows = run_.evaluations;
    if (!has_place(rows, e, value)) {
      builder_.take_memory(2 * sizeof(Evaluation));
      rows.push_back({e.step < 0 ? std::ssize(rows) : e.step, e.epoch, training_s(e), kNaN, kNaN});
    }
    return rows.back().*value;
  }

  void add_instant(const Event& e) {
    if (e.category == "change" && e.step >= 0) {
      builder_.take_memory(2 * sizeof(ChangeMark) + e.name.size());
      run_.marks.push_back({e.step, training_s(e), e.name});
    }
    const bool reserve = e.name == "[reserved memory]";
    if (e.name != "[memory]" && !reserve) return;
    const std::string source = e.text("source");                     // only in our files
    if (source.empty() && e.integer("Device Type", 1) == 0) return;  // host memory
    const int64_t bytes = e.integer("Bytes");
    if (bytes == std::numeric_limits<int64_t>::min()) return builder_.leave_out("with an impossible size");
    MemoryEvent memory{e.time,
                       static_cast<uint64_t>(e.integer("Addr")),
                       static_cast<uint64_t>(std::abs(bytes)),
                       step_of(e.integer("step", -1)),
                       op_of(e, meaning_of_word(e.text("meaning")).value_or(Meaning::Other)),
                       MemoryAction::Free,
                       0};
    if (reserve)
      memory.kind = bytes < 0 ? MemoryAction::Release : MemoryAction::Reserve;
    else
      memory.kind = bytes < 0 ? MemoryAction::Free : MemoryAction::Allocate;
    const int64_t device = e.integer("Device Id");
    builder_.add_memory(memory, source.empty() ? allocator_on("PyTorch", device) : source);
    if (source.empty()) add_totals(e, device);
  }

  // A trace that begins during the run lacks earlier blocks. The totals of each GPU's allocator include them.
  void add_totals(const Event& e, int64_t device) {
    const auto total = [&e](const char* key) -> std::optional<int64_t> {
      if (!e.numbers.contains(key)) return std::nullopt;
      return e.integer(key);
    };
    builder_.take_memory(2 * sizeof(PoolReadings::Reading));
    totals_.add({e.time, device, total("Total Reserved"), total("Total Allocated")});
  }

  static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  RunData run_;
  TraceBuilder builder_;
  PoolReadings totals_;
  std::string name_;
  struct Frame {
    CodeFrame frame;
    std::string caller;
  };
  std::unordered_map<std::string, Frame> frames_;
  std::unordered_map<std::string, std::shared_ptr<const CodeStack>> stacks_;  // by the innermost frame and the line
  MetaMap kept_;  // the run summary in our own files
  Card card_;
  int64_t base_ = 0, rank_ = -1, ranks_ = 0;
  std::unordered_map<std::string, std::vector<Event>> open_;
  std::unordered_map<std::string, Thread> threads_;
  std::unordered_map<std::string, std::string> multiprocessors_;  // by process
  std::unordered_map<std::string, NamedDevice> devices_;          // by process
  std::string other_device_;                                      // "TPU": what did the work, if it is no GPU
  std::map<std::string, uint64_t> strange_;                       // category → events on devices that are no known kind
  bool cycles_ = false;                                           // times inside kernels are clock cycles
};

// One kind of input only: for each, the library brings its readers of six binary formats.
bool read(Handler& handler, std::istream& stream) { return Json::sax_parse(stream, &handler); }

RunData parse(std::istream& stream) {
  ChromeReader reader;
  Handler handler(reader);
  if (!read(handler, stream))
    throw Failure(
        "The trace cannot be read: " + (handler.error.empty() ? std::string("it is damaged") : handler.error) + ".");
  if (!handler.found_events) throw Failure("The file is JSON, but holds no traceEvents.");
  return reader.finish();
}

struct TextBuffer : std::streambuf {
  explicit TextBuffer(std::string_view text) {
    char* const begin = const_cast<char*>(text.data());
    setg(begin, begin, begin + text.size());
  }
};

}  // namespace

void read_chrome(const std::string& path, ChromeSink& sink) {
  if (!std::filesystem::is_regular_file(path)) throw Failure("There is no file " + path + ".");
  PackedStream buffer(path, limits::unpacked_bytes(std::filesystem::file_size(path)));
  std::istream stream(&buffer);
  Handler handler(sink);
  if (!read(handler, stream)) throw Failure(path + " is not a Chrome trace.");
}

RunData read_events(const std::function<void(ChromeSink&)>& source) {
  ChromeReader reader;
  source(reader);
  return reader.finish();
}

RunData parse_chrome(std::string_view text) {
  TextBuffer buffer(text);
  std::istream stream(&buffer);
  return parse(stream);
}

RunData import_chrome(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) throw Failure("There is no file " + path + ".");
  const uint64_t size = std::filesystem::file_size(path);
  PackedStream buffer(path, limits::unpacked_bytes(size));
  std::istream stream(&buffer);
  try {
    RunData run = parse(stream);
    if (run.summary.name.empty()) run.summary.name = std::filesystem::path(path).filename().string();
    return run;
  } catch (const Failure& failure) {
    throw Failure(buffer.problem().empty() ? path + ": " + failure.what() : buffer.problem() + ".");
  }
}

}  // namespace ws::prof

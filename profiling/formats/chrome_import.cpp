#include <zlib.h>

#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <streambuf>
#include <unordered_map>

#include "profiling/clock.h"
#include "profiling/collectors/trace_context.h"
#include "profiling/failure.h"
#include "profiling/formats/chrome_event.h"
#include "profiling/formats/chrome_handler.h"
#include "profiling/formats/chrome_trace.h"
#include "profiling/formats/packed_input.h"
#include "profiling/formats/trace_builder.h"
#include "profiling/formats/track_names.h"

namespace ws::prof {

namespace {

using Json = nlohmann::json;
using Handler = ChromeHandler;
using Event = ChromeEvent;
constexpr size_t kMostOpen = 1 << 16;  // B events without their E, on one thread
constexpr int64_t kMostBytes = int64_t{4} << 30, kMostGrowth = 200;

// The sum as a date, or nothing where the sum is no time of this century.
std::string begin_text(int64_t base, int64_t began) {
  constexpr int64_t kSecond = 1'000'000'000, kFrom = 946'684'800 * kSecond, kTo = 4'102'444'800 * kSecond;
  int64_t ns = 0;
  if (__builtin_add_overflow(base, began, &ns) || ns < kFrom || ns > kTo) return "";
  return utc_text(ns / kSecond);
}

// Turns events into spans.
class ChromeReader final : public ChromeSink {
 public:
  void add(Event& e) override {
    if (e.phase == "X" && e.category == "Trace") return;  // the profiler's own window
    if (e.phase == "X") return add_span(e, e.time, e.duration);
    if (e.phase == "B") return open(e);
    if (e.phase == "E") return close(e);
    if (e.phase == "C") return add_counter(e);
    if (e.phase == "M" && e.name == "thread_name") thread_names_[e.process + '/' + e.thread] = e.text("name");
    if (e.phase == "i" || e.phase == "I") add_instant(e);
  }
  void set_about(const std::string& key, const std::string& value) override {
    if (key == "traceName" && value.starts_with('/'))  // PyTorch writes the whole path
      run_.summary.name = std::filesystem::path(value).filename().string();
    else if (key == "traceName" || key == "name")
      run_.summary.name = value;
    if (key == "device") run_.summary.device = value;
    if (key == "spec") run_.summary.spec = value;
    if (key == "created") run_.summary.created = value;
  }
  void set_device(const std::string& name) override {
    if (run_.summary.device.empty()) run_.summary.device = name;
  }
  // What times count from, on the wall clock.
  void set_base(int64_t ns) override {
    if (ns <= 0) return;
    base_ = ns;
    builder_.set_other_clock();
  }
  RunData finish() {
    for (const auto& [thread, events] : open_) {
      for (size_t i = 0; i < events.size(); ++i) builder_.leave_out("without an end");
    }
    run_.trace = builder_.finish(run_.problems);
    if (run_.summary.created.empty()) run_.summary.created = begin_text(base_, builder_.began());
    run_.summary.origin = "chrome";
    run_.summary.status = "finished";
    return std::move(run_);
  }

 private:
  void open(Event& e) {
    auto& events = open_[e.process + '/' + e.thread];
    if (events.size() >= kMostOpen) return builder_.leave_out("nested too deeply");
    events.push_back(std::move(e));
  }

  void close(const Event& e) {
    auto& events = open_[e.process + '/' + e.thread];
    if (events.empty()) return builder_.leave_out("without a beginning");
    const Event begun = std::move(events.back());
    events.pop_back();
    add_span(begun, begun.time, e.time - begun.time);
  }

  TraceBuilder::Row row_of(const Event& e, SpanKind kind) const {
    const std::string gpu = gpu_name(e.integer("device", number_in(e.process, 0)));
    const std::string stream = stream_name(e.integer("stream", number_in(e.thread, 0)));
    if (kind == SpanKind::Kernel) return {TrackKind::Stream, stream, gpu};
    if (kind == SpanKind::Copy || kind == SpanKind::Memset) return {TrackKind::Copies, stream + " copies", gpu};
    if (kind == SpanKind::Step) return {TrackKind::Steps, "steps", "CPU"};
    if (e.category == "gpu_user_annotation") return {TrackKind::Phases, stream + " ranges", gpu};
    if (e.category == "cuda_sync") return {TrackKind::Other, waits_name(e.integer("stream", -1)), gpu};
    if (e.category == "overhead") return {TrackKind::Overhead, "profiler", "CPU"};
    if (e.category.starts_with("cuda_") || e.category.starts_with("hip_"))
      return {TrackKind::Api, "CUDA API, " + thread_name(e), "CPU"};
    if (e.category == "user_annotation") return {TrackKind::Phases, thread_name(e) + " ranges", "CPU"};
    return {TrackKind::CpuThread, thread_name(e), "CPU"};
  }

  std::string thread_name(const Event& e) const {
    const auto at = thread_names_.find(e.process + '/' + e.thread);
    return at == thread_names_.end() || at->second.empty() ? "thread " + e.thread : at->second;
  }

  void classify(const Event& e, Span& span) {
    SpanKind kind = SpanKind::Other;
    Meaning meaning = Meaning::Other;
    if (e.category == "kernel")
      kind = SpanKind::Kernel, meaning = meaning_of_kernel(e.name);
    else if (e.category == "gpu_memcpy")
      kind = SpanKind::Copy, meaning = Meaning::Copy;
    else if (e.category == "gpu_memset")
      kind = SpanKind::Memset, meaning = Meaning::Copy;
    else if (e.category == "cuda_runtime" || e.category == "cuda_driver")
      kind = class_of_call(e.name).kind, meaning = class_of_call(e.name).meaning;
    else if (e.category == "user_annotation" && e.name.starts_with("ProfilerStep#"))
      kind = SpanKind::Step;
    else if (e.category == "user_annotation" || e.category == "gpu_user_annotation")
      kind = SpanKind::Phase;
    else if (e.category == "overhead")
      kind = SpanKind::Overhead;
    else if (e.category == "cuda_sync")
      kind = SpanKind::Sync, meaning = Meaning::Sync;
    else if (e.category == "cpu_op")
      kind = SpanKind::Op;
    span.kind = static_cast<uint8_t>(kind);
    const auto named = kMeaningNames.find(e.text("meaning"));
    span.meaning = static_cast<uint8_t>(named == kMeaningNames.end() ? meaning : named->second);
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
    } else if (kind == SpanKind::Copy || kind == SpanKind::Memset) {
      d.bytes = static_cast<uint64_t>(std::max<int64_t>(e.integer("bytes"), 0));
      d.copy_kind = kind == SpanKind::Copy ? copy_kind_text(ends_of_chrome_copy(e.name)) : "device";
    }
    return builder_.trace().intern(d);
  }

  void add_span(const Event& e, int64_t time, int64_t duration) {
    Span span;
    classify(e, span);
    const SpanKind kind = span.span_kind();
    span.detail = detail_of(e, kind);
    span.correlation = static_cast<uint32_t>(std::clamp<int64_t>(e.integer("correlation"), 0, 0xffffffff));
    const int64_t step = kind == SpanKind::Step ? number_in(e.name, -1) : e.integer("step", -1);
    if (step >= 0 && step < 0xffffffff) span.step = static_cast<uint32_t>(step + 1);
    span.op = builder_.op({e.text("op"), {}, e.text("layer"), e.text("phase"), span.span_meaning()});
    std::string name = e.name;
    if (kind == SpanKind::Copy) name = "copy " + builder_.trace().detail(span.detail).copy_kind;
    if (kind == SpanKind::Memset) name = "memset";
    if (kind == SpanKind::Step) name = "step";
    span.name = builder_.trace().intern(name);
    if (e.phase == "X" && !e.has_duration) return builder_.leave_out("without a duration");
    builder_.add(row_of(e, kind), span, time, duration);
  }

  void add_counter(const Event& e) {
    for (const auto& [key, value] : e.numbers) {
      if (e.name == "loss" && key == "loss")
        add_metric(e, value, true);
      else if (e.name == "accuracy" && key == "accuracy")
        add_metric(e, value, false);
      else
        builder_.trace().append_counter(builder_.trace().counter(e.name, key == "value" ? "" : key), {e.time, value});
    }
  }

  void add_metric(const Event& e, double value, bool loss) {
    const double nan = std::numeric_limits<double>::quiet_NaN(), wall = static_cast<double>(e.time) * 1e-9;
    if (loss) {
      run_.metrics.push_back({static_cast<int64_t>(run_.metrics.size()), wall, value, nan});
    } else if (!run_.metrics.empty()) {
      run_.metrics.back().accuracy = value;
    }
  }

  void add_instant(const Event& e) {
    const bool reserve = e.name == "[reserved memory]";
    if (e.name != "[memory]" && !reserve) return;
    if (e.integer("Device Type", 1) == 0) return;  // host memory
    const int64_t bytes = e.integer("Bytes");
    if (bytes == std::numeric_limits<int64_t>::min()) return builder_.leave_out("with an impossible size");
    MemoryEvent memory{e.time,
                       static_cast<uint64_t>(e.integer("Addr")),
                       static_cast<uint64_t>(std::abs(bytes)),
                       0,
                       kNoOp,
                       MemoryEventKind::Free,
                       0};
    if (reserve)
      memory.kind = bytes < 0 ? MemoryEventKind::Release : MemoryEventKind::Reserve;
    else
      memory.kind = bytes < 0 ? MemoryEventKind::Free : MemoryEventKind::Allocate;
    const std::string source = e.text("source");
    builder_.add_memory(memory, source.empty() ? "imported" : source);
    if (source.empty()) add_totals(e);
  }

  // A trace that begins in mid-run does not tell of the blocks that were there before; the totals do.
  void add_totals(const Event& e) {
    for (const auto& [key, counter] :
         {std::pair{"Total Allocated", "pool used"}, {"Total Reserved", "pool reserved"}}) {
      const auto at = e.numbers.find(key);
      if (at == e.numbers.end()) continue;
      builder_.trace().append_counter(builder_.trace().counter(counter, "B"), {e.time, at->second});
    }
  }

  static const std::map<std::string, Meaning> kMeaningNames;
  RunData run_;
  TraceBuilder builder_;
  int64_t base_ = 0;
  std::unordered_map<std::string, std::vector<Event>> open_;
  std::unordered_map<std::string, std::string> thread_names_;
};

const std::map<std::string, Meaning> ChromeReader::kMeaningNames{{"matrix product", Meaning::Matrix},
                                                                 {"pointwise", Meaning::Pointwise},
                                                                 {"loss", Meaning::Loss},
                                                                 {"optimizer", Meaning::Optimizer},
                                                                 {"copies", Meaning::Copy},
                                                                 {"allocation", Meaning::Allocation},
                                                                 {"sync", Meaning::Sync},
                                                                 {"launch gaps", Meaning::Launch},
                                                                 {"idle", Meaning::Idle}};

bool read(Handler& handler, std::istream& stream) { return Json::sax_parse(stream, &handler); }
bool read(Handler& handler, const char* begin, const char* end) {
  return Json::sax_parse(std::string_view(begin, static_cast<size_t>(end - begin)), &handler);
}

template <class... Input>
RunData parse(Input&&... input) {
  ChromeReader reader;
  Handler handler(reader);
  const bool good = read(handler, std::forward<Input>(input)...);
  if (!good)
    throw Failure(
        "The trace cannot be read: " + (handler.error.empty() ? std::string("it is damaged") : handler.error) + ".");
  if (!handler.found_events) throw Failure("The file is JSON, but holds no traceEvents.");
  return reader.finish();
}

}  // namespace

RunData parse_chrome(const char* begin, const char* end) { return parse(begin, end); }

RunData import_chrome(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) throw Failure("There is no file " + path + ".");
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  PackedBuffer buffer(path, std::min(kMostBytes, std::max<int64_t>(64 << 20, size * kMostGrowth)));
  std::istream stream(&buffer);
  try {
    RunData run = parse(stream);
    if (run.summary.name.empty()) run.summary.name = std::filesystem::path(path).filename().string();
    return run;
  } catch (const Failure& failure) {
    if (buffer.too_long()) throw Failure(path + " unpacks to more than a trace can be; it is refused.");
    if (buffer.damaged()) throw Failure(path + " is damaged: it cannot be unpacked to the end.");
    throw Failure(path + ": " + failure.what());
  }
}

}  // namespace ws::prof

#include <zlib.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "profiling/analysis/span_walk.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/failure.h"
#include "profiling/formats/chrome_trace.h"
#include "profiling/formats/track_names.h"

namespace ws::prof {

namespace {

constexpr int64_t kHostPid = 100000;  // above any GPU's number

// Writes under another name first, so that a reader never sees half a file.
class TextFile {
 public:
  explicit TextFile(const std::string& path) : path_(path), part_(path + ".part") {
    const bool packed = path.ends_with(".gz");
    file_.reset(gzopen(part_.c_str(), packed ? "wb6" : "wbT"));
    if (!file_) throw Failure("Cannot write " + path + ".");
  }
  ~TextFile() {
    if (file_) std::remove(part_.c_str());
  }
  void put(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() > (1 << 20)) flush();
  }
  void close() {
    flush();
    const bool good = gzclose(file_.release()) == Z_OK;
    std::error_code error;
    if (good) std::filesystem::rename(part_, path_, error);
    if (!good || error) throw Failure("Cannot write " + path_ + ": the disk may be full.");
  }

 private:
  void flush() {
    if (!buffer_.empty() && gzwrite(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size())) <= 0) {
      throw Failure("Cannot write " + path_ + ": the disk may be full.");
    }
    buffer_.clear();
  }
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::string path_, part_, buffer_;
  std::unique_ptr<gzFile_s, Close> file_;
};

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_name(std::string name) {
  std::ranges::replace(name, '\\', '/');
  std::erase(name, '\n');
  return json_text(name);
}

// Microseconds with the ns as three digits: a double would lose them.
std::string microseconds(int64_t ns) {
  char text[40];
  const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  std::snprintf(text, sizeof text, "%s%llu.%03llu", ns < 0 ? "-" : "", static_cast<unsigned long long>(size / 1000),
                static_cast<unsigned long long>(size % 1000));
  return text;
}

struct Place {
  int64_t pid, tid;
  std::string text() const { return "\"pid\": " + std::to_string(pid) + ", \"tid\": " + std::to_string(tid); }
};

const char* category(const Track& track, const Span& span, const std::string& name) {
  switch (span.span_kind()) {
    case SpanKind::Kernel:
      return "kernel";
    case SpanKind::Copy:
      return "gpu_memcpy";
    case SpanKind::Memset:
      return "gpu_memset";
    case SpanKind::Sync:
      if (is_stream_wait(track, span)) return "cuda_sync";
      [[fallthrough]];
    case SpanKind::Api:
    case SpanKind::Alloc:
    case SpanKind::Free:
    case SpanKind::GraphLaunch:
      return name.starts_with("cu") && !name.starts_with("cuda") ? "cuda_driver" : "cuda_runtime";
    case SpanKind::Phase:
    case SpanKind::Step:
      return on_gpu(track) ? "gpu_user_annotation" : "user_annotation";
    case SpanKind::Overhead:
      return "overhead";
    case SpanKind::GraphRun:
    case SpanKind::Inner:
      return "gpu_user_annotation";
    case SpanKind::Op:
    case SpanKind::Other:
      return on_gpu(track) ? "gpu_user_annotation" : "cpu_op";
  }
  return "Trace";
}

class ChromeWriter {
 public:
  ChromeWriter(const RunData& run, const std::string& path) : run_(run), trace_(run.trace), out_(path) {}

  void write() {
    header();
    const auto& tracks = trace_.tracks();
    for (size_t t = 0; t < tracks.size(); ++t) places_.push_back(place_of_track(t));
    metadata();
    find_gpu_correlations();
    for (size_t t = 0; t < tracks.size(); ++t) {
      each_span(tracks[t], -kAlways, kAlways, [&](const Span& span) { add_span(tracks[t], places_[t], span); });
    }
    counters();
    memory();
    event("\"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": \"\", \"ts\": " +
          microseconds(trace_.last_time()));
    out_.put("\n]}\n");
    out_.close();
  }

 private:
  void header() {
    const RunSummary& s = run_.summary;
    nlohmann::ordered_json about{
        {"name", s.name}, {"device", s.device}, {"created", s.created}, {"steps", s.steps}, {"spec", s.spec}};
    out_.put("{\n\"schemaVersion\": 1,\n\"deviceProperties\": [" + device_properties() +
             "],\n\"displayTimeUnit\": \"ms\",\n");
    out_.put("\"baseTimeNanoseconds\": 0,\n\"traceName\": " + json_text(s.name) + ",\n\"warpscope\": ");
    out_.put(about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + ",\n\"traceEvents\": [");
  }

  std::string device_properties() const {
    std::vector<int64_t> devices;
    std::string text;
    for (const Track& track : trace_.tracks()) {
      const int64_t device = number_in(track.group, 0);
      if (!on_gpu(track) || std::ranges::find(devices, device) != devices.end()) continue;
      devices.push_back(device);
      text += std::string(text.empty() ? "" : ", ") + "{\"id\": " + std::to_string(device) +
              ", \"name\": " + json_text(run_.summary.device) + "}";
    }
    return text;
  }

  // Nested rows of one thread are one row here; lanes of overlapping kernels are rows of their own.
  Place place_of_track(size_t index) const {
    const Track& track = trace_.tracks()[index];
    const int64_t number = number_in(track.name, -1);
    if (on_gpu(track))
      return {number_in(track.group, 0), (number < 0 ? static_cast<int64_t>(index) : number) + 100000 * track.depth};
    for (size_t earlier = 0; earlier < index; ++earlier) {
      const Track& other = trace_.tracks()[earlier];
      if (other.kind == track.kind && other.name == track.name && other.group == track.group) return places_[earlier];
    }
    return {kHostPid, static_cast<int64_t>(index) + 1};
  }

  void event(const std::string& fields) {
    out_.put(first_ ? "\n{" : ",\n{");
    out_.put(fields);
    out_.put("}");
    first_ = false;
  }

  void describe(const char* what, Place place, const std::string& args) {
    event("\"ph\": \"M\", \"name\": \"" + std::string(what) + "\", \"ts\": 0, " + place.text() + ", \"args\": {" +
          args + "}");
  }

  void metadata() {
    std::unordered_set<int64_t> processes;
    std::set<std::pair<int64_t, int64_t>> threads;
    for (size_t t = 0; t < trace_.tracks().size(); ++t) {
      const Track& track = trace_.tracks()[t];
      if (processes.insert(places_[t].pid).second) {
        describe("process_name", {places_[t].pid, 0}, "\"name\": \"warpscope\"");
        describe("process_labels", {places_[t].pid, 0},
                 "\"labels\": " + json_text(on_gpu(track) ? track.group : "CPU"));
        describe("process_sort_index", {places_[t].pid, 0},
                 "\"sort_index\": " + std::to_string(on_gpu(track) ? 5000000 + places_[t].pid : 0));
      }
      if (!threads.emplace(places_[t].pid, places_[t].tid).second) continue;
      const std::string lane = on_gpu(track) && track.depth > 0 ? " (" + std::to_string(track.depth + 1) + ")" : "";
      describe("thread_name", places_[t], "\"name\": " + json_text(track.name + lane));
      describe("thread_sort_index", places_[t], "\"sort_index\": " + std::to_string(t));
    }
  }

  void find_gpu_correlations() {
    for (const Track& track : trace_.tracks()) {
      each_span(track, -kAlways, kAlways, [&](const Span& span) {
        if (span.correlation != 0) (on_gpu(track) ? on_gpu_ : on_host_).insert(span.correlation);
      });
    }
  }

  void add_span(const Track& track, Place place, const Span& span) {
    std::string name = trace_.name(span.name);
    const Detail& detail = trace_.detail(span.detail);
    if (span.span_kind() == SpanKind::Copy) name = chrome_copy_name(copy_ends(detail.copy_kind));
    if (span.span_kind() == SpanKind::Memset) name = "Memset (Device)";
    if (span.span_kind() == SpanKind::Step && span.step > 0) name = "ProfilerStep#" + std::to_string(span.step - 1);
    const std::string where = place.text();
    event("\"ph\": \"X\", \"cat\": \"" + std::string(category(track, span, name)) + "\", \"name\": " + json_name(name) +
          ", " + where + ", \"ts\": " + microseconds(span.start) + ", \"dur\": " +
          microseconds(static_cast<int64_t>(span.duration)) + ", \"args\": {" + args(track, span, detail) + "}");
    if (span.correlation != 0) flow(track, span, where);
  }

  void flow(const Track& track, const Span& span, const std::string& where) {
    const bool gpu = on_gpu(track);
    if (!(gpu ? on_host_ : on_gpu_).contains(span.correlation)) return;
    event(std::string("\"ph\": \"") + (gpu ? "f" : "s") + "\", \"id\": " + std::to_string(span.correlation) + ", " +
          where + ", \"ts\": " + microseconds(span.start) + ", \"cat\": \"ac2g\", \"name\": \"ac2g\"" +
          (gpu ? ", \"bp\": \"e\"" : ""));
  }

  std::string args(const Track& track, const Span& span, const Detail& d) const {
    std::string text;
    const auto add = [&text](const char* key, const std::string& value) {
      text += (text.empty() ? "\"" : ", \"") + std::string(key) + "\": " + value;
    };
    const bool wait = is_stream_wait(track, span);
    if (on_gpu(track) || wait) {
      add("device", std::to_string(number_in(track.group, 0)));
      add("context", "1");
      add("stream", std::to_string(number_in(track.name, wait ? -1 : 0)));
    }
    if (span.correlation != 0 || on_gpu(track)) add("correlation", std::to_string(span.correlation));
    if (span.span_kind() == SpanKind::Kernel) kernel_args(d, add);
    if (span.span_kind() == SpanKind::Copy || span.span_kind() == SpanKind::Memset) {
      add("bytes", std::to_string(d.bytes));
      char speed[40];
      std::snprintf(speed, sizeof speed, "%.6g",
                    span.duration > 0 ? static_cast<double>(d.bytes) / static_cast<double>(span.duration) : 0.0);
      add("memory bandwidth (GB/s)", speed);
    }
    if (span.op != kNoOp && span.op < trace_.ops.size()) {
      const OpInfo& op = trace_.ops[span.op];
      add("op", json_text(op.name));
      add("layer", json_text(op.layer));
      add("phase", json_text(op.phase));
    }
    if (span.step != 0) add("step", std::to_string(span.step - 1));
    add("meaning", json_text(meaning_name(span.span_meaning())));
    return text;
  }

  template <class Add>
  static void kernel_args(const Detail& d, Add add) {
    const auto triple = [](const int(&v)[3]) {
      return "[" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) + "]";
    };
    add("registers per thread", std::to_string(d.registers));
    add("shared memory", std::to_string(int64_t{d.static_shared} + d.dynamic_shared));
    add("grid", triple(d.grid));
    add("block", triple(d.block));
  }

  void counter(const std::string& name, const std::string& key, TimeNs time, double value) {
    if (!std::isfinite(value)) return;
    char number[40];
    std::snprintf(number, sizeof number, "%.17g", value);
    event("\"ph\": \"C\", \"name\": " + json_text(name) + ", \"pid\": " + std::to_string(kHostPid) +
          ", \"tid\": 0, \"ts\": " + microseconds(time) + ", \"args\": {" + json_text(key) + ": " + number + "}");
  }

  void counters() {
    for (const CounterTrack& track : trace_.counters()) {
      for (const CounterPoint& point : track.points)
        counter(track.name, track.unit.empty() ? "value" : track.unit, point.time, point.value);
    }
    for (const Metric& m : run_.metrics) {
      counter("loss", "loss", static_cast<TimeNs>(m.wall_s * 1e9), m.loss);
      counter("accuracy", "accuracy", static_cast<TimeNs>(m.wall_s * 1e9), m.accuracy);
    }
  }

  void memory() {
    int64_t allocated = 0, reserved = 0;
    for (const MemoryEvent& e : trace_.memory()) {
      const bool block = e.kind == MemoryEventKind::Allocate || e.kind == MemoryEventKind::Free;
      const bool more = e.kind == MemoryEventKind::Allocate || e.kind == MemoryEventKind::Reserve;
      const int64_t bytes = more ? static_cast<int64_t>(e.bytes) : -static_cast<int64_t>(e.bytes);
      (block ? allocated : reserved) += bytes;
      const std::string source = e.source < trace_.memory_sources.size() ? trace_.memory_sources[e.source] : "";
      event("\"ph\": \"i\", \"s\": \"t\", \"cat\": \"cpu_instant_event\", \"name\": \"" +
            std::string(block ? "[memory]" : "[reserved memory]") + "\", \"pid\": " + std::to_string(kHostPid) +
            ", \"tid\": 0, \"ts\": " + microseconds(e.time) + ", \"args\": {\"Addr\": " + std::to_string(e.address) +
            ", \"Bytes\": " + std::to_string(bytes) + ", \"Total Allocated\": " + std::to_string(allocated) +
            ", \"Total Reserved\": " + std::to_string(reserved) +
            ", \"Device Type\": 1, \"Device Id\": 0, \"source\": " + json_text(source) + "}");
    }
  }

  const RunData& run_;
  const Trace& trace_;
  TextFile out_;
  std::vector<Place> places_;
  std::unordered_set<uint32_t> on_gpu_, on_host_;
  bool first_ = true;
};

}  // namespace

void export_chrome(const RunData& run, const std::string& path) { ChromeWriter(run, path).write(); }

}  // namespace ws::prof

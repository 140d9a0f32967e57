#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "profiling/analysis/card.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/base/packed_file.h"
#include "profiling/base/text.h"
#include "profiling/formats/chrome_names.h"
#include "profiling/formats/trace_formats.h"
#include "profiling/formats/external_ids.h"
#include "profiling/formats/graph_numbers.h"
#include "profiling/formats/scalar_times.h"
#include "profiling/run_file/run_schema.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

constexpr int64_t kHostPid = 100000;  // higher than any GPU number

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_name(std::string name) {
  std::ranges::replace(name, '\\', '/');
  std::erase(name, '\n');
  return json_text(name);
}

// Microseconds with the ns as three decimals. A double would lose them.
std::string microseconds(int64_t ns) {
  const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return formatted("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

struct Place {
  int64_t pid, tid;
  std::string text() const { return "\"pid\": " + std::to_string(pid) + ", \"tid\": " + std::to_string(tid); }
};

class ChromeWriter {
 public:
  ChromeWriter(const RunData& run, const std::string& path)
      : run_(run),
        trace_(run.trace),
        card_(card_of(run.summary)),
        graphs_(run.trace),
        external_(run.trace),
        times_(run),
        out_(path) {}

  void write() {
    header();
    const auto& tracks = trace_.tracks();
    for (size_t t = 0; t < tracks.size(); ++t) places_.push_back(place_of_track(t));
    metadata();
    name_instants();
    find_gpu_correlations();
    for (size_t t = 0; t < tracks.size(); ++t) {
      each_span(tracks[t], -kAlways, kAlways, [&](const Span& span) { add_span(tracks[t], places_[t], span); });
    }
    counters();
    scalars();
    marks();
    memory();
    event("\"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": \"\", \"ts\": " +
          microseconds(trace_.last_time()));
    out_.put("\n]}\n");
    out_.close();
  }

 private:
  void header() {
    // The complete run summary, as in our run files, so that an import restores it.
    MetaMap about = to_meta(run_.summary);
    about["dropped_records"] = std::to_string(trace_.losses.dropped_records);
    about["invalid_records"] = std::to_string(trace_.losses.invalid_records);
    about["unjoined_kernels"] = std::to_string(trace_.losses.unjoined_kernels);
    about["evicted_spans"] = std::to_string(trace_.losses.evicted_spans);
    out_.put("{\n\"schemaVersion\": 1,\n\"deviceProperties\": [" + device_properties() +
             "],\n\"displayTimeUnit\": \"ms\",\n");
    out_.put("\"baseTimeNanoseconds\": 0,\n\"traceName\": " + json_text(run_.summary.name) + ",\n\"warpsight\": ");
    out_.put(nlohmann::json(about).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
             ",\n\"stackFrames\": {");
    stack_frames();
    out_.put("},\n\"traceEvents\": [");
  }

  // Stacks with common callers share their frames, as the format asks.
  void stack_frames() {
    std::map<std::pair<size_t, CodeFrame>, size_t> numbers;  // by caller and frame
    const auto innermost = [&](const std::vector<CodeFrame>& frames) {
      size_t caller = 0;
      for (const CodeFrame& frame : frames) {
        const auto [at, fresh] = numbers.try_emplace({caller, frame}, numbers.size() + 1);
        if (fresh)
          out_.put(std::string(at->second > 1 ? "," : "") + "\n\"" + std::to_string(at->second) + "\": {\"category\": \"program\", \"name\": " +
                   json_text(frame_text(frame)) + frame_keys(frame) +
                   (caller ? ", \"parent\": \"" + std::to_string(caller) + "\"" : "") + "}");
        caller = at->second;
      }
      return caller;
    };
    for (const OpInfo& op : trace_.ops) stacks_.push_back(innermost(stack_of(op)));
    for (size_t i = 0; i < trace_.name_count(); ++i)
      if (const CodeStack* stack = trace_.stack(static_cast<NameId>(i)))
        sampled_[static_cast<NameId>(i)] = innermost(stack->frames);
  }

  // What our importer cannot read in the name.
  static std::string frame_keys(const CodeFrame& frame) {
    if (frame_from_text(frame_text(frame)) == frame) return {};
    return ", \"file\": " + json_text(frame.path) + ", \"line\": \"" + std::to_string(frame.line) + "\", \"function\": " + json_text(frame.function);
  }

  size_t stack_number(const Span& span) const {
    if (const auto at = sampled_.find(span.name); at != sampled_.end()) return at->second;
    return span.op < stacks_.size() ? stacks_[span.op] : 0;
  }

  std::string device_properties() const {
    std::vector<int64_t> devices;
    std::string text;
    for (const Track& track : trace_.tracks()) {
      const int64_t device = gpu_number(track.group);
      if (!on_gpu(track) || std::ranges::find(devices, device) != devices.end()) continue;
      devices.push_back(device);
      text += std::string(text.empty() ? "" : ", ") + "{\"id\": " + std::to_string(device) +
              ", \"name\": " + json_text(run_.summary.device) + card_properties() + "}";
    }
    return text;
  }

  std::string card_properties() const {
    std::string text;
    const auto add = [&text](const char* key, int value) {
      if (value > 0) text += ", \"" + std::string(key) + "\": " + std::to_string(value);
    };
    add("computeMajor", card_.major);
    if (card_.major > 0) text += ", \"computeMinor\": " + std::to_string(card_.minor);
    if (card_.limits) {
      add("maxThreadsPerBlock", card_.limits->threads_per_block);
      add("maxThreadsPerMultiprocessor", card_.limits->threads_per_sm);
      add("warpSize", card_.limits->warp);
      add("regsPerMultiprocessor", card_.limits->registers_per_sm);
      add("sharedMemPerMultiprocessor", card_.limits->shared_per_sm);
    }
    add("numSms", card_.multiprocessors);
    return text;
  }

  // GPUs of several hosts may have one number.
  static int64_t pid_of_gpu(const Track& track) {
    constexpr int64_t kMostGpus = 1000;
    return gpu_number(track.group) + (track.rank < 0 ? 0 : 2 * kHostPid + kMostGpus * track.rank);
  }

  // All depths of a host thread share one row here. Lanes of overlapping kernels have separate rows.
  Place place_of_track(size_t index) {
    const Track& track = trace_.tracks()[index];
    const int64_t number = number_in(track.name, -1);
    if (on_gpu(track))
      return {pid_of_gpu(track), (number < 0 ? static_cast<int64_t>(index) : number) + 100000 * track.depth};
    const Place place{kHostPid, static_cast<int64_t>(index) + 1};
    return threads_.try_emplace(std::tuple(track.kind, track.name, track.group, track.rank), place).first->second;
  }

  // Kernels and copies of a stream share a row.
  static std::string thread_name(const Track& track) {
    if (!on_gpu(track)) return track.name;
    const int64_t stream = number_in(track.name, -1);
    const std::string lane = track.depth > 0 ? " (" + std::to_string(track.depth + 1) + ")" : "";
    return (stream < 0 ? track.name : stream_name(stream)) + lane;
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
        describe("process_name", {places_[t].pid, 0}, "\"name\": \"warpsight\"");
        describe("process_labels", {places_[t].pid, 0},
                 "\"labels\": " + json_text(on_gpu(track) ? track.group : "CPU"));
        describe("process_sort_index", {places_[t].pid, 0},
                 "\"sort_index\": " + std::to_string(on_gpu(track) ? 5000000 + places_[t].pid : 0));
      }
      if (!threads.emplace(places_[t].pid, places_[t].tid).second) continue;
      // Chrome has no key for the kind of a row. The last two keys are for our own importer.
      describe("thread_name", places_[t],
               "\"name\": " + json_text(thread_name(track)) + ", \"row\": " + json_text(row_word(track.kind)) +
                   ", \"group\": " + json_text(track.group) +
                   (track.rank < 0 ? "" : ", \"rank\": " + std::to_string(track.rank)));
      describe("thread_sort_index", places_[t], "\"sort_index\": " + std::to_string(t));
    }
  }

  // Names the row of memory events and setting changes.
  void name_instants() {
    if (run_.marks.empty() && trace_.memory().empty()) return;
    describe("thread_name", {kHostPid, 0}, "\"name\": \"memory and changes\"");
    describe("thread_sort_index", {kHostPid, 0}, "\"sort_index\": " + std::to_string(trace_.tracks().size()));
  }

  // Profiler overhead for a call, such as loading a function, has the call's number although it launched nothing.
  static bool has_flows(const Track& track) { return broad_kind(track.kind) != TrackKind::Overhead; }

  void find_gpu_correlations() {
    for (const Track& track : trace_.tracks()) {
      each_span(track, -kAlways, kAlways, [&](const Span& span) {
        if (span.correlation != 0 && has_flows(track)) (on_gpu(track) ? on_gpu_ : on_host_).insert(span.correlation);
      });
    }
  }

  void add_span(const Track& track, Place place, const Span& span) {
    std::string name = trace_.name(span.name);
    const Detail& detail = trace_.detail(span.detail);
    if (span.span_kind() == SpanKind::Copy) name = chrome_copy_name(copy_ends(detail.copy_kind));
    if (span.span_kind() == SpanKind::Memset) name = chrome_memset_name(detail.copy_kind);
    if (span.span_kind() == SpanKind::Step && span.step > 0) name = "ProfilerStep#" + std::to_string(span.step - 1);
    const std::string where = place.text(), category = chrome_category(track, span, name);
    std::string more = args(track, span, detail);
    const size_t stack = stack_number(span);
    if (class_of_chrome(category, name).kind != span.span_kind())
      more += ", \"kind\": " + json_text(kind_word(span.span_kind()));
    event("\"ph\": \"X\", \"cat\": \"" + category + "\", \"name\": " + json_name(name) + ", " + where +
          ", \"ts\": " + microseconds(span.start) + ", \"dur\": " + microseconds(static_cast<int64_t>(span.duration)) +
          (stack > 0 ? ", \"sf\": \"" + std::to_string(stack) + "\"" : "") +
          ", \"args\": {" + more + "}");
    if (span.correlation != 0 && has_flows(track)) flow(track, span, where);
  }

  void flow(const Track& track, const Span& span, const std::string& where) {
    const bool gpu = on_gpu(track);
    if (!(gpu ? on_host_ : on_gpu_).contains(span.correlation)) return;
    event(std::string("\"ph\": \"") + (gpu ? "f" : "s") + "\", \"id\": " + std::to_string(span.correlation) + ", " +
          where + ", \"ts\": " + microseconds(span.start) + ", \"cat\": \"ac2g\", \"name\": \"ac2g\"" +
          (gpu ? ", \"bp\": \"e\"" : ""));
  }

  std::string args(const Track& track, const Span& span, const Detail& d) {
    std::string text;
    const auto add = [&text](const char* key, const std::string& value) {
      text += (text.empty() ? "\"" : ", \"") + std::string(key) + "\": " + value;
    };
    if (const uint64_t id = external_.next(track, span)) add("External id", std::to_string(id));
    const bool wait = is_stream_wait(track, span);
    if (on_gpu(track) || wait) {
      add("device", std::to_string(gpu_number(track.group)));
      add("context", "1");
      add("stream", std::to_string(number_in(track.name, wait ? -1 : 0)));
    }
    if (span.correlation != 0 || on_gpu(track)) add("correlation", std::to_string(span.correlation));
    if (span.span_kind() == SpanKind::Kernel) text += kernel_args(span.detail);
    bytes_args(span, d, add);
    graph_args(track, span, add);
    op_args(span.op, span.step, add);
    if (span.flags & kEstimated) add("estimated", "1");
    if (span.flags & kUnjoined) add("unjoined", "1");
    add("meaning", json_text(meaning_name(span.span_meaning())));
    return text;
  }

  template <class Add>
  void op_args(OpTag tag, uint32_t step, Add add) const {
    if (tag != kNoOp && tag < trace_.ops.size()) {
      const OpInfo& op = trace_.ops[tag];
      add("op", json_text(op.name));
      add("layer", json_text(op.layer));
      add("phase", json_text(op.phase));
      if (const std::string line = line_of(op); !line.empty()) add("line", json_text(line));
    }
    if (step != 0) add("step", std::to_string(step - 1));
  }

  template <class Add>
  static void bytes_args(const Span& span, const Detail& d, Add add) {
    const bool moves = span.span_kind() == SpanKind::Copy || span.span_kind() == SpanKind::Memset;
    if (moves || d.bytes > 0) add("bytes", std::to_string(d.bytes));
    if (span.span_kind() == SpanKind::Kernel && !d.copy_kind.empty()) add("communicator", json_text(d.copy_kind));
    if (!moves) return;
    add("memory bandwidth (GB/s)",
        formatted("{:.6g}",
                  span.duration > 0 ? static_cast<double>(d.bytes) / static_cast<double>(span.duration) : 0.0));
    if (span.span_kind() == SpanKind::Copy && copy_kind_text(copy_ends(d.copy_kind)) != d.copy_kind)
      add("copy kind", json_text(d.copy_kind));  // for example between two cards
  }

  template <class Add>
  void graph_args(const Track& track, const Span& span, Add add) {
    if (span.span_kind() == SpanKind::GraphRun) add("graph id", std::to_string(graph_number(trace_, span)));
    if (!on_gpu(track) || !(span.flags & kInGraph)) return;
    const GraphNumbers::Node at = graphs_.next(span);
    add("graph id", std::to_string(at.graph));
    add("graph node id", std::to_string(at.node));
  }

  // The text is cached, because there are few different launch shapes.
  const std::string& kernel_args(DetailId id) {
    std::string& text = kernel_args_[static_cast<size_t>(id)];
    if (!text.empty()) return text;
    const Detail& d = trace_.detail(id);
    const auto add = [&text](const char* key, const std::string& value) {
      text += ", \"" + std::string(key) + "\": " + value;
    };
    const auto triple = [](const int(&v)[3]) {
      return "[" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) + "]";
    };
    const auto fill = fill_of(d, card_);
    add("registers per thread", std::to_string(d.registers));
    add("shared memory", std::to_string(int64_t{d.static_shared} + d.dynamic_shared));
    if (fill) add("blocks per SM", formatted("{:.6f}", fill->blocks_per_sm));
    if (fill) add("warps per SM", formatted("{:.6f}", fill->warps_per_sm));
    add("grid", triple(d.grid));
    add("block", triple(d.block));
    if (fill && fill->occupancy)
      add("est. achieved occupancy %", formatted("{:.0f}", std::floor(*fill->occupancy * 100 + 0.5)));
    return text;
  }

  // `more`: extra keys of the event, which viewers ignore.
  void counter(const std::string& name, const std::string& key, TimeNs time, double value,
               const std::string& more = {}) {
    if (!std::isfinite(value)) return;
    event("\"ph\": \"C\", \"cat\": \"counter\", \"name\": " + json_text(name) +
          ", \"pid\": " + std::to_string(kHostPid) + ", \"tid\": 0, \"ts\": " + microseconds(time) + more +
          ", \"args\": {" + json_text(key) + ": " + formatted("{:.17g}", value) + "}");
  }

  void counters() {
    for (const CounterTrack& track : trace_.counters()) {
      for (const CounterPoint& point : track.points)
        counter(track.name, track.unit.empty() ? "value" : track.unit, point.time, point.value);
    }
  }

  static std::string step_keys(int64_t step, double wall_s) {
    return ", \"step\": " + std::to_string(step) +
           (std::isfinite(wall_s) ? ", \"wall_s\": " + formatted("{:.17g}", wall_s) : std::string());
  }

  void scalars() {
    const auto put = [this](const char* name, const auto& row, double value, const std::string& more) {
      counter(name, name, times_.at(row.step, row.wall_s), value, step_keys(row.step, row.wall_s) + more);
    };
    for (const Metric& m : run_.metrics) {
      put("loss", m, m.loss, "");
      put("accuracy", m, m.accuracy, "");
    }
    for (const Evaluation& e : run_.evaluations) {
      const std::string more = std::isfinite(e.epoch) ? ", \"epoch\": " + formatted("{:.17g}", e.epoch) : std::string();
      put("test loss", e, e.test_loss, more);
      put("test accuracy", e, e.test_accuracy, more);
    }
  }

  // Settings that were changed during the run.
  void marks() {
    for (const ChangeMark& mark : run_.marks) {
      event("\"ph\": \"i\", \"s\": \"g\", \"cat\": \"change\", \"name\": " + json_text(mark.text) + ", \"pid\": " +
            std::to_string(kHostPid) + ", \"tid\": 0, \"ts\": " + microseconds(times_.at(mark.step, mark.wall_s)) +
            step_keys(mark.step, mark.wall_s));
    }
  }

  void memory() {
    struct Totals {
      uint64_t allocated = 0, reserved = 0;  // sizes may have any value, so sums may wrap around
    };
    std::map<int64_t, Totals> totals;  // by GPU
    for (const MemoryEvent& e : trace_.memory()) {
      const bool block = e.kind == MemoryAction::Allocate || e.kind == MemoryAction::Free;
      const bool more = e.kind == MemoryAction::Allocate || e.kind == MemoryAction::Reserve;
      const uint64_t bytes = more ? e.bytes : 0 - e.bytes;
      const std::string source = e.source < trace_.memory_sources.size() ? trace_.memory_sources[e.source] : "";
      const int64_t gpu = allocator_gpu(source);
      Totals& held = totals[gpu];
      (block ? held.allocated : held.reserved) += bytes;
      std::string text = "\"Addr\": " + std::to_string(e.address) +
                         ", \"Bytes\": " + std::to_string(static_cast<int64_t>(bytes)) +
                         ", \"Total Allocated\": " + std::to_string(static_cast<int64_t>(held.allocated)) +
                         ", \"Total Reserved\": " + std::to_string(static_cast<int64_t>(held.reserved)) +
                         ", \"Device Type\": 1, \"Device Id\": " + std::to_string(gpu) +
                         ", \"source\": " + json_text(source);
      const auto add = [&text](const char* key, const std::string& value) {
        text += ", \"" + std::string(key) + "\": " + value;
      };
      op_args(e.op, e.step, add);
      if (e.op != kNoOp && e.op < trace_.ops.size()) add("meaning", json_text(meaning_name(trace_.ops[e.op].meaning)));
      const size_t stack = e.op < stacks_.size() ? stacks_[e.op] : 0;
      event("\"ph\": \"i\", \"s\": \"t\", \"cat\": \"cpu_instant_event\", \"name\": \"" +
            std::string(block ? "[memory]" : "[reserved memory]") + "\", \"pid\": " + std::to_string(kHostPid) +
            ", \"tid\": 0, \"ts\": " + microseconds(e.time) +
            (stack > 0 ? ", \"sf\": \"" + std::to_string(stack) + "\"" : "") + ", \"args\": {" + text + "}");
    }
  }

  const RunData& run_;
  const Trace& trace_;
  const Card card_;
  GraphNumbers graphs_;
  ExternalIds external_;
  const ScalarTimes times_;
  PackedWriter out_;
  std::vector<size_t> stacks_;  // the innermost frame, by op; 0: none
  std::unordered_map<NameId, size_t> sampled_;  // the same by the name of a sample
  std::unordered_map<size_t, std::string> kernel_args_;  // by detail
  std::vector<Place> places_;
  std::map<std::tuple<TrackKind, std::string, std::string, int>, Place> threads_;  // rows of all depths share a place
  std::unordered_set<uint32_t> on_gpu_, on_host_;
  bool first_ = true;
};

}  // namespace

void export_chrome(const RunData& run, const std::string& path) { ChromeWriter(run, path).write(); }

}  // namespace ws::prof

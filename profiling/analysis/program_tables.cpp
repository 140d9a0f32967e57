#include "profiling/analysis/program_tables.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "profiling/analysis/collective_waits.h"
#include "profiling/analysis/covered_time.h"
#include "profiling/analysis/memory_history.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/kernel_names.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

struct OwnTime {
  Span span;
  int64_t own = 0;  // ns without inner ranges
};

// All ranges by thread. Rows with the same name are different depths of one thread.
std::map<std::string, std::vector<OwnTime>> ranges_by_thread(const Trace& trace, TimeNs begin, TimeNs end) {
  std::map<std::string, std::vector<OwnTime>> threads;
  for (const Track& track : tracks_of_steps(trace))
    if (track.kind == TrackKind::Ranges)
      each_span(track, begin, end, [&](const Span& span) {
        threads[track.group + track.name].push_back({span, static_cast<int64_t>(span.duration)});
      });
  return threads;
}

void sort_outer_first(std::vector<OwnTime>& ranges) {
  std::ranges::stable_sort(ranges, [](const OwnTime& a, const OwnTime& b) {
    return a.span.start != b.span.start ? a.span.start < b.span.start : a.span.duration > b.span.duration;
  });
}

// Each moment belongs to the range that began last and is still open. Ranges of one thread may overlap without nesting:
// the backward range of a module begins inside of the op that calls its hook, and ends after it.
void leave_inner_out(std::vector<OwnTime>& ranges) {
  sort_outer_first(ranges);
  using End = std::pair<TimeNs, size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  std::vector<size_t> open;  // by their begin; those that have ended are removed once they are last
  std::vector<bool> ended(ranges.size());
  TimeNs now = 0;
  const auto advance = [&](TimeNs to) {
    if (!open.empty()) ranges[open.back()].own += to - now;
    now = to;
  };
  const auto end_until = [&](TimeNs to) {
    for (; !ends.empty() && ends.top().first <= to; ends.pop()) {
      advance(ends.top().first);
      ended[ends.top().second] = true;
      while (!open.empty() && ended[open.back()]) open.pop_back();
    }
  };
  for (size_t i = 0; i < ranges.size(); ++i) {
    end_until(ranges[i].span.start);
    advance(ranges[i].span.start);
    ranges[i].own = 0;
    open.push_back(i);
    ends.emplace(ranges[i].span.end(), i);
  }
  end_until(kAlways);
}

}  // namespace

void each_own_range(const Trace& trace, TimeNs begin, TimeNs end, const std::function<void(const Span&, int64_t)>& take) {
  for (auto& [thread, ranges] : ranges_by_thread(trace, begin, end)) {
    leave_inner_out(ranges);
    for (const OwnTime& range : ranges) take(range.span, range.own);
  }
}

std::vector<KernelRow> range_table(const Trace& trace, TimeNs begin, TimeNs end, GroupBy by) {
  std::map<std::string, KernelRow> rows;
  std::map<std::string, std::vector<int64_t>> durations;
  int64_t all = 0;
  each_own_range(trace, begin, end, [&](const Span& span, int64_t own) {
    if (span.op == kNoOp || span.op >= trace.ops.size()) return;
    const OpInfo& op = trace.ops[span.op];
    const std::string key = by == GroupBy::Name || by == GroupBy::Shape ? op.name : group_name(op, by);
    const auto [at, fresh] = rows.try_emplace(key);
    if (fresh) at->second.key = key, at->second.name = span.name, at->second.op = span.op;
    at->second.kind = SpanKind::Phase;
    durations[key].push_back(own);
  });
  std::vector<KernelRow> table;
  for (auto& [key, row] : rows) {
    row.time = stats_of(durations[key]);
    all += row.time.total;
    table.push_back(std::move(row));
  }
  for (KernelRow& row : table)
    row.share = all > 0 ? static_cast<double>(row.time.total) / static_cast<double>(all) : 0;
  sort_rows(table, [](const KernelRow& a, const KernelRow& b) { return a.time.total > b.time.total; });
  return table;
}

namespace {

void add(ModuleTimes& to, const ModuleTimes& more) {
  to.forward_ns += more.forward_ns, to.backward_ns += more.backward_ns, to.other_ns += more.other_ns;
  to.host_ns += more.host_ns, to.kernels += more.kernels, to.peak_bytes += more.peak_bytes;
}

size_t last_separator(std::string_view path) { return path.find_last_of("./"); }
std::string outermost(const std::string& path) { return path.substr(0, path.find_first_of("./")); }

using OwnTimes = std::map<std::string, ModuleTimes>;

const OpInfo& op_of(const Trace& trace, OpTag op) { return trace.ops[op < trace.ops.size() ? op : 0]; }

// Where the ranks are known, a collective has two parts.
void add_collective(OwnTimes& own, const CollectiveWaits& waits, const Track& track, const Span& span) {
  const auto parts = waits.of(track.rank, span);
  const auto add = [&own](const std::string& path, TimeNs ns, uint64_t kernels) {
    ModuleTimes& times = own[path];
    times.other_ns += ns, times.kernels += kernels;
  };
  if (!parts) return add(kCollectives, static_cast<TimeNs>(span.duration), 1);
  add(std::string(kCollectives) + ".waits for a rank", parts->wait, 0);
  add(std::string(kCollectives) + ".transfers", static_cast<TimeNs>(span.duration) - parts->wait, 1);
}

void add_kernel(OwnTimes& own, const Trace& trace, const CollectiveWaits& waits, const Track& track, const Span& span) {
  const OpInfo op = charged_op(trace, span.span_meaning(), span.op);
  if (span.span_kind() != SpanKind::Kernel || op.layer.empty()) return;
  if (op.layer == kCollectives) return add_collective(own, waits, track, span);
  ModuleTimes& times = own[op.layer];
  ++times.kernels;
  (op.phase == "forward" ? times.forward_ns : op.phase == "backward" ? times.backward_ns : times.other_ns) += static_cast<int64_t>(span.duration);
}

// Spans count where they begin.
void add_stretch(OwnTimes& own, const Trace& trace, TimeRange part) {
  const CollectiveWaits waits(trace, part, 0, std::numeric_limits<size_t>::max());
  const auto host = [&](const Span& span, int64_t ns) {
    if (const OpInfo& op = op_of(trace, span.op); part.contains(span.start) && !op.layer.empty()) own[op.layer].host_ns += ns;
  };
  for (const Track& track : tracks_of_steps(trace)) {
    if (!on_gpu(track) && track.kind != TrackKind::CpuThread) continue;
    each_span(track, part.begin, part.end, [&](const Span& span) {
      if (on_gpu(track) && part.contains(span.start)) add_kernel(own, trace, waits, track, span);
      if (!on_gpu(track) && span.span_kind() == SpanKind::Op) host(span, static_cast<int64_t>(span.duration));  // our own training
    });
  }
  each_own_range(trace, part.begin, part.end, host);
}

OwnTimes own_times(const Trace& trace, const std::vector<TimeRange>& stretches) {
  OwnTimes own;
  for (const TimeRange& part : stretches) add_stretch(own, trace, part);
  for (size_t i = 0; i < trace.memory_sources.size(); ++i)
    if (!is_driver_source(trace.memory_sources[i]))
      each_live_at_peak(memory_history(trace, static_cast<int>(i)), [&](const MemoryBlock& block) {
        if (const OpInfo& op = op_of(trace, block.op); !op.layer.empty()) own[op.layer].peak_bytes += block.bytes;
      });
  return own;
}

// The module that calls each outermost module, if it is always the same one: the root of a model has the name of its class,
// and the paths below it do not begin with that name.
std::map<std::string, std::string> roots(const Trace& trace) {
  std::map<std::string, std::set<std::string>> callers;
  for (auto& [thread, ranges] : ranges_by_thread(trace, -kAlways, kAlways)) {
    sort_outer_first(ranges);
    std::vector<std::pair<TimeNs, const std::string*>> open;  // end and module
    for (const OwnTime& range : ranges) {
      while (!open.empty() && open.back().first < range.span.end()) open.pop_back();
      const OpInfo& op = trace.ops[range.span.op < trace.ops.size() ? range.span.op : 0];
      if (op.layer.empty() || op.phase != "forward") continue;
      if (!open.empty())  // a list of modules is never called itself: "body.0" stands for "body"
        if (const std::string first = outermost(op.layer); first != outermost(*open.back().second))
          callers[first].insert(*open.back().second);
      open.emplace_back(range.span.end(), &op.layer);
    }
  }
  std::map<std::string, std::string> found;
  for (const auto& [path, by] : callers)
    if (by.size() == 1 && last_separator(*by.begin()) == std::string::npos && !callers.contains(*by.begin()))
      found[path] = *by.begin();
  return found;
}

struct Tree {
  std::map<std::string, std::string> root_of;              // of an outermost path
  std::map<std::string, std::vector<std::string>> inside;  // by path; "": the outermost modules
  std::map<std::string, ModuleNode> nodes;

  ModuleNode& node(const std::string& path) {
    const auto [at, fresh] = nodes.try_emplace(path);
    if (!fresh) return at->second;
    const size_t cut = last_separator(path);
    const auto root = root_of.find(path);
    const std::string outer = cut != std::string::npos ? path.substr(0, cut) : root != root_of.end() ? root->second : "";
    at->second.path = path;
    at->second.name = cut == std::string::npos ? path : path.substr(cut + 1);
    if (!outer.empty()) node(outer);
    inside[outer].push_back(path);
    return at->second;
  }
  ModuleTimes sum(const std::string& path) {
    ModuleNode& here = nodes[path];
    here.all = here.own;
    for (const std::string& inner : inside[path]) add(here.all, sum(inner));
    return here.all;
  }
  void list(const std::string& path, int depth, std::vector<ModuleNode>& out) {
    std::vector<std::string> order = inside[path];
    sort_rows(order, [this](const std::string& a, const std::string& b) {
      const ModuleTimes &x = nodes[a].all, &y = nodes[b].all;
      return x.gpu_ns() != y.gpu_ns() ? x.gpu_ns() > y.gpu_ns() : x.host_ns > y.host_ns;
    });
    for (const std::string& inner : order) {
      nodes[inner].depth = depth;
      out.push_back(nodes[inner]);
      list(inner, depth + 1, out);
    }
  }
};

// The range of a module's forward has the name of its class. Ops inside have other names: "aten::conv2d", "Net.forward".
std::map<std::string, std::string> module_types(const Trace& trace) {
  std::map<std::string, std::string> types;
  for (const OpInfo& op : trace.ops) {
    const bool is_class = !op.name.empty() && std::isupper(static_cast<unsigned char>(op.name[0])) &&
                          std::ranges::all_of(op.name, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (is_class && !op.layer.empty() && op.phase == "forward") types.try_emplace(op.layer, op.name);
  }
  return types;
}

}  // namespace

std::vector<ModuleNode> module_tree(const Trace& trace, const CountedSteps& counted) {
  constexpr size_t kDeepest = 1000;  // limit for paths in untrusted files
  Tree tree{.root_of = roots(trace)};
  for (const auto& [path, times] : own_times(trace, counted.stretches)) {
    if (std::ranges::count_if(path, [](char c) { return c == '.' || c == '/'; }) > static_cast<long>(kDeepest)) continue;
    tree.node(path).own = times;
  }
  for (const auto& [path, type] : module_types(trace))
    if (const auto at = tree.nodes.find(path); at != tree.nodes.end() && at->second.name != type) at->second.type = type;
  for (const std::string& outermost : tree.inside[""]) tree.sum(outermost);
  std::vector<ModuleNode> list;
  tree.list("", 0, list);
  return list;
}

std::string to_text(const std::vector<ModuleNode>& tree, const CountedSteps& counted) {
  if (tree.empty())
    return "\nNo modules are known. Record with --level modules, or mark ranges with NVTX.\n";
  const double each = 1e-3 / static_cast<double>(std::max<int64_t>(counted.steps, 1));
  const bool memory = std::ranges::any_of(tree, [](const ModuleNode& node) { return node.all.peak_bytes > 0; });
  const auto at_peak = [memory](const std::string& cell) { return memory ? formatted(" {:>12}", cell) : std::string(); };
  const bool others = std::ranges::any_of(tree, [](const ModuleNode& node) { return node.all.other_ns > 0; });
  const auto other = [others](const std::string& cell) { return others ? formatted(" {:>12}", cell) : std::string(); };
  std::string text = formatted("\n{:>12} {:>12}{} {:>12} {:>9}{}  module, with those inside, {} {}\n", "forward µs", "backward µs", other("other µs"), "host µs",
                               "kernels", at_peak("at the peak"), counted.steps > 0 ? "mean of" : "sum of", counted.text);
  for (const ModuleNode& node : tree)
    text += table_row("{:12.2f} {:12.2f}{} {:12.2f} {:9.1f}{}  {}{}", static_cast<double>(node.all.forward_ns) * each, static_cast<double>(node.all.backward_ns) * each,
                      other(fixed(static_cast<double>(node.all.other_ns) * each, 2)), static_cast<double>(node.all.host_ns) * each,
                      static_cast<double>(node.all.kernels) * each * 1e3, at_peak(bytes_text(static_cast<double>(node.all.peak_bytes))),
                      std::string(static_cast<size_t>(2 * node.depth), ' '),
                      node.type.empty() ? node.name : node.name + " " + node.type);
  return text;
}

std::string to_json(const std::vector<ModuleNode>& tree, const CountedSteps& counted) {
  auto list = nlohmann::ordered_json::array();
  for (const ModuleNode& node : tree)
    list.push_back({{"module", node.path},
                    {"forward_us", static_cast<double>(node.all.forward_ns) * 1e-3},
                    {"backward_us", static_cast<double>(node.all.backward_ns) * 1e-3},
                    {"other_us", static_cast<double>(node.all.other_ns) * 1e-3},
                    {"host_us", static_cast<double>(node.all.host_ns) * 1e-3},
                    {"kernels", node.all.kernels},
                    {"peak_bytes", node.all.peak_bytes},
                    {"own_kernels", node.own.kernels}});
  return nlohmann::ordered_json{{"version", kJsonVersion}, {"steps", counted.steps}, {"of", counted.text}, {"modules", list}}.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace {

// Symbols that the recorder could not read are made short.
FrameStack shown_frames(const Trace& trace, NameId name) {
  FrameStack frames = sampled_frames(trace, name);
  for (CodeFrame& frame : frames)
    if (frame.function.starts_with("_Z")) frame.function = short_function_name(frame.function);
  return frames;
}

CoveredTime gpu_time(const Trace& trace) {
  std::vector<TimeRange> busy;
  for (const Track& track : tracks_of_steps(trace))
    if (on_gpu(track))
      each_span(track, -kAlways, kAlways, [&](const Span& span) { busy.push_back({span.start, span.end()}); });
  return CoveredTime(std::move(busy));
}

// The parts of spans that lie in the ranges.
template <class Take>
void each_part(const Track& track, const std::vector<TimeRange>& ranges, Take take) {
  for (const TimeRange& range : ranges)
    each_span(track, range.begin, range.end, [&](const Span& span) {
      const TimeRange part{std::max(span.start, range.begin), std::min(span.end(), range.end)};
      if (part.begin < part.end) take(span, part);
    });
}

// Processes that load data are not sampled: each reports what it did and where.
void add_workers(const Trace& trace, const HostStackOptions& options, HostStacks& stacks) {
  for (const Track& track : tracks_of_steps(trace)) {
    if (options.gaps_only || track.kind != TrackKind::Loader) continue;
    each_part(track, options.ranges, [&](const Span& span, TimeRange part) {
      const std::string& what = trace.name(span.name);
      stacks[{{"", 0, track.name}, what.find(" in ") == std::string::npos ? CodeFrame{"", 0, what} : frame_from(what)}] += part.length();
    });
  }
}

}  // namespace

bool has_samples(const Trace& trace) { return std::ranges::find(trace.tracks(), TrackKind::Samples, &Track::kind) != trace.tracks().end(); }

HostStacks host_stacks(const Trace& trace) { return host_stacks(trace, {}); }

HostStacks host_stacks(const Trace& trace, const HostStackOptions& options) {
  HostStacks stacks;
  add_workers(trace, options, stacks);
  std::unordered_map<uint32_t, FrameStack> known;
  const CoveredTime busy = options.gaps_only ? gpu_time(trace) : CoveredTime();
  for (const Track& track : tracks_of_steps(trace)) {
    if (track.kind != TrackKind::Samples) continue;
    std::unordered_map<uint32_t, int64_t> times;  // by stack
    each_part(track, options.ranges, [&](const Span& span, TimeRange part) {
      times[static_cast<uint32_t>(span.name)] += part.length() - busy.within(part);
    });
    const std::string thread = sampled_thread(track);
    for (const auto& [name, ns] : times) {
      const auto [at, fresh] = known.try_emplace(name);
      if (fresh) at->second = shown_frames(trace, NameId{name});
      if (ns <= 0) continue;
      FrameStack stack{{"", 0, thread}};
      stack.insert(stack.end(), at->second.begin(), at->second.end());
      stacks[std::move(stack)] += ns;
    }
  }
  return stacks;
}

// A stack that several samples in a row saw is one span, so this is the least that was sampled.
std::string few_samples_text(const Trace& trace, const std::vector<TimeRange>& ranges) {
  constexpr size_t kEnough = 100;
  size_t samples = 0;
  for (const Track& track : tracks_of_steps(trace)) {
    if (track.kind != TrackKind::Samples) continue;
    TimeNs last = -kAlways;
    each_part(track, ranges, [&](const Span& span, TimeRange) { samples += std::exchange(last, span.start) != span.start; });
  }
  if (samples == 0 || samples >= kEnough) return {};
  const double known = 98 / std::sqrt(static_cast<double>(samples));  // 95 % of a share of a half
  return "only " + std::to_string(samples) + (samples == 1 ? " stack was" : " stacks were") + " sampled: a share of 50 % is known to ± " + fixed(known, 0) + " %";
}

std::string collapsed_text(const HostStacks& stacks) {
  std::map<std::string, int64_t> lines;
  for (const auto& [stack, ns] : stacks) {
    std::string line;
    for (const CodeFrame& frame : stack) {
      std::string text = frame_text(frame);
      std::ranges::replace(text, ';', ',');
      line.append(line.empty() ? "" : ";").append(text);
    }
    lines[std::move(line)] += ns;
  }
  std::string text;
  for (const auto& [line, ns] : lines) text += table_row("{} {}", line, (ns + 500) / 1000);
  return text;
}

namespace {

// Adds new frames to `frames`; `numbers` has their indices.
nlohmann::ordered_json speedscope_profile(const HostStacks& stacks, const std::string& name, nlohmann::ordered_json& frames,
                                          std::map<CodeFrame, size_t>& numbers) {
  auto samples = nlohmann::ordered_json::array(), weights = nlohmann::ordered_json::array();
  int64_t all = 0;
  for (const auto& [stack, ns] : stacks) {
    auto sample = nlohmann::ordered_json::array();
    for (const CodeFrame& frame : stack) {
      const auto [at, fresh] = numbers.try_emplace(frame, numbers.size());
      if (fresh) frames.push_back({{"name", frame_text(frame)}});
      if (fresh && !frame.path.empty()) frames.back()["file"] = frame.path;
      if (fresh && frame.line > 0) frames.back()["line"] = frame.line;
      sample.push_back(at->second);
    }
    samples.push_back(std::move(sample));
    weights.push_back(static_cast<double>(ns) * 1e-3);
    all += ns;
  }
  return {{"type", "sampled"}, {"name", name},       {"unit", "microseconds"}, {"startValue", 0}, {"endValue", static_cast<double>(all) * 1e-3},
          {"samples", samples}, {"weights", weights}};
}

}  // namespace

std::string speedscope_json(const std::vector<std::pair<std::string, HostStacks>>& profiles) {
  auto frames = nlohmann::ordered_json::array(), list = nlohmann::ordered_json::array();
  std::map<CodeFrame, size_t> numbers;
  for (const auto& [name, stacks] : profiles) list.push_back(speedscope_profile(stacks, name, frames, numbers));
  const nlohmann::ordered_json file{{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                                    {"shared", {{"frames", frames}}},
                                    {"profiles", list}};
  return file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string speedscope_json(const HostStacks& stacks, const std::string& name) {
  return speedscope_json(std::vector<std::pair<std::string, HostStacks>>{{name, stacks}});
}

std::string host_text(const HostStacks& stacks, const std::string& of) {
  if (stacks.empty()) return "\nNo stacks were sampled: the program ran no Python, or not for long enough.\n";
  std::map<CodeFrame, std::pair<int64_t, int64_t>> functions;  // excluding and including called functions
  int64_t all = 0;
  for (const auto& [stack, ns] : stacks) {
    all += ns;
    if (stack.empty()) continue;
    functions[stack.back()].first += ns;
    const auto first = stack.begin() + (stack.size() > 1 ? 1 : 0);  // without the thread
    for (const CodeFrame& frame : std::set<CodeFrame>(first, stack.end())) functions[frame].second += ns;
  }
  std::vector<std::pair<CodeFrame, std::pair<int64_t, int64_t>>> rows(functions.begin(), functions.end());
  sort_rows(rows, [](const auto& a, const auto& b) { return a.second > b.second; });
  constexpr size_t kMost = 60;
  std::string text = formatted("\n{:>10} {:>7} {:>10}  host time by function and line\n", "alone ms", "%", "with calls");
  if (!of.empty()) text.insert(text.size() - 1, ", sum of " + of);
  for (const auto& [frame, times] : rows) {
    if (&rows[std::min(kMost, rows.size() - 1)].first == &frame && rows.size() > kMost) break;
    text += table_row("{:10.2f} {:7.2f} {:10.2f}  {}", static_cast<double>(times.first) * 1e-6,
                      100 * static_cast<double>(times.first) / static_cast<double>(std::max<int64_t>(all, 1)),
                      static_cast<double>(times.second) * 1e-6, frame_text(frame));
  }
  return text;
}

}  // namespace ws::prof

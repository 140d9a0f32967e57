#include "app/core/insights/trace_insights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiling/analysis/activity.h"
#include "profiling/analysis/covered_time.h"
#include "profiling/analysis/flame_tree.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::app {
namespace {

using prof::Span;
using prof::TimeNs;
using prof::Track;
using prof::TrackKind;

constexpr double kShareOfSteps = 0.10, kShareOfKernels = 0.05;  // shares of the steps' time that are worth a card

struct Cost {
  TimeNs time = 0;
  uint64_t count = 0;
  std::optional<prof::FoundSpan> longest;

  void add(size_t track, const Span& span, TimeNs length) {
    if (length <= 0) return;
    time += length;
    ++count;
    if (!longest || span.duration > longest->span.duration) longest = prof::FoundSpan{track, span};
  }
};
using Costs = std::map<std::string, Cost>;

const std::pair<const std::string, Cost>* largest(const Costs& costs) {
  const auto most = std::ranges::max_element(costs, {}, [](const auto& entry) { return entry.second.time; });
  return most == costs.end() ? nullptr : &*most;
}

// "a.py:3 in hot". Empty for a frame of Python itself or of an installed package, and for native code.
std::string own_line(const prof::CodeFrame& frame) {
  return frame.line > 0 && prof::is_own_path(frame.path) ? prof::place_text(frame) : std::string();
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Fills gradients with zeros before the backward pass adds to them.
bool zeroes_gradients(const prof::OpInfo& op) {
  if (op.name != "aten::zero_" && op.name != "aten::_foreach_zero_" && op.name != "aten::fill_") return false;
  const auto& stack = prof::stack_of(op);
  if (stack.size() > 1)
    return std::ranges::any_of(stack, [](const prof::CodeFrame& frame) { return frame.function.ends_with("zero_grad"); });
  return op.name != "aten::fill_" && op.phase.empty() && op.layer.empty();
}

// The backward pass adds a new gradient to an old one. Only autograd's accumulation has no module.
bool adds_to_gradient(const prof::OpInfo& op) { return op.phase == "backward" && op.layer.empty() && op.name == "aten::add_"; }

// Pointwise kernels right after one another on a stream. A fused kernel would take at least as long as the longest.
struct PointwiseChain {
  static constexpr TimeNs kNear = 20'000;  // longer pauses have another cause
  static constexpr uint64_t kFewest = 3;
  uint64_t kernels = 0;
  TimeNs begin = 0, end = 0;
  Span longest;

  bool takes(const Span& span) const { return kernels > 0 && span.start - end < kNear; }
  void add(const Span& span) {
    if (kernels == 0) begin = span.start;
    if (kernels == 0 || span.duration > longest.duration) longest = span;
    ++kernels, end = std::max(end, span.end());
  }
  TimeNs gain() const { return kernels < kFewest ? 0 : end - begin - static_cast<TimeNs>(longest.duration); }
};

class Program {
 public:
  Program(const TraceLook& part, int rank)
      : trace_(*part.trace),
        part_(part),
        rank_(rank),
        judged_{part_.begin, part_.end},
        untraced_(prof::untraced_time(trace_, judged_.begin, judged_.end)),
        untraced_ns_(untraced_.within(judged_)),
        left_out_(left_out(part_)) {
    const auto& tracks = trace_.tracks();
    const auto is_mine = [&](size_t i) { return prof::is_of_rank(tracks[i], rank_); };
    for (size_t i = 0; i < tracks.size(); ++i)
      if (is_mine(i) && tracks[i].kind == TrackKind::Api && tracks[i].name.ends_with(kCalls)) see_calls(i);
    for (size_t i = 0; i < tracks.size(); ++i)
      if (is_mine(i) && tracks[i].kind == TrackKind::Ranges) see_ranges(i);
    see_other_waits();
    data_time_ = prof::CoveredTime(std::move(data_ranges_));
    for (auto& [line, ranges] : wait_ranges_) wait_times_.emplace(line, prof::CoveredTime(std::move(ranges)));
    for (size_t i = 0; i < tracks.size(); ++i) {
      if (!is_mine(i)) continue;
      if (tracks[i].kind == TrackKind::Steps) see_steps(i);
      if (prof::on_gpu(tracks[i])) see_gpu(i);
      if (tracks[i].kind == TrackKind::Samples && prof::sampled_thread(tracks[i]) == prof::kMainThread) see_samples(i);
      if (tracks[i].kind == TrackKind::Loader) see_worker(i);
    }
  }

  std::vector<Insight> found() const {
    std::vector<Insight> all;
    for (auto found :
         {waits_for_data(), waits_for_gpu(), hot_line(), pageable_copies(), many_optimizer_kernels(), fp32_products(),
          zeroed_gradients(), transposed_images(), pointwise_chains(), memory_grows()})
      if (found) all.push_back(std::move(*found));
    return all;
  }

 private:
  using Found = std::optional<Insight>;

  static constexpr std::string_view kCalls = " calls", kRanges = " ranges";

  // A call in which the host waited for the GPU, with the copy that it waited for.
  struct Wait {
    prof::TimeRange time;
    size_t track = 0;
    Span call;
    bool reported = false;  // a range of Python's own call has it
  };
  using Waits = std::vector<Wait>;

  // The time of a span that counts: between trace windows, only its host is known, and shares would not be comparable.
  TimeNs within(const Span& span) const { return traced(all_within(span)); }
  prof::TimeRange all_within(const Span& span) const {
    return {std::max(judged_.begin, span.start), std::min(judged_.end, span.end())};
  }
  TimeNs traced(const prof::TimeRange& part) const { return std::max<TimeNs>(0, part.length()) - left_out_.within(part); }
  TimeNs traced_ns() const { return judged_.length() - left_out_.within(judged_); }
  // What was not traced, and the pauses that no mean step counts.
  static prof::CoveredTime left_out(const TraceLook& part) {
    std::vector<prof::TimeRange> times = part.pauses;
    for (const Track& track : part.trace->tracks())
      if (prof::untraced(track))
        prof::each_span(track, part.begin, part.end, [&](const Span& span) { times.push_back({span.start, span.end()}); });
    return prof::CoveredTime(std::move(times));
  }

  std::string thread_of(size_t track, std::string_view ending) const {
    const Track& row = trace_.tracks()[track];
    return row.name.substr(0, row.name.size() - ending.size()) + " " + std::to_string(row.rank);
  }

  void see_calls(size_t track) {
    constexpr TimeNs kRightAfter = 20'000;
    Waits& waits = waits_[thread_of(track, kCalls)];
    std::optional<Span> before;
    prof::each_span(trace_.tracks()[track], judged_.begin, judged_.end, [&](const Span& span) {
      if (span.span_kind() == prof::SpanKind::Sync) {
        const bool copied = before && before->op == span.op && span.start - before->end() < kRightAfter &&
                            trace_.name(before->name).find("Memcpy") != std::string::npos;
        waits.push_back({{copied ? before->start : span.start, span.end()}, track, span});
      }
      before = span;
    });
  }

  // True if the host waited for the GPU during this range: .item() of a tensor on the CPU does not wait.
  bool waits_in(size_t track, const Span& range) {
    const auto thread = waits_.find(thread_of(track, kRanges));
    if (thread == waits_.end()) return waits_.empty();  // without calls, we cannot know
    auto at = std::ranges::lower_bound(thread->second, range.start, {}, [](const Wait& wait) { return wait.time.begin; });
    bool any = false;
    for (; at != thread->second.end() && at->time.begin < range.end(); ++at) any = at->reported = true;
    return any;
  }

  // Waits that no call of Python's names, such as float(loss), print(loss), loss > 1 or x.to("cpu").
  void see_other_waits() {
    for (const auto& [thread, waits] : waits_)
      for (const Wait& wait : waits) {
        const prof::OpTag op = wait.call.op;
        if (wait.reported || op >= trace_.ops.size() || prof::line_of(trace_.ops[op]).empty()) continue;
        const std::string& name = trace_.ops[op].name;
        wait_ranges_[prof::line_of(trace_.ops[op])].push_back(wait.time);
        Span all = wait.call;
        all.start = wait.time.begin, all.duration = static_cast<uint64_t>(wait.time.length());
        syncs_[prof::line_of(trace_.ops[op]) + "\n" + (name.empty() ? trace_.name(wait.call.name) : name)].add(wait.track, all, within(all));
      }
  }

  void see_ranges(size_t track) {
    prof::each_span(trace_.tracks()[track], judged_.begin, judged_.end, [&](const Span& span) {
      if (span.op == prof::kNoOp || span.op >= trace_.ops.size()) return;
      const prof::OpInfo& op = trace_.ops[span.op];
      const std::string line = prof::line_of(op);
      if (op.name == "wait for data" && op.phase == "data") {
        data_[line].add(track, span, within(span));
        data_ranges_.push_back({span.start, span.end()});
      }
      if (op.phase != "sync" || line.empty()) return;
      const prof::TimeRange part = all_within(span);
      if (untraced_.within(part) > 0) return untraced_syncs_[line + "\n" + op.name].add(track, span, part.length());
      if (!waits_in(track, span)) return;
      syncs_[line + "\n" + op.name].add(track, span, traced(part));
      wait_ranges_[line].push_back(part);
    });
  }

  void see_steps(size_t track) {
    prof::each_span(trace_.tracks()[track], judged_.begin, judged_.end, [&](const Span& span) {
      if (span.start < judged_.begin) return;
      begins_.push_back(span.start);
      if (!is_left_out(span)) ++steps_;
    });
  }

  bool is_left_out(const Span& span) const { return left_out_.within({span.start, span.start + 1}) > 0; }

  void see_gpu(size_t track) {
    PointwiseChain chain;
    prof::each_span(trace_.tracks()[track], judged_.begin, judged_.end, [&](const Span& span) {
      if (is_left_out(span)) return;
      const prof::OpInfo* op = span.op != prof::kNoOp && span.op < trace_.ops.size() ? &trace_.ops[span.op] : nullptr;
      if (span.span_kind() == prof::SpanKind::Copy) {
        const prof::Detail& detail = trace_.detail(span.detail);
        if (!op || !detail.copy_kind.starts_with("pageable →")) return;
        const std::string line = prof::line_of(*op);
        pageable_[line].add(track, span, within(span));
        pageable_bytes_[line] += detail.bytes;
      } else if (span.span_kind() == prof::SpanKind::Memset) {
        if (op && zeroes_gradients(*op)) zeroed_.add(track, span, within(span));
      } else if (prof::is_kernel(span)) {
        see_kernel(track, span, op);
        see_chain(track, chain, span, op);
        if (op && op->phase == "optimizer") optimizer_.add(track, span, within(span));
        if (kernel_named(span.name).sgemm) fp32_products_.add(track, span, within(span));
      }
    });
    keep(track, chain);
  }

  void see_kernel(size_t track, const Span& span, const prof::OpInfo* op) {
    const NamedKernel named = kernel_named(span.name);
    if (named.transposes)
      transposed_[op ? prof::line_of(*op) : std::string()].add(track, span, within(span));
    if (op && zeroes_gradients(*op)) zeroed_.add(track, span, within(span));
    if (op && adds_to_gradient(*op)) added_.add(track, span, within(span));
    compiled_ = compiled_ || named.triton;
  }

  struct NamedKernel {
    bool sgemm, transposes, triton;
  };
  // Looks at each name once, however many kernels have it.
  NamedKernel kernel_named(prof::NameId id) {
    const auto [at, fresh] = kernels_.try_emplace(static_cast<uint32_t>(id));
    if (!fresh) return at->second;
    const std::string& name = trace_.name(id);
    return at->second = {holds(name, "sgemm") || holds(name, "f32f32_f32f32_f32"), holds(name, "nchwToNhwc") || holds(name, "nhwcToNchw"), name.starts_with("triton_")};
  }

  void see_chain(size_t track, PointwiseChain& chain, const Span& span, const prof::OpInfo* op) {
    const bool pointwise = span.span_meaning() == prof::Meaning::Pointwise && (!op || op->phase != "optimizer");
    if (!pointwise || !chain.takes(span)) keep(track, std::exchange(chain, {}));
    if (pointwise) chain.add(span);
  }

  // A chain belongs to the line of its longest kernel.
  void keep(size_t track, const PointwiseChain& chain) {
    if (chain.gain() <= 0) return;
    const prof::OpTag op = chain.longest.op;
    const std::string line = op < trace_.ops.size() ? prof::line_of(trace_.ops[op]) : std::string();
    chains_[line].add(track, chain.longest, chain.gain());
    chained_ += chain.kernels;
  }

  void see_samples(size_t track) {
    // own line of the leaf; innermost own line
    std::unordered_map<uint32_t, std::pair<std::string, std::string>> known;
    prof::each_span(trace_.tracks()[track], judged_.begin, judged_.end, [&](const Span& span) {
      const auto [at, fresh] = known.try_emplace(static_cast<uint32_t>(span.name));
      if (fresh) {
        const std::vector<prof::CodeFrame> frames = prof::sampled_frames(trace_, span.name);
        const auto own = [](const prof::CodeFrame& frame) { return !own_line(frame).empty(); };
        const auto python = std::ranges::find_if(frames.rbegin(), frames.rend(), [](const auto& frame) { return frame.line > 0; });
        const auto innermost = std::find_if(python, frames.rend(), own);
        if (python != frames.rend()) at->second.first = own_line(*python);
        if (innermost != frames.rend()) at->second.second = own_line(*innermost);
      }
      // A sample stands for the time until the next one, which may be long after the range in which it was taken.
      const bool in_data = data_time_.within({span.start, span.start + 1}) > 0;
      if (in_data) loading_all_ += within(span);
      if (in_data && !at->second.second.empty()) loading_[at->second.second].add(track, span, within(span));
      if (in_data || at->second.first.empty()) return;
      const auto waits = wait_times_.find(at->second.first);  // of this line: Python does nothing meanwhile
      const TimeNs waited = waits == wait_times_.end() ? 0 : waits->second.within(all_within(span));
      hot_[at->second.first].add(track, span, within(span) - waited);
    });
  }

  // Adds the batches of a worker, by the line where the worker was most of the time.
  void see_worker(size_t track) {
    ++workers_;
    prof::each_span(trace_.tracks()[track], judged_.begin, judged_.end, [&](const Span& span) {
      const std::string& line = trace_.name(span.name);
      if (line.find(':') != std::string::npos) made_[line].add(track, span, within(span));
    });
  }

  bool worth_saying(TimeNs time) const {
    return time > 0 && part_of_time(time) >= kShareOfSteps;
  }
  double part_of_time(TimeNs time) const { return static_cast<double>(time) / static_cast<double>(std::max<TimeNs>(traced_ns(), 1)); }
  std::string share(TimeNs time) const {
    return percent(part_of_time(time), 0) + " of the " + whole();
  }
  static std::string text(TimeNs time, uint64_t count) {
    return time_text(static_cast<double>(time) * 1e-3 / static_cast<double>(std::max<uint64_t>(count, 1)));
  }
  std::string whole() const { return part_.of_median ? "median step" : part_.steps.count > 0 ? "mean step" : untraced_ns_ > 0 ? "traced time" : "time"; }
  // "3.00 ms of the median step"; without steps, "3.00 ms each time".
  std::string part_text(const Cost& cost) const {
    return steps_ > 0 ? time_text(per_step(cost.time), part_.step_us) + " of the " + whole() : text(cost.time, cost.count) + " each time";
  }
  // `action`: what a person does, in a few words; empty if the edits say it, or the card only.
  Insight insight(const char* rule, std::string headline, std::string why, prof::Meaning meaning, const Cost& cost, const std::string& action, const std::string& edits = {}) const {
    Insight found{rule, std::move(headline), std::move(why), {}, 0, meaning};
    found.action = action, found.edits = edits;
    found.cost_ns = static_cast<double>(cost.time), found.share = part_of_time(cost.time);
    found.place = cost.longest;
    if (cost.longest) {
      const Span& span = cost.longest->span;
      const auto margin = static_cast<TimeNs>(span.duration) / 2 + 20'000;
      found.around = {span.start - margin, span.end() + margin};
    }
    return found;
  }

  // Gives the waits the time that they have in the split of the step, as Details shows it. Returns what the card says of it. A wait
  // of the host while the GPU works costs nothing. A program without steps has no split, nor has another rank.
  std::string take_from_split(Cost& waits) const {
    const auto in_sum = [&] { return text(waits.time, waits.count) + " a batch"; };
    if (const int first = prof::rank_of_steps(trace_); first >= 0 && rank_ != first) return in_sum();
    const prof::StepSample sample = prof::StepsOfRun::of(trace_).sample();
    if (sample.parts.steps == 0) return in_sum();
    const prof::Breakdown& split = part_.of_median ? sample.median_parts : sample.parts;
    const double part = data_share(split);
    waits.time = static_cast<TimeNs>(part * static_cast<double>(traced_ns()));
    const auto ns = static_cast<TimeNs>(part * static_cast<double>(split.wall()));
    return text(ns, static_cast<uint64_t>(split.steps)) + " of the " + whole();
  }
  static double data_share(const prof::Breakdown& split) {
    const auto parts = prof::parts_of(split);
    const auto data = std::ranges::find(parts, prof::PartKind::HostData, [](const auto& part) { return part.id.kind; });
    return data == parts.end() || split.wall() <= 0 ? 0 : static_cast<double>(data->ns) / static_cast<double>(split.wall());
  }

  Found waits_for_data() const {
    Cost all;
    for (const auto& [line, cost] : data_) {
      all.time += cost.time, all.count += cost.count;
      if (!all.longest || (cost.longest && cost.longest->span.duration > all.longest->span.duration)) all.longest = cost.longest;
    }
    if (all.count == 0) return {};
    const std::string how_long = take_from_split(all);
    if (!worth_saying(all.time)) return {};
    std::string where;
    const auto* line = largest(workers_ > 0 ? made_ : loading_);  // if workers load, the main thread only waits
    if (line && (workers_ > 0 || line->second.time * 3 > loading_all_))
      where = "The most expensive line is " + line->first + ".";
    else if (const auto* loop = largest(data_); loop && !loop->first.empty())
      where = "The batches are taken at " + loop->first + ".";
    Insight found = insight("waits for data", "the step waits for data: " + how_long, where,
                            prof::Meaning::Idle, all, "", "loader ready");
    found.part = prof::PartKind::HostData;
    const auto loader = [](int64_t workers) { return "`DataLoader(num_workers=" + std::to_string(workers) + ")`"; };
    found.how = loader(workers_) + " → " + loader(enough_workers(found.share)) + ", which make a batch as often as a step needs one. Or prepare the data once.";
    return found;
  }

  // So many make a batch in the time of a step that does not wait for one; the program has some already, or loads by itself.
  int64_t enough_workers(double waits) const {
    constexpr double kMostShare = 0.99;
    const double share = std::min(waits, kMostShare);
    const double needed = workers_ > 0 ? static_cast<double>(workers_) / (1 - share) : share / (1 - share);
    return std::max(workers_ + 1, static_cast<int64_t>(std::ceil(needed)));
  }

  // Lines that waited between trace windows only. There, no call of CUDA shows that they did: a value of the CPU is read in
  // less time.
  const std::pair<const std::string, Cost>* waits_between_windows() const {
    constexpr TimeNs kWaits = 100'000;
    const std::pair<const std::string, Cost>* most = nullptr;
    for (const auto& entry : untraced_syncs_) {
      const bool counts = !syncs_.contains(entry.first) && !entry.first.ends_with(".tolist()") &&
                          entry.second.time > kWaits * static_cast<TimeNs>(entry.second.count);
      if (counts && (!most || entry.second.time > most->second.time)) most = &entry;
    }
    return most;
  }

  Found waits_for_gpu() const {
    const auto* most = largest(syncs_);
    const auto* between = waits_between_windows();
    const auto share_of = [this](const auto* wait, TimeNs all) {
      return wait ? static_cast<double>(wait->second.time) / static_cast<double>(std::max<TimeNs>(all, 1)) : 0;
    };
    const double traced_share = share_of(most, traced_ns()), untraced_share = share_of(between, untraced_ns_);
    const bool in_windows = traced_share >= untraced_share;
    if (!in_windows) most = between;
    if (!most || std::max(traced_share, untraced_share) < kShareOfKernels || begins_.empty()) return {};
    if (in_windows && gpu_never_idles()) return {};  // it costs nothing that the host waits
    const size_t cut = most->first.find('\n');
    const std::string call = most->first.substr(cut + 1);
    const bool copies = call == "aten::copy_";
    Insight found = insight("sync at this line",
                   most->first.substr(0, cut) + does(call) + ": its syncs take " + (in_windows ? part_text(most->second) : text(most->second.time, most->second.count) + " each time, between trace windows"),
                   copies ? "A copy of pageable memory waits for the GPU, and then the GPU waits for the host."
                          : "The host waits until the GPU is done, and then the GPU waits for the host.",
                   prof::Meaning::Sync, most->second, "",
                   "no sync line " + most->first.substr(0, cut));
    found.how = copies ? "`.to(device)` → `.to(device, non_blocking=True)` from pinned memory, or copy less often."
                : call.starts_with('.') ? "`" + call + "` in each step → in every hundredth step. Until then, keep the value on the GPU."
                                        : "Keep the value on the GPU, and read it every hundred steps.";
    if (in_windows) found.host_waits_us = per_step(most->second.time);
    else found.share = 0;  // the bars show the time in trace windows
    return found;
  }

  bool gpu_never_idles() const {
    const prof::Activity activity = activity_between_pauses(part_, rank_);
    const auto idle = static_cast<double>(activity.wall - activity.busy - activity.waiting);
    return activity.kernels > 0 && idle < kShareOfKernels * static_cast<double>(activity.wall);
  }

  // PyTorch's op of float(loss), loss > 1 or print(loss).
  static std::string does(const std::string& call) {
    return call == "aten::_local_scalar_dense" ? " reads a value from the GPU" : " calls " + call;
  }

  Found hot_line() const {
    const auto* most = largest(hot_);
    if (!most || !worth_saying(most->second.time)) return {};
    return with_how("Do the work once before the loop, on tensors, or in the loader's workers.",
                    without_saving("saving depends on the new code", insight("hot line", most->first + " takes " + share(most->second.time), "Python itself takes this time.",
                                                                             prof::Meaning::Idle, most->second, "run less Python at " + most->first.substr(0, most->first.find(" in ")))));
  }

  double per_step(TimeNs time) const {
    if (part_.step_us > 0) return part_of_time(time) * part_.step_us;
    return static_cast<double>(time) * 1e-3 / static_cast<double>(std::max<int64_t>(steps_, 1));
  }

  Found pageable_copies() const {
    const auto* most = largest(pageable_);
    if (!most || most->first.empty() || steps_ == 0 || !worth_saying(most->second.time)) return {};
    const double bytes = static_cast<double>(pageable_bytes_.at(most->first)) / static_cast<double>(most->second.count);
    Insight found = insight("pageable copies",
                   most->first + " copies from pageable memory: " + part_text(most->second),
                   "A copy from pinned memory can run beside kernels.",
                   prof::Meaning::Copy, most->second, "", "copies pinned");
    found.at_most_us = per_step(most->second.time), found.more = "Each copy moves " + bytes_text(bytes) + ".";
    found.how = "`DataLoader()` → `DataLoader(pin_memory=True)`, and `.to(device)` → `.to(device, non_blocking=True)`.";
    return found;
  }

  Found many_optimizer_kernels() const {
    constexpr double kMany = 20, kShare = 0.05;  // a fused optimizer launches a few
    if (steps_ == 0) return {};
    const double kernels = static_cast<double>(optimizer_.count) / static_cast<double>(std::max<int64_t>(steps_, 1));
    if (kernels < kMany || part_of_time(optimizer_.time) < kShare)
      return {};
    return with_how("Pass `fused=True`, or `foreach=True`, to the optimizer.", without_saving("saving depends on the new kernels", insight(
        "many kernels of the optimizer",
        "the optimizer launches " + count_text(kernels) + " kernels per step",
        "A fused optimizer updates all parameters with a few kernels.",
        prof::Meaning::Optimizer, optimizer_, "use a fused optimizer")));
  }

  Found fp32_products() const {
    if (!worth_saying(fp32_products_.time)) return {};
    return with_how("`torch.set_float32_matmul_precision(\"high\")` for tf32, or `torch.autocast` for bf16. Compare the losses.", without_saving("saving depends on the shapes", insight(
        "fp32 products", "matrix products in fp32 take " + share(fp32_products_.time),
        "They do not use the tensor cores.",
        prof::Meaning::Matrix, fp32_products_, "compute products in tf32 or bf16")));
  }

  Insight saves_at_most(TimeNs time, const char* how, Insight found) const {
    found.at_most_us = per_step(time), found.how = how;
    return found;
  }
  bool worth_a_card(TimeNs time) const {
    return steps_ > 0 && time > 0 && part_of_time(time) >= kShareOfKernels;
  }
  static Cost sum_of(const Costs& costs) {
    Cost all;
    for (const auto& [line, cost] : costs) {
      all.time += cost.time, all.count += cost.count;
      if (!all.longest || cost.longest->span.duration > all.longest->span.duration) all.longest = cost.longest;
    }
    return all;
  }
  static std::string most_of_it(const Costs& costs) {
    const auto* most = largest(costs);
    return most && !most->first.empty() ? "Most of it is " + most->first + "." : std::string();
  }

  Found zeroed_gradients() const {
    Cost all = zeroed_;
    all.time += added_.time, all.count += added_.count;
    if (zeroed_.count == 0 || !worth_a_card(all.time)) return {};
    std::string where;
    if (const prof::OpTag op = all.longest->span.op; !prof::line_of(trace_.ops[op]).empty())
      where = " at " + prof::line_of(trace_.ops[op]);
    return saves_at_most(all.time, "`zero_grad(set_to_none=False)` → `zero_grad(set_to_none=True)`, the default since PyTorch 2.0.", insight("zeroed gradients",
                   "zero_grad fills the gradients with zeros" + where + ", and the backward pass adds to them: " + part_text(all),
                   "Without them, the backward pass writes new gradients.",
                   prof::Meaning::Optimizer, all, "call zero_grad(set_to_none=True)"));
  }

  Found transposed_images() const {
    const Cost all = sum_of(transposed_);
    if (!worth_a_card(all.time)) return {};
    return saves_at_most(all.time, "`model.to(memory_format=torch.channels_last)`, and the same for the input.", insight("channels last",
                   "convolutions transpose their images to channels-last and back: " + part_text(all),
                   most_of_it(transposed_),
                   prof::Meaning::Copy, all, "keep images channels-last"));
  }

  Found pointwise_chains() const {
    const Cost all = sum_of(chains_);
    if (compiled_ || !worth_a_card(all.time)) return {};
    const double kernels = static_cast<double>(chained_) / static_cast<double>(steps_);
    return saves_at_most(all.time, "`model` → `torch.compile(model)`, which fuses such chains.", insight("pointwise chains",
                   count_text(kernels) + " pointwise kernels per step run in chains, and one kernel can do the work of a chain",
                   most_of_it(chains_),
                   prof::Meaning::Pointwise, all, "fuse pointwise chains (torch.compile)"));
  }

  // Blocks that were allocated during the steps and never freed, if their number grows until the end.
  Found memory_grows() const {
    struct Kept {
      uint64_t bytes = 0, late_bytes = 0;  // late: allocated in the second half of the steps
      int blocks = 0;
    };
    constexpr double kShareOfPeak = 0.05;
    if (begins_.empty()) return {};
    const TimeNs half = begins_[begins_.size() / 2];  // of the steps, because one of them may take very long
    std::map<std::pair<int, uint64_t>, const prof::MemoryEvent*> live;
    uint64_t used = 0;
    for (const prof::MemoryEvent& event : trace_.memory()) {
      const std::pair key{static_cast<int>(event.source), event.address};
      if (event.kind == prof::MemoryAction::Allocate) live[key] = &event;
      if (event.kind == prof::MemoryAction::Free) live.erase(key);
    }
    std::map<std::pair<int, std::string>, Kept> by_line;
    for (const auto& [key, event] : live) {
      used += event->bytes;
      if (event->time < judged_.begin || event->time >= judged_.end || event->op == prof::kNoOp ||
          event->op >= trace_.ops.size())
        continue;
      Kept& kept = by_line[{key.first, prof::line_of(trace_.ops[event->op])}];
      kept.bytes += event->bytes, ++kept.blocks;
      if (event->time >= half) kept.late_bytes += event->bytes;
    }
    const auto most = std::ranges::max_element(by_line, {}, [](const auto& entry) { return entry.second.late_bytes; });
    constexpr int kFewest = 4;
    if (most == by_line.end() || most->first.second.empty() || most->second.blocks < kFewest || std::ssize(begins_) < kFewest)
      return {};
    const Kept& kept = most->second;
    if (3 * kept.late_bytes < kept.bytes || static_cast<double>(kept.bytes) < kShareOfPeak * static_cast<double>(used))
      return {};
    Insight found = insight("memory grows",
                   most->first.second + " keeps " +
                       bytes_text(static_cast<double>(kept.bytes) / static_cast<double>(begins_.size())) +
                       " more each step",
                   "The program still holds these tensors, often in a list of losses with their graphs.",
                   prof::Meaning::Allocation, {}, {});
    found.spoils_training = true, found.no_saving = "about memory, not time", found.more = bytes_text(static_cast<double>(kept.bytes)) + " so far.";
    found.how = "Keep `loss.item()` or `loss.detach()` instead of `loss`, or delete what is not needed.";
    return found;
  }

  const prof::Trace& trace_;
  const TraceLook part_;
  const int rank_;  // -1: the run has no ranks
  const prof::TimeRange judged_;
  const prof::CoveredTime untraced_;
  const TimeNs untraced_ns_;  // of judged_
  const prof::CoveredTime left_out_;
  Costs pageable_;  // copies to the GPU, by line
  std::map<std::string, uint64_t> pageable_bytes_;
  Cost optimizer_, fp32_products_;  // kernels
  Cost zeroed_, added_;             // kernels and memsets that fill gradients, kernels that add to them
  Costs transposed_, chains_;       // by line; chains: what one kernel for each would save
  uint64_t chained_ = 0;
  bool compiled_ = false;
  std::unordered_map<uint32_t, NamedKernel> kernels_;
  int64_t steps_ = 0;           // traced
  std::vector<TimeNs> begins_;  // of all steps
  Costs data_, syncs_, untraced_syncs_;  // by line
  std::map<std::string, Waits> waits_;  // by thread
  Costs loading_, hot_;     // samples: by own line
  TimeNs loading_all_ = 0;  // samples in which the program waits for data
  Costs made_;              // batches of workers, by the worker's line
  std::vector<prof::TimeRange> data_ranges_;  // while the ranges are read
  std::map<std::string, std::vector<prof::TimeRange>> wait_ranges_;  // the same, by line
  prof::CoveredTime data_time_;
  std::map<std::string, prof::CoveredTime> wait_times_;
  int64_t workers_ = 0;
};

}  // namespace

std::vector<Insight> program_insights(const TraceLook& look) {
  std::vector<Insight> all;
  if (look.end <= look.begin) return all;
  const TraceLook part = judged_part(look), typical = median_part(part);
  std::set<int> others;
  for (const Track& track : look.trace->tracks())
    if (track.rank >= 0 && track.spans > 0) others.insert(track.rank);
  const int of_steps = prof::rank_of_steps(*look.trace), first = of_steps >= 0 || others.empty() ? of_steps : *others.begin();
  others.erase(first);
  std::vector<int> ranks{first};
  ranks.insert(ranks.end(), others.begin(), others.end());
  for (const int rank : ranks)
    for (const TraceLook* now : {&typical, &part}) {
      if (now == &part && !typical.of_median) continue;
      for (Insight& insight : Program(*now, rank).found()) {
        if (insight.share > 0) insight.cost_ns = insight.share * static_cast<double>(part.end - part.begin);
        if (ranks.size() > 1) name_rank(insight, rank);
        const auto known = std::ranges::find(all, insight.rule, &Insight::rule);
        if (known == all.end()) all.push_back(std::move(insight));
        else if (known->rank != insight.rank && prof::computes(insight.look_at) && insight.share > known->share) *known = std::move(insight);  // the rank that computes longest decides
      }
    }
  std::ranges::stable_sort(all, [](const Insight& a, const Insight& b) {
    return std::pair(a.spoils_training, a.cost_ns) > std::pair(b.spoils_training, b.cost_ns);
  });
  return all;
}

}  // namespace ws::app

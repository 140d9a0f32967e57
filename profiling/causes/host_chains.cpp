#include "profiling/causes/host_chains.h"

#include <algorithm>
#include <map>
#include <utility>

#include "profiling/analysis/covered_time.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

// The thread of a host row: "thread 4322" of "thread 4322 calls", "python3" of "CUDA API, python3 4322".
std::string thread_of_row(std::string_view row) {
  constexpr std::string_view kCalls = "CUDA API, ";
  std::string_view thread = row;
  if (thread.starts_with(kCalls)) thread.remove_prefix(kCalls.size());
  for (const std::string_view end : {" calls", " ranges"})
    if (thread.ends_with(end)) thread.remove_suffix(end.size());
  const size_t space = thread.rfind(' ');
  const bool numbered = space != thread.npos && thread.find_first_not_of("0123456789", space + 1) == thread.npos;
  if (!numbered || (thread.size() == row.size() && !thread.starts_with("thread "))) return std::string(row);
  return std::string(thread.starts_with("thread ") ? thread : thread.substr(0, space));
}

using Nodes = std::vector<CauseNode>;

NodeKind kind_of_call(const Span& span) {
  switch (span.span_kind()) {
    case SpanKind::Alloc:
      return NodeKind::Allocation;
    case SpanKind::Free:
      return NodeKind::Free;
    case SpanKind::Sync:
      return NodeKind::Wait;
    case SpanKind::GraphLaunch:
      return NodeKind::Launch;
    default:
      break;
  }
  switch (span.span_meaning()) {
    case Meaning::Launch:
      return NodeKind::Launch;
    case Meaning::Copy:
      return NodeKind::CopyCall;
    case Meaning::Sync:
      return NodeKind::Wait;
    case Meaning::Allocation:
      return NodeKind::Allocation;
    default:
      return NodeKind::OtherCall;
  }
}

// A call inside of another one is a part of it.
Nodes outermost(Nodes calls) {
  Nodes kept;
  for (const CauseNode& call : calls)
    if (kept.empty() || call.end() > kept.back().end() || call.start >= kept.back().end()) kept.push_back(call);
  return kept;
}

// Nested work as pieces that follow each other: each piece belongs to the innermost span around it.
class Pieces {
 public:
  Nodes cut(const Nodes& nested) {
    for (const CauseNode& node : nested) {
      close_until(node.start);
      piece_until(node.start);
      open_.push_back(node);
    }
    close_until(kAlways);
    return std::move(pieces_);
  }

 private:
  void close_until(TimeNs time) {
    while (!open_.empty() && open_.back().end() <= time) {
      piece_until(open_.back().end());
      open_.pop_back();
    }
  }
  void piece_until(TimeNs time) {
    if (!open_.empty()) {
      CauseNode piece = open_.back();
      piece.start = std::max(piece.start, at_), piece.measured_ns = piece.work_ns = time - piece.start;
      if (piece.measured_ns > 0) pieces_.push_back(piece);
    }
    at_ = std::max(at_, time);
  }

  Nodes open_, pieces_;
  TimeNs at_ = -kAlways;
};

class HostChains {
 public:
  HostChains(const Trace& trace, TimeRange window) : trace_(trace), window_(window), gpu_(used_gpu(trace)) {}

  void add_to(Nodes& nodes, uint32_t row) {
    for (auto& [rank, threads] : chains_by_rank())
      for (Nodes& chain : threads) {
        add_data_waits(chain, rank);
        for (CauseNode& node : chain) node.row = row, nodes.push_back(node);
        ++row;
      }
  }

 private:
  bool is_row(const Track& track) const {
    if (gpu_) return track.kind == TrackKind::Api;
    return track.kind == TrackKind::CpuThread || track.kind == TrackKind::Ranges;
  }

  std::map<int, std::vector<Nodes>> chains_by_rank() {
    std::map<std::pair<int, std::string>, Nodes> threads;
    for (size_t at = 0; at < trace_.tracks().size(); ++at) {
      const Track& track = trace_.tracks()[at];
      if (!is_row(track) || track.spans == 0) continue;
      Nodes& thread = threads[{track.rank, thread_of_row(track.name)}];
      each_span(track, window_.begin, window_.end, [&](const Span& span) {
        if (span.start >= window_.begin) thread.push_back(call_of(span, at, track.rank));
      });
    }
    std::map<int, std::vector<Nodes>> ranks;
    for (auto& [key, thread] : threads) {
      std::ranges::stable_sort(thread, [](const CauseNode& a, const CauseNode& b) { return a.start != b.start ? a.start < b.start : a.measured_ns > b.measured_ns; });
      Nodes chain = gpu_ ? outermost(std::move(thread)) : Pieces().cut(thread);
      if (!chain.empty()) ranks[key.first].push_back(std::move(chain));
    }
    for (auto& [rank, chains] : ranks) join_turns(chains);
    return ranks;
  }

  bool waits_for_data(const Span& span) const { return span.op < trace_.ops.size() && trace_.ops[span.op].phase == "data"; }

  CauseNode call_of(const Span& span, size_t track, int rank) const {
    CauseNode node = node_of(span, track, rank);
    node.kind = kind_of_call(span);
    if (waits_for_data(span)) node.kind = NodeKind::DataWait, node.meaning = Meaning::Idle;
    // Without a GPU, launches and copies are work like any other.
    else if (!gpu_ && !allocates(node.kind) && node.kind != NodeKind::Wait) node.kind = NodeKind::CpuOp;
    return node;
  }

  // A thread that works only while the busiest one has nothing to do takes turns with it, as the backward thread of PyTorch
  // does: each waits for the other. Two threads that do not would meet by chance.
  static void join_turns(std::vector<Nodes>& chains) {
    std::ranges::stable_sort(chains, std::ranges::greater{}, [](const Nodes& chain) { return chain.size(); });
    for (size_t other = 1; other < chains.size();) {
      if (!takes_turns(chains[0], chains[other])) {
        ++other;
        continue;
      }
      Nodes both;
      std::ranges::merge(chains[0], chains[other], std::back_inserter(both), {}, &CauseNode::start, &CauseNode::start);
      chains[0] = std::move(both);
      chains.erase(chains.begin() + static_cast<std::ptrdiff_t>(other));
    }
  }

  static bool takes_turns(const Nodes& main, const Nodes& other) {
    constexpr double kByChance = 0.2, kEnough = 5;
    int64_t busy = 0;
    for (const CauseNode& call : main) busy += call.measured_ns;
    const auto wall = static_cast<double>(std::max<int64_t>(1, main.back().end() - main.front().start));
    const double expected = static_cast<double>(busy) / wall * static_cast<double>(other.size());
    size_t meet = 0;
    for (const CauseNode& call : other) {
      const auto after = std::ranges::upper_bound(main, call.start, {}, &CauseNode::start);
      const bool before = after != main.begin() && (after - 1)->end() > call.start;
      meet += before || (after != main.end() && after->start < call.end());
    }
    return expected >= kEnough && static_cast<double>(meet) <= kByChance * expected;
  }

  // Time between calls that the program spends in a range for its data loader.
  void add_data_waits(Nodes& chain, int rank) {
    if (!gpu_ || chain.empty()) return;
    std::vector<TimeRange> ranges;
    CauseNode sample;
    for (size_t at = 0; at < trace_.tracks().size(); ++at) {
      const Track& track = trace_.tracks()[at];
      if (track.kind != TrackKind::Ranges || track.rank != rank) continue;
      each_span(track, window_.begin, window_.end, [&](const Span& span) {
        if (!waits_for_data(span)) return;
        ranges.push_back({span.start, span.end()});
        sample = node_of(span, at, rank);
      });
    }
    if (ranges.empty()) return;
    const CoveredTime covered(ranges);
    Nodes with;
    for (const CauseNode& call : chain) {
      const TimeNs from = with.empty() ? window_.begin : with.back().end();
      const int64_t ns = covered.within({from, call.start});
      if (ns > 0) with.push_back(data_wait(sample, call.start - ns, ns));
      with.push_back(call);
    }
    chain = std::move(with);
  }

  static CauseNode data_wait(CauseNode node, TimeNs start, int64_t ns) {
    node.start = start, node.measured_ns = node.work_ns = ns;
    node.kind = NodeKind::DataWait, node.meaning = Meaning::Idle;
    return node;
  }

  const Trace& trace_;
  TimeRange window_;
  bool gpu_;
};

}  // namespace

CauseNode node_of(const Span& span, size_t track, int rank) {
  CauseNode node;
  node.start = span.start, node.measured_ns = node.work_ns = static_cast<int64_t>(span.duration);
  node.track = static_cast<uint32_t>(track), node.name = span.name, node.op = span.op, node.detail = span.detail;
  node.meaning = span.span_meaning(), node.correlation = span.correlation, node.rank = static_cast<int16_t>(rank);
  return node;
}

void add_host_chains(std::vector<CauseNode>& nodes, const Trace& trace, TimeRange window, uint32_t first_row) {
  HostChains(trace, window).add_to(nodes, first_row);
}

}  // namespace ws::prof

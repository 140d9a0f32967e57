#include "profiling/causes/cause_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "profiling/analysis/collective_waits.h"
#include "profiling/base/failure.h"
#include "profiling/base/statistics.h"
#include "profiling/causes/event_order.h"
#include "profiling/causes/host_chains.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

constexpr int64_t kUsualStart = 5000;      // ns from the start of a call to its kernel, at most, where every kernel was queued
constexpr int64_t kUnexplained = 3000;     // ns; a shorter idle time is jitter of the hardware
constexpr int64_t kLookForOthers = 1000;   // ns of idle time after which the other streams are searched
constexpr size_t kMostNodes = 100'000'000;

uint64_t key_of(int16_t rank, uint32_t number) { return static_cast<uint64_t>(static_cast<uint16_t>(rank)) << 32 | number; }

class Builder {
 public:
  Builder(const Trace& trace, TimeRange window, int64_t usual_gap_ns) : trace_(trace), usual_gap_{usual_gap_ns, usual_gap_ns} { graph_.window = window; }

  CauseGraph build() {
    collect();
    index();
    find_usual_delays();
    for (const auto& row : rows_)
      for (size_t i = 0; i < row.size(); ++i) add_cause(row, i);
    add_waits();
    add_meetings();
    attach_loose_rows();
    find_time_around_calls();
    sort_edges();
    broken_ = order_events(graph_);
    warn();
    return std::move(graph_);
  }

 private:
  using Row = std::vector<uint32_t>;  // nodes of one stream, or of one chain of host calls
  struct PendingEdge {
    EventId to;
    CauseEdge edge;
  };
  struct Meeting {
    std::vector<std::pair<int16_t, TimeNs>> members;  // rank and start of each kernel
  };

  bool on_host(const Row& row) const { return !row.empty() && runs_on_host(graph_.nodes[row[0]].kind); }
  const CauseNode& node(uint32_t at) const { return graph_.nodes[at]; }

  // ---- nodes
  void collect() {
    std::map<std::pair<std::string, int64_t>, uint32_t> streams;  // by GPU with its rank, and number
    for (size_t at = 0; at < trace_.tracks().size(); ++at) {
      const Track& track = trace_.tracks()[at];
      if (!on_gpu(track) || track.spans == 0) continue;
      const auto key = std::pair(track.group + "/" + std::to_string(track.rank), number_in(track.name, -1));
      const uint32_t row = streams.try_emplace(key, static_cast<uint32_t>(streams.size())).first->second;
      each_span(track, graph_.window.begin, graph_.window.end, [&](const Span& span) { take_gpu(span, at, row); });
    }
    drop_graphs_with_kernels();
    put_in_turn();
    add_host_chains(graph_.nodes, trace_, graph_.window, static_cast<uint32_t>(streams.size()));
    add_meeting_nodes();
    if (graph_.nodes.size() > kMostNodes) throw Failure("The trace has too many spans for a graph of causes. Choose a shorter range.");
    std::ranges::stable_sort(graph_.nodes, {}, &CauseNode::start);
  }

  void take_gpu(const Span& span, size_t track, uint32_t row) {
    const SpanKind kind = span.span_kind();
    const bool copy = kind == SpanKind::Copy || kind == SpanKind::Memset;
    if (span.start < graph_.window.begin || (!copy && !is_kernel(span))) return;
    CauseNode node = node_of(span, track, trace_.tracks()[track].rank);
    node.kind = copy ? NodeKind::Copy : NodeKind::Kernel;
    node.row = row, node.in_graph = (span.flags & kInGraph) != 0;
    whole_graphs_ |= kind == SpanKind::GraphRun;
    graph_.nodes.push_back(node);
  }

  // A graph may be recorded as a whole and by its kernels.
  void drop_graphs_with_kernels() {
    if (!whole_graphs_) return;
    std::unordered_map<uint64_t, bool> kernels;
    const auto whole = [&](const CauseNode& n) { return trace_.tracks()[n.track].kind == TrackKind::GraphLaunches; };
    for (const CauseNode& n : graph_.nodes)
      if (!whole(n) && n.correlation != 0) kernels.emplace(key_of(n.rank, n.correlation), true);
    std::erase_if(graph_.nodes, [&](const CauseNode& n) { return whole(n) && kernels.contains(key_of(n.rank, n.correlation)); });
  }

  // A kernel of a graph may begin while the one before it in its stream still runs. Until that one ends it only waits, as in the split.
  void put_in_turn() {
    std::ranges::stable_sort(graph_.nodes, {}, &CauseNode::start);
    std::unordered_map<uint32_t, TimeNs> ends;  // by row
    for (CauseNode& n : graph_.nodes) {
      TimeNs& before = ends.try_emplace(n.row, n.start).first->second;
      const TimeNs waits = n.meaning == Meaning::Communication ? 0 : std::clamp<TimeNs>(before - n.start, 0, n.measured_ns);
      n.start += waits, n.measured_ns -= waits, n.work_ns -= waits;
      before = std::max(before, n.end());
    }
  }

  void add_meeting_nodes() {
    const bool several = std::ranges::any_of(trace_.tracks(), [](const Track& track) { return track.rank > 0; });
    if (!several) return;
    Collectives found;
    found.add(trace_, blocks_in_memory(trace_));
    const MatchedCalls matched = match_by_time(found, 0);
    for (size_t match = 0; match < matched.size(); ++match) {
      const Arrivals when = arrivals(found, matched, match);
      if (when.count < 2 || !graph_.window.contains(when.first) || !graph_.window.contains(when.last)) continue;
      Meeting meeting;
      for (size_t rank = 0; rank < found.ranks.size(); ++rank)
        if (const uint32_t at = matched.index(match, rank); at != MatchedCalls::kNone)
          meeting.members.emplace_back(static_cast<int16_t>(found.ranks[rank]), found.calls[rank][at].begin);
      CauseNode node;
      node.start = when.last, node.kind = NodeKind::Meeting, node.meaning = Meaning::Communication;
      node.correlation = static_cast<uint32_t>(meetings_.size());
      graph_.nodes.push_back(node);
      meetings_.push_back(std::move(meeting));
    }
  }

  // ---- indices
  void index() {
    for (uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      const CauseNode& n = node(at);
      if (n.kind == NodeKind::Meeting) continue;
      if (n.row >= rows_.size()) rows_.resize(n.row + 1);
      rows_[n.row].push_back(at);
    }
    std::erase_if(rows_, [](const Row& row) { return row.empty(); });
    calls_.reserve(graph_.nodes.size() / 2);
    for (const Row& row : rows_)
      if (on_host(row))
        for (const uint32_t at : row)
          if (node(at).correlation != 0) calls_.emplace(key_of(node(at).rank, node(at).correlation), at);
  }

  // The call that launched a node of the GPU.
  std::optional<uint32_t> call_of(const CauseNode& n) const {
    if (n.correlation == 0) return std::nullopt;
    const auto found = calls_.find(key_of(n.rank, n.correlation));
    return found == calls_.end() ? std::nullopt : std::optional(found->second);
  }

  bool same_launch(const Row& row, size_t i) const {
    return i > 0 && node(row[i]).correlation != 0 && node(row[i]).correlation == node(row[i - 1]).correlation;
  }

  // ---- usual delays
  // How long kernels take to begin when nothing else holds them up. Delays that are longer have another cause.
  void find_usual_delays() {
    std::unordered_map<uint32_t, std::vector<int64_t>> starts;
    std::unordered_map<uint32_t, int64_t> least_start;
    std::vector<int64_t> gaps[2], any;
    for (const Row& row : rows_) {
      if (on_host(row)) continue;
      for (size_t i = 0; i < row.size(); ++i) {
        const auto call = call_of(node(row[i]));
        const int64_t start = call ? node(row[i]).start - node(*call).start : -1;
        if (start < 0 || same_launch(row, i)) continue;
        int64_t& least = least_start.try_emplace(static_cast<uint32_t>(node(*call).name), kUsualStart).first->second;
        least = std::min(least, start);
        if (i > 0 && node(row[i - 1]).end() <= node(*call).start) starts[static_cast<uint32_t>(node(*call).name)].push_back(start);
      }
      for (size_t i = 1; i < row.size(); ++i) {
        const CauseNode &before = node(row[i - 1]), &now = node(row[i]);
        const auto call = call_of(now);
        const int64_t gap = now.start - before.end();
        if (gap > 0) any.push_back(gap);
        if (same_launch(row, i) || (call && node(*call).end() < before.start)) gaps[now.in_graph].push_back(gap);
      }
    }
    usual_start_ = least_start;  // where the GPU was never idle when a call came
    for (auto& [name, delays] : starts) usual_start_[name] = middle_value(delays);
    if (!any.empty()) usual_gap_[0] = usual_gap_[1] = std::min(usual_gap_[0], *std::ranges::min_element(any));
    for (const int graph : {0, 1})
      if (!gaps[graph].empty()) usual_gap_[graph] = middle_value(gaps[graph]);
  }

  // ---- edges
  void add(EventId to, EventId from, EdgeKind kind, int64_t lag) { pending_.push_back({to, {from, kind, lag}}); }

  void add_cause(const Row& row, size_t i) {
    const uint32_t at = row[i];
    if (on_host(row)) {
      if (i > 0) add(start_of(at), end_of(row[i - 1]), EdgeKind::HostOrder, node(at).start - node(row[i - 1]).end());
    } else {
      add_start(row, i);
    }
  }

  struct Candidate {
    EventId from;
    EdgeKind kind;
    TimeNs ready;  // when the node could begin
  };

  // A call that has ended when its kernel begins gives it a delay after the end, otherwise one after the start.
  Candidate of_call(uint32_t call, TimeNs start) const {
    const CauseNode& n = node(call);
    const auto usual = usual_start_.find(static_cast<uint32_t>(n.name));
    const int64_t delay = usual == usual_start_.end() ? start - n.start : usual->second;
    if (start >= n.end()) return {end_of(call), EdgeKind::Launch, std::min(start, n.end() + std::max<int64_t>(0, delay - n.measured_ns))};
    return {start_of(call), EdgeKind::Launch, std::min(start, n.start + delay)};
  }

  void add_start(const Row& row, size_t i) {
    const CauseNode& now = node(row[i]);
    std::vector<Candidate>& causes = causes_;
    causes.clear();
    if (i > 0) {
      const TimeNs before = node(row[i - 1]).end();
      causes.push_back({end_of(row[i - 1]), EdgeKind::StreamOrder, std::min(now.start, before + usual_gap_[now.in_graph])});
    }
    const auto call = same_launch(row, i) ? std::nullopt : call_of(now);
    if (call && node(*call).start <= now.start) causes.push_back(of_call(*call, now.start));
    if (call && node(*call).start > now.start) ++clock_errors_;
    if (causes.empty()) {
      if (const auto other = ended_before(now, -kAlways)) add(start_of(row[i]), end_of(*other), EdgeKind::OtherStream, now.start - node(*other).end());
      return;
    }
    auto last = std::ranges::max_element(causes, {}, &Candidate::ready);
    int64_t idle = now.start - last->ready;
    if (idle > kLookForOthers)
      if (const auto other = ended_before(now, last->ready)) {
        causes.push_back({end_of(*other), EdgeKind::OtherStream, now.start});
        last = causes.end() - 1, idle = 0;
      }
    if (idle > kUnexplained) note_unexplained(row[i], idle);
    last->ready = now.start;
    for (const Candidate& cause : causes) add(start_of(row[i]), cause.from, cause.kind, cause.ready - graph_.measured(cause.from));
  }

  // The last node of another stream that ended after `since` and before this one began.
  std::optional<uint32_t> ended_before(const CauseNode& now, TimeNs since) const {
    std::optional<uint32_t> best;
    for (const Row& row : rows_) {
      if (on_host(row) || node(row[0]).row == now.row || node(row[0]).rank != now.rank) continue;
      const auto after = std::ranges::upper_bound(row, now.start, {}, [this](uint32_t at) { return node(at).end(); });
      if (after == row.begin()) continue;
      const uint32_t at = *(after - 1);
      if (node(at).end() > since && node(at).end() <= now.start && (!best || node(at).end() > node(*best).end())) best = at;
    }
    return best;
  }

  void note_unexplained(uint32_t at, int64_t idle) {
    graph_.unexplained_ns += idle;
    if (idle <= graph_.longest_unexplained_ns) return;
    graph_.longest_unexplained_ns = idle, graph_.least_explained = at;
  }

  // ---- waits of the host
  // Walks through all calls in order of time. launched_[row]: how many nodes of a stream were launched by then.
  void add_waits() {
    std::vector<std::pair<TimeNs, std::pair<uint32_t, uint32_t>>> launches;  // start of the call, row, nodes of the row by then
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      if (on_host(rows_[r])) continue;
      for (uint32_t i = 0; i < rows_[r].size(); ++i) {
        const auto call = call_of(node(rows_[r][i]));
        launches.push_back({call ? node(*call).start : node(rows_[r][i]).start, {r, i + 1}});
      }
    }
    std::ranges::sort(launches);
    launched_.assign(rows_.size(), 0);
    find_own_times();
    find_awaited_copies();
    auto launch = launches.begin();
    for (uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      const CauseNode& n = node(at);
      if (!runs_on_host(n.kind)) continue;
      for (; launch != launches.end() && launch->first <= n.start; ++launch) {
        uint32_t& count = launched_[launch->second.first];
        count = std::max(count, launch->second.second);
      }
      add_wait(at);
    }
  }

  bool waits_for_all(const CauseNode& n) const {
    return n.kind == NodeKind::Wait || (n.kind == NodeKind::Free && trace_.name(n.name).find("Async") == std::string::npos);
  }

  bool waits_for_event(const CauseNode& n) const { return trace_.name(n.name).find("EventSynchronize") != std::string::npos; }

  // The median time of calls by name that found the GPU idle, and of all launches.
  void find_own_times() {
    std::unordered_map<uint32_t, std::vector<int64_t>> quick, all;
    std::vector<int64_t> launches;
    for (const CauseNode& n : graph_.nodes) {
      if (n.kind == NodeKind::Launch) all[static_cast<uint32_t>(n.name)].push_back(n.measured_ns), launches.push_back(n.measured_ns);
      if (waits_for_all(n) && !gpu_ended_during(n)) quick[static_cast<uint32_t>(n.name)].push_back(n.measured_ns);
    }
    for (auto& [name, times] : quick) own_time_[name] = middle_value(times);
    for (auto& [name, times] : all) own_time_[name] = middle_value(times);
    if (!launches.empty()) launch_ns_ = middle_value(launches);
  }

  bool gpu_ended_during(const CauseNode& call) const {
    return std::ranges::any_of(rows_, [&](const Row& row) {
      if (on_host(row)) return false;
      const auto after = std::ranges::upper_bound(row, call.end(), {}, [this](uint32_t at) { return node(at).end(); });
      return after != row.begin() && node(*(after - 1)).end() > call.start;
    });
  }

  void add_wait(uint32_t at) {
    const CauseNode& n = node(at);
    if (waits_for_all(n)) return wait_for_streams(at);
    if (n.kind == NodeKind::CopyCall) return wait_for_own_copy(at);
    const auto own = own_time_.find(static_cast<uint32_t>(n.name));
    constexpr int64_t kLong = 10'000;
    if (n.kind == NodeKind::Launch && own != own_time_.end() && n.measured_ns > kLong && n.measured_ns > 5 * own->second) wait_for_queue(at, own->second);
  }

  // The last node of a stream that was launched before the call and ended before it did.
  std::optional<uint32_t> awaited_in(size_t row, const CauseNode& call) const {
    const Row& nodes = rows_[row];
    size_t count = launched_[row];
    if (count > 0 && node(nodes[count - 1]).end() > call.end()) {  // it waits for an earlier event, or for another stream
      const auto until = nodes.begin() + static_cast<std::ptrdiff_t>(count);
      count = static_cast<size_t>(std::upper_bound(nodes.begin(), until, call.end(), [this](TimeNs end, uint32_t x) { return end < node(x).end(); }) - nodes.begin());
    }
    return count == 0 ? std::nullopt : std::optional(nodes[count - 1]);
  }

  void wait_for_streams(uint32_t at) {
    std::vector<uint32_t> awaited;
    for (size_t row = 0; row < rows_.size(); ++row)
      if (!on_host(rows_[row]) && node(rows_[row][0]).rank == node(at).rank)
        if (const auto last = awaited_in(row, node(at))) awaited.push_back(*last);
    if (awaited.empty()) return;
    const auto own = own_time_.find(static_cast<uint32_t>(node(at).name));
    wait_for(at, awaited, own == own_time_.end() ? std::min<int64_t>(1000, node(at).measured_ns) : own->second, EdgeKind::WakeUp);
  }

  // The call returns when the last of these has ended. `own`: what it takes where it need not wait.
  void wait_for(uint32_t at, const std::vector<uint32_t>& awaited, int64_t own, EdgeKind kind) {
    CauseNode& call = graph_.nodes[at];
    const uint32_t last = *std::ranges::max_element(awaited, {}, [this](uint32_t x) { return node(x).end(); });
    const bool waited = node(last).end() > call.start;
    // An event that had happened stands for older work. To ask for it takes less than a launch.
    if (waits_for_event(call) && (!waited || call.measured_ns < std::max(2 * own, launch_ns_))) return;
    if (waited) call.work_ns = std::min(own, call.measured_ns);
    for (const uint32_t one : awaited) {
      const int64_t seen = call.end() - node(one).end();
      if (seen < 0) continue;
      // What frees memory does its work after the wait.
      const int64_t after = waited ? call.end() - node(last).end() : call.kind == NodeKind::Free ? std::max(own, kWakeUp) : kWakeUp;
      add(end_of(at), end_of(one), kind, std::min(seen, after));
    }
  }

  void wait_for_own_copy(uint32_t at) {
    if (const auto copy = awaited_copies_.find(at); copy != awaited_copies_.end())
      wait_for(at, {copy->second}, std::min(node(at).measured_ns, std::max<int64_t>(0, node(copy->second).start - node(at).start)), EdgeKind::WakeUp);
  }

  void find_awaited_copies() {
    for (const Row& row : rows_)
      for (const uint32_t at : row) {
        const CauseNode& copy = node(at);
        const auto call = copy.kind == NodeKind::Copy ? call_of(copy) : std::nullopt;
        if (call && copy.end() <= node(*call).end() && copy.start >= node(*call).start) awaited_copies_[*call] = at;
      }
  }

  void wait_for_queue(uint32_t at, int64_t own) {
    std::optional<uint32_t> last;
    for (const Row& row : rows_) {
      if (on_host(row) || node(row[0]).rank != node(at).rank) continue;
      const auto after = std::ranges::upper_bound(row, node(at).end(), {}, [this](uint32_t x) { return node(x).end(); });
      if (after == row.begin() || node(*(after - 1)).end() <= node(at).start) continue;
      if (!last || node(*(after - 1)).end() > node(*last).end()) last = *(after - 1);
    }
    if (last) wait_for(at, {*last}, own, EdgeKind::QueueFull);
  }

  // ---- collectives of several ranks
  void add_meetings() {
    if (meetings_.empty()) return;
    std::map<std::pair<int16_t, TimeNs>, uint32_t> kernels;
    for (uint32_t at = 0; at < graph_.nodes.size(); ++at)
      if (node(at).kind == NodeKind::Kernel && node(at).meaning == Meaning::Communication) kernels[{node(at).rank, node(at).start}] = at;
    for (uint32_t at = 0; at < graph_.nodes.size(); ++at)
      if (node(at).kind == NodeKind::Meeting) join(at, meetings_[node(at).correlation], kernels);
  }

  // Each rank's kernel ends a transfer after the last rank has begun its own.
  void join(uint32_t meeting, const Meeting& members, const std::map<std::pair<int16_t, TimeNs>, uint32_t>& kernels) {
    for (const auto& member : members.members) {
      const auto found = kernels.find(member);
      if (found == kernels.end()) continue;
      CauseNode& kernel = graph_.nodes[found->second];
      const int64_t transfer = kernel.end() - node(meeting).start;
      add(start_of(meeting), start_of(found->second), EdgeKind::Arrival, 0);
      if (transfer < 0) {
        ++clock_errors_;
        continue;
      }
      kernel.work_ns = std::min(kernel.measured_ns, transfer);
      add(end_of(found->second), end_of(meeting), EdgeKind::Transfer, transfer);
    }
  }

  // Short times between calls, most of them spent by the recording itself.
  void find_time_around_calls() {
    constexpr size_t kEnough = 20;
    constexpr int64_t kShort = 5000, kMost = 2000;
    std::vector<int64_t> between;
    for (const PendingEdge& edge : pending_)
      if (edge.edge.kind == EdgeKind::HostOrder && edge.edge.lag > 0 && edge.edge.lag < kShort) between.push_back(edge.edge.lag);
    if (between.size() < kEnough) return;
    const auto low = between.begin() + static_cast<std::ptrdiff_t>(between.size() / 4);
    std::ranges::nth_element(between, low);
    graph_.around_call_ns = std::min(*low, kMost);
  }

  // ---- order
  // A thread or a stream that begins in the middle follows what the busiest thread did before it.
  void attach_loose_rows() {
    const Row* main = nullptr;
    for (const Row& row : rows_)
      if (on_host(row) && (!main || row.size() > main->size())) main = &row;
    if (!main) return;
    std::vector<bool> caused(graph_.nodes.size(), false);
    for (const PendingEdge& edge : pending_)
      if (edge.to % 2 == 0) caused[edge.to / 2] = true;
    for (const Row& row : rows_) {
      if (&row == main || caused[row[0]]) continue;
      const auto after = std::ranges::upper_bound(*main, node(row[0]).start, {}, [this](uint32_t at) { return node(at).end(); });
      if (after == main->begin()) continue;
      const uint32_t before = *(after - 1);
      add(start_of(row[0]), end_of(before), on_host(row) ? EdgeKind::HostOrder : EdgeKind::OtherStream, node(row[0]).start - node(before).end());
    }
  }

  void sort_edges() {
    for (uint32_t at = 0; at < graph_.nodes.size(); ++at) add(end_of(at), start_of(at), EdgeKind::Work, node(at).work_ns);
    graph_.first_edge.assign(2 * graph_.nodes.size() + 1, 0);
    for (const PendingEdge& edge : pending_) ++graph_.first_edge[edge.to + 1];
    for (size_t e = 1; e < graph_.first_edge.size(); ++e) graph_.first_edge[e] += graph_.first_edge[e - 1];
    std::vector<uint32_t> next(graph_.first_edge.begin(), graph_.first_edge.end() - 1);
    graph_.edges.resize(pending_.size());
    for (const PendingEdge& edge : pending_) graph_.edges[next[edge.to]++] = edge.edge;
    pending_ = {};
  }

  void warn() {
    if (clock_errors_ > 0) graph_.warnings.push_back(std::to_string(clock_errors_) + " spans begin before their cause, because clocks disagree. Their causes are left out.");
    if (broken_ > 0) graph_.warnings.push_back(std::to_string(broken_) + " circles of causes were broken, because clocks disagree.");
    if (const uint64_t lost = lost_count(trace_); lost > 0) graph_.warnings.push_back(std::to_string(lost) + " records were lost while recording, so some causes are missing.");
  }

  static constexpr int64_t kWakeUp = 2000;  // ns from the end of the GPU's work to the return of the call that waits

  const Trace& trace_;
  CauseGraph graph_;
  bool whole_graphs_ = false;
  std::vector<Meeting> meetings_;
  std::vector<Row> rows_;
  std::unordered_map<uint64_t, uint32_t> calls_;  // node of the call, by rank and correlation
  std::unordered_map<uint32_t, int64_t> usual_start_, own_time_;  // by name
  int64_t launch_ns_ = 0;                                         // median of all launches
  int64_t usual_gap_[2];                                          // of launches one by one, of graphs
  std::vector<PendingEdge> pending_;
  std::vector<Candidate> causes_;
  std::vector<uint32_t> launched_;
  std::unordered_map<uint32_t, uint32_t> awaited_copies_;  // by call
  size_t clock_errors_ = 0, broken_ = 0;
};

}  // namespace

uint64_t lost_count(const Trace& trace) { return trace.losses.dropped_records + trace.losses.invalid_records; }

double lost_share(const Trace& trace) {
  const auto lost = static_cast<double>(lost_count(trace));
  return lost > 0 ? lost / (lost + static_cast<double>(trace.span_count())) : 0;
}

CauseGraph cause_graph(const Trace& trace, TimeRange window, int64_t usual_gap_ns) { return Builder(trace, window, usual_gap_ns).build(); }

}  // namespace ws::prof

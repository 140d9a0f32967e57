#include "profiling/causes/event_order.h"

#include <algorithm>
#include <utility>

namespace ws::prof {
namespace {

constexpr EventId kNone = std::numeric_limits<EventId>::max();

// What is seen from times alone is known least; the calls of a thread and the work of a node have their order for sure.
int certainty(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::OtherStream: return 0;
    case EdgeKind::QueueFull: return 1;
    case EdgeKind::Arrival:
    case EdgeKind::Transfer: return 2;
    case EdgeKind::WakeUp: return 3;
    case EdgeKind::Launch: return 4;
    case EdgeKind::StreamOrder: return 5;
    case EdgeKind::HostOrder: return 6;
    case EdgeKind::Work: break;
  }
  return 7;
}

// Kahn's order. What is left after it lies on circles or behind them.
class Order {
 public:
  explicit Order(CauseGraph& graph) : graph_(graph), events_(2 * graph.nodes.size()) {}

  size_t run() {
    list_effects();
    graph_.order.reserve(events_);
    for (EventId event = static_cast<EventId>(events_); event-- > 0;)
      if (waiting_[event] == 0) ready_.push_back(event);
    drain();
    if (graph_.order.size() < events_) break_circles();
    return broken_;
  }

 private:
  void list_effects() {
    first_.assign(events_ + 1, 0), waiting_.resize(events_), effects_.resize(graph_.edges.size());
    for (const CauseEdge& edge : graph_.edges) ++first_[edge.from + 1];
    for (size_t e = 0; e < events_; ++e) first_[e + 1] += first_[e], waiting_[e] = graph_.first_edge[e + 1] - graph_.first_edge[e];
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    for (EventId to = 0; to < events_; ++to)
      for (uint32_t e = graph_.first_edge[to]; e < graph_.first_edge[to + 1]; ++e) effects_[next[graph_.edges[e].from]++] = to;
  }

  void drain() {
    while (!ready_.empty()) {
      const EventId event = ready_.back();
      ready_.pop_back();
      graph_.order.push_back(event);
      for (uint32_t t = first_[event]; t < first_[event + 1]; ++t)
        if (effects_[t] != kNone && --waiting_[effects_[t]] == 0) ready_.push_back(effects_[t]);
    }
  }

  // Goes back from cause to cause until an event comes again: from there on the path is a circle.
  void break_circles() {
    std::vector<bool> ordered(events_, false);
    std::vector<size_t> place(events_, kNowhere);
    size_t seen = 0;
    const auto renew = [&] {
      for (drain(); seen < graph_.order.size(); ++seen) ordered[graph_.order[seen]] = true;
    };
    const auto shorten = [&](size_t length) {
      for (; path_.size() > length; path_.pop_back()) place[path_.back().event] = kNowhere;
    };
    renew();
    for (EventId start = 0; start < events_; ++start)
      while (!ordered[start]) {
        const EventId event = path_.empty() ? start : cause(path_.back());
        if (place[event] == kNowhere) {
          place[event] = path_.size();
          path_.push_back({event, open_edge(event, ordered)});
          continue;
        }
        const size_t weakest = weakest_from(place[event]);
        cut(path_[weakest]);
        shorten(weakest);
        renew();
        while (!path_.empty() && ordered[cause(path_.back())]) shorten(path_.size() - 1);
      }
  }

  // An event and the edge that leads into it from the next event of the path.
  struct Hop {
    EventId event;
    uint32_t edge;
  };
  static constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

  EventId cause(const Hop& hop) const { return graph_.edges[hop.edge].from; }

  uint32_t open_edge(EventId event, const std::vector<bool>& ordered) const {
    uint32_t edge = graph_.first_edge[event];
    while (graph_.edges[edge].lag == kNoLag || ordered[graph_.edges[edge].from]) ++edge;
    return edge;
  }

  // Among edges of one kind, the one that leads farthest back in time.
  size_t weakest_from(size_t first) const {
    const auto strength = [this](const Hop& hop) {
      return std::pair(certainty(graph_.edges[hop.edge].kind), graph_.measured(hop.event) - graph_.measured(cause(hop)));
    };
    return static_cast<size_t>(std::ranges::min_element(path_.begin() + static_cast<std::ptrdiff_t>(first), path_.end(), {}, strength) - path_.begin());
  }

  void cut(const Hop& hop) {
    CauseEdge& edge = graph_.edges[hop.edge];
    *std::find(effects_.begin() + first_[edge.from], effects_.begin() + first_[edge.from + 1], hop.event) = kNone;
    edge.from = hop.event, edge.lag = kNoLag;
    ++broken_;
    if (--waiting_[hop.event] == 0) ready_.push_back(hop.event);
  }

  CauseGraph& graph_;
  const size_t events_;
  std::vector<uint32_t> first_, waiting_;  // by event: its first effect, and how many of its causes are not ordered yet
  std::vector<EventId> effects_, ready_;
  std::vector<Hop> path_;
  size_t broken_ = 0;
};

}  // namespace

size_t order_events(CauseGraph& graph) { return Order(graph).run(); }

}  // namespace ws::prof

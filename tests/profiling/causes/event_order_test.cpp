// The order of a cause graph's events: causes first, and a circle is broken at the cause that is known least.
#include "profiling/causes/event_order.h"

#include <gmock/gmock.h>

#include <random>

namespace ws::prof {
namespace {

struct MadeEdge {
  EventId to, from;
  EdgeKind kind;
};

// `nodes` kernels of 10 ns, one each 100 ns.
CauseGraph graph_of(size_t nodes, std::vector<MadeEdge> edges) {
  CauseGraph graph;
  graph.nodes.resize(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    graph.nodes[i].start = static_cast<TimeNs>(100 * i), graph.nodes[i].measured_ns = 10;
    edges.push_back({end_of(i), start_of(i), EdgeKind::Work});
  }
  std::ranges::stable_sort(edges, {}, &MadeEdge::to);
  graph.first_edge.assign(2 * nodes + 1, 0);
  for (const MadeEdge& edge : edges) {
    ++graph.first_edge[edge.to + 1];
    graph.edges.push_back({edge.from, edge.kind, 0});
  }
  for (size_t e = 1; e < graph.first_edge.size(); ++e) graph.first_edge[e] += graph.first_edge[e - 1];
  return graph;
}

std::vector<MadeEdge> cut_edges(const CauseGraph& before, const CauseGraph& after) {
  std::vector<MadeEdge> cut;
  for (EventId to = 0; to + 1 < after.first_edge.size(); ++to)
    for (uint32_t e = after.first_edge[to]; e < after.first_edge[to + 1]; ++e)
      if (after.edges[e].lag == kNoLag) cut.push_back({to, before.edges[e].from, before.edges[e].kind});
  return cut;
}

void expect_order(const CauseGraph& graph) {
  std::vector<size_t> place(2 * graph.nodes.size(), SIZE_MAX);
  ASSERT_EQ(graph.order.size(), place.size());
  for (size_t i = 0; i < graph.order.size(); ++i) place[graph.order[i]] = i;
  EXPECT_THAT(place, testing::Each(testing::Lt(SIZE_MAX))) << "each event once";
  for (EventId to = 0; to < place.size(); ++to)
    for (uint32_t e = graph.first_edge[to]; e < graph.first_edge[to + 1]; ++e)
      if (graph.edges[e].lag != kNoLag) {
        EXPECT_LT(place[graph.edges[e].from], place[to]);
      }
}

TEST(EventOrder, ACircleIsBrokenAtTheCauseThatIsKnownLeast) {
  // The calls of a thread have their order; that kernel 0 waits for kernel 2 is seen from times only.
  const CauseGraph made = graph_of(3, {{start_of(1), end_of(0), EdgeKind::HostOrder}, {start_of(2), end_of(1), EdgeKind::StreamOrder}, {start_of(0), end_of(2), EdgeKind::OtherStream}});
  CauseGraph graph = made;
  EXPECT_EQ(order_events(graph), 1u);
  expect_order(graph);
  const std::vector<MadeEdge> cut = cut_edges(made, graph);
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].kind, EdgeKind::OtherStream);
}

TEST(EventOrder, TheEarliestEventKeepsACauseThatIsCertain) {
  const CauseGraph made = graph_of(3, {{start_of(0), end_of(2), EdgeKind::HostOrder}, {start_of(1), end_of(0), EdgeKind::Arrival}, {start_of(2), end_of(1), EdgeKind::HostOrder}});
  CauseGraph graph = made;
  EXPECT_EQ(order_events(graph), 1u);
  ASSERT_EQ(cut_edges(made, graph).size(), 1u);
  EXPECT_EQ(cut_edges(made, graph)[0].to, start_of(1));
}

TEST(EventOrder, OfOneKindTheEdgeThatLeadsFarthestBackGoes) {
  const CauseGraph made = graph_of(4, {{start_of(1), end_of(0), EdgeKind::Launch}, {start_of(3), end_of(1), EdgeKind::Launch}, {start_of(2), end_of(3), EdgeKind::Launch}, {start_of(0), end_of(2), EdgeKind::Launch}});
  CauseGraph graph = made;
  EXPECT_EQ(order_events(graph), 1u);
  ASSERT_EQ(cut_edges(made, graph).size(), 1u);
  EXPECT_EQ(cut_edges(made, graph)[0].to, start_of(0));
}

TEST(EventOrder, AnyGraphHasAnOrderAndOneWithoutCirclesLosesNothing) {
  std::mt19937 lot(51);
  for (int made = 0; made < 500; ++made) {
    const size_t nodes = 1 + lot() % 30;
    const bool forward = made % 2 == 0;
    std::vector<MadeEdge> edges;
    for (size_t i = lot() % (4 * nodes); i-- > 0;) {
      const size_t a = lot() % nodes, b = lot() % nodes;
      if (forward && a == b) continue;
      edges.push_back({start_of(forward ? std::max(a, b) : a), end_of(forward ? std::min(a, b) : b), static_cast<EdgeKind>(1 + lot() % 8)});
    }
    const CauseGraph before = graph_of(nodes, edges);
    CauseGraph graph = before;
    const size_t broken = order_events(graph);
    expect_order(graph);
    EXPECT_EQ(broken, cut_edges(before, graph).size());
    EXPECT_TRUE(!forward || broken == 0);
    for (const MadeEdge& edge : cut_edges(before, graph)) EXPECT_NE(edge.kind, EdgeKind::Work);
  }
}

// Ten thousand circles of two ranks that each claim to come first, one behind the other.
TEST(EventOrder, ManyCirclesTakeOneWalk) {
  const size_t nodes = 200'000;
  std::vector<MadeEdge> edges;
  for (size_t i = 1; i < nodes; ++i) edges.push_back({start_of(i), end_of(i - 1), EdgeKind::HostOrder});
  for (size_t i = 20; i < nodes; i += 20) edges.push_back({start_of(i - 20), end_of(i), EdgeKind::Transfer});
  CauseGraph graph = graph_of(nodes, std::move(edges));
  EXPECT_EQ(order_events(graph), nodes / 20 - 1);
  expect_order(graph);
}

}  // namespace
}  // namespace ws::prof

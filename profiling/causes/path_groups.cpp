#include "profiling/causes/path_groups.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "profiling/analysis/inner_parts.h"
#include "profiling/analysis/kernel_table.h"

namespace ws::prof {
namespace {

class Grouping {
 public:
  Grouping(const CauseGraph& graph, const Trace& trace) : graph_(graph), trace_(trace), inner_(trace) {}

  std::vector<PathGroup> groups() {
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node) take(node);
    for (EventId to = 0; to + 1 < graph_.first_edge.size(); ++to)
      for (uint32_t e = graph_.first_edge[to]; e < graph_.first_edge[to + 1]; ++e)
        if (const EdgeKind kind = graph_.edges[e].kind; kind != EdgeKind::Work && kind != EdgeKind::Transfer)
          cause_group(cause_of_edge(graph_, to, graph_.edges[e])).edges.push_back(e);
    return std::move(groups_);
  }

 private:
  void take(uint32_t at) {
    const CauseNode& node = graph_.nodes[at];
    if (node.kind == NodeKind::Meeting) return;
    const auto parts = node.kind == NodeKind::Kernel ? inner_.of(node.op) : std::span<const InnerPart>{};
    if (!parts.empty()) return take_parts(at, parts);
    cause_group(cause_of_node(node)).nodes.push_back({at, 1});
    const OpTag op = node.kind == NodeKind::Kernel ? charged_tag(trace_, node.meaning, node.op) : node.op;
    if (node.kind != NodeKind::DataWait) op_group(node, node.name, op, node.meaning).nodes.push_back({at, 1});
    if (op == kNoOp || op >= trace_.ops.size()) return;
    for (const auto& [kind, by] : {std::pair{GroupKind::Line, GroupBy::Line}, {GroupKind::Module, GroupBy::Layer}})
      if (PathGroup* group = code_group(op, kind, by)) group->nodes.push_back({at, 1});
  }

  void take_parts(uint32_t at, std::span<const InnerPart> parts) {
    for (const InnerPart& part : parts) {
      const auto share = static_cast<float>(part.share);
      cause_group({part.meaning == Meaning::Sync ? PathCause::InnerWaits : PathCause::Work, part.meaning}).nodes.push_back({at, share});
      op_group(graph_.nodes[at], part.name, part.op, part.meaning).nodes.push_back({at, share});
    }
  }

  PathGroup& at(size_t& place, GroupKind kind, const std::string& name, Meaning meaning) {
    if (place == 0) {
      groups_.push_back({kind, name, meaning, {}, {}, {}});
      place = groups_.size();
    }
    return groups_[place - 1];
  }

  PathGroup& cause_group(const PathCauseId& cause) {
    PathGroup& group = at(causes_[cause], GroupKind::Cause, path_cause_name(cause), cause.meaning);
    group.cause = cause;
    return group;
  }

  // A kernel or an op by its op, otherwise by its name. Calls by what they call: one op may make several calls.
  PathGroup& op_group(const CauseNode& node, NameId name, OpTag op, Meaning meaning) {
    const bool call = runs_on_host(node.kind) && node.kind != NodeKind::CpuOp;
    const uint64_t key = call ? uint64_t{1} << 62 | static_cast<uint32_t>(name) : op != kNoOp ? op : uint64_t{1} << 61 | static_cast<uint32_t>(name);
    size_t& place = ops_[key];
    if (place > 0) return groups_[place - 1];
    const bool named = !call && op != kNoOp && op < trace_.ops.size() && !trace_.ops[op].name.empty();
    const std::string text = named ? trace_.ops[op].name : plain_kernel_name(trace_.name(name));
    size_t& same = names_[{call, text}];
    PathGroup& group = at(same, GroupKind::Op, text, meaning);
    place = same;
    return group;
  }

  PathGroup* code_group(OpTag op, GroupKind kind, GroupBy by) {
    auto [found, fresh] = code_.try_emplace({kind, op}, 0);
    if (fresh) {
      const std::string name = group_of(trace_.ops[op], by);
      if (name.empty()) return nullptr;
      size_t& same = code_names_[{kind, name}];
      at(same, kind, name, trace_.ops[op].meaning);
      found->second = same;
    }
    return found->second == 0 ? nullptr : &groups_[found->second - 1];
  }

  const CauseGraph& graph_;
  const Trace& trace_;
  const InnerParts inner_;
  std::vector<PathGroup> groups_;
  // Places in groups_, counted from 1.
  std::map<PathCauseId, size_t> causes_;
  std::unordered_map<uint64_t, size_t> ops_;
  std::map<std::pair<bool, std::string>, size_t> names_;
  std::map<std::pair<GroupKind, OpTag>, size_t> code_;
  std::map<std::pair<GroupKind, std::string>, size_t> code_names_;
};

}  // namespace

const char* group_kind_name(GroupKind kind) {
  constexpr const char* kNames[] = {"op", "line", "module", "cause"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<PathGroup> path_groups(const CauseGraph& graph, const Trace& trace) { return Grouping(graph, trace).groups(); }

bool matches(std::string_view pattern, std::string_view text) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b)); };
  size_t p = 0, t = 0, star = pattern.npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*')
      star = p++, retry = t;
    else if (p < pattern.size() && same(pattern[p], text[t]))
      ++p, ++t;
    else if (star != pattern.npos)
      p = star + 1, t = ++retry;
    else
      return false;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

void scale_work(const CauseGraph& graph, Timing& timing, uint32_t node, double factor, double share) {
  const auto scaled = [&](int64_t now, int64_t whole) {
    const double part = static_cast<double>(whole) * share;
    return std::max<int64_t>(0, std::llround(static_cast<double>(now) - part * (1 - factor)));
  };
  const int64_t now = timing.work_ns[node];
  // The whole node by what is left of it, a part by what it measured: another part may be gone already.
  timing.work_ns[node] = share >= 1 ? scaled(now, now) : scaled(now, graph.nodes[node].work_ns);
  for (uint32_t e = graph.first_edge[end_of(node)]; e < graph.first_edge[end_of(node) + 1]; ++e)
    if (graph.edges[e].kind == EdgeKind::Transfer && timing.lag[e] != kNoLag) timing.lag[e] = scaled(timing.lag[e], timing.lag[e]);
}

size_t drop_waits(const CauseGraph& graph, Timing& timing, uint32_t node) {
  size_t waits = 0;
  for (uint32_t e = graph.first_edge[end_of(node)]; e < graph.first_edge[end_of(node) + 1]; ++e)
    if (is_wait(graph.edges[e].kind)) timing.lag[e] = kNoLag, ++waits;
  return waits;
}

double path_ns(const PathGroup& group, const CriticalPath& path) {
  double ns = 0;
  for (const auto& [node, share] : group.nodes) ns += static_cast<double>(path.node_ns[node]) * static_cast<double>(share);
  for (const uint32_t edge : group.edges) ns += static_cast<double>(path.edge_ns[edge]);
  return ns;
}

}  // namespace ws::prof

// Groups of nodes and edges that a person can name: ops, lines, modules and causes. A kernel that runs a whole step counts
// by its parts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "profiling/causes/critical_path.h"

namespace ws::prof {

enum class GroupKind : uint8_t { Op, Line, Module, Cause };
const char* group_kind_name(GroupKind kind);  // "op"

struct PathGroup {
  struct Member {
    uint32_t node;
    float share;  // of the node's work
  };
  GroupKind kind = GroupKind::Op;
  std::string name;
  Meaning meaning = Meaning::Other;
  PathCauseId cause;
  std::vector<Member> nodes;
  std::vector<uint32_t> edges;  // only of causes: the delays that are this cause
};
std::vector<PathGroup> path_groups(const CauseGraph& graph, const Trace& trace);

// Text with any number of letters at each *. Upper and lower case are the same.
bool matches(std::string_view pattern, std::string_view text);

// Changes to a timing that several edits share.
void scale_work(const CauseGraph& graph, Timing& timing, uint32_t node, double factor, double share = 1);
size_t drop_waits(const CauseGraph& graph, Timing& timing, uint32_t node);  // the call does not wait for the GPU; returns how many waits it has

// Time of a group on a path.
double path_ns(const PathGroup& group, const CriticalPath& path);

}  // namespace ws::prof

#include "profiling/analysis/launch_stacks.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "profiling/analysis/flame_tree.h"
#include "profiling/analysis/source_lines.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {
namespace {

struct Launched {
  OpTag op = kNoOp;
  NameId name{};
};

// Time by op and name. There are few pairs, however long the trace is.
class LaunchedTimes {
 public:
  LaunchedTimes(const Trace& trace, TimeRange range) : trace_(trace) {
    for (const Track& track : tracks_of_steps(trace))
      if (track.kind != TrackKind::Inner)
        each_span(track, range.begin, range.end, [this](const Span& span) {
          if (span.span_kind() == SpanKind::Kernel) add(span, static_cast<int64_t>(span.duration));
        });
    if (times_.empty())
      each_own_range(trace, range.begin, range.end, [this](const Span& span, int64_t own) { add(span, own); });
  }
  // Calls take(op, name, ns).
  template <class Take>
  void each(const Take& take) const {
    for (const auto& [key, ns] : times_)
      take(charged_op(trace_, key >> 63 ? Meaning::Communication : Meaning::Other, static_cast<OpTag>(key >> 32)), trace_.name(static_cast<NameId>(static_cast<uint32_t>(key))), ns);
  }

 private:
  void add(const Span& span, int64_t ns) {
    const uint64_t op = span.op < trace_.ops.size() ? span.op : kNoOp, communicates = span.span_meaning() == Meaning::Communication;
    times_[communicates << 63 | op << 32 | static_cast<uint32_t>(span.name)] += ns;
  }

  const Trace& trace_;
  std::unordered_map<uint64_t, int64_t> times_;
};

// Each line once, however often it is in the stack.
std::vector<std::string> lines_of_stack(const OpInfo& op) {
  std::vector<std::string> lines;
  for (const CodeFrame& frame : stack_of(op))
    if (frame.line > 0) lines.push_back(place_text(frame));
  std::ranges::sort(lines);
  lines.erase(std::ranges::unique(lines).begin(), lines.end());
  return lines;
}

// Each frame below its caller, most time first.
void tree_text(const FlameTree& tree, uint32_t node, std::string& text) {
  constexpr double kLeastShare = 0.005;
  for (const uint32_t i : tree[node].inside) {
    const FlameNode& inner = tree[i];
    if (inner.ns < kLeastShare * tree[0].ns) continue;
    const std::string lines = inner.lines.size() == 1 ? ":" + std::to_string(inner.lines.begin()->first) : "";
    text += table_row("{:10.2f} {:7.2f}  {}{}{}", inner.ns * 1e-6, 100 * inner.ns / tree[0].ns,
                      std::string(static_cast<size_t>(2 * (inner.depth - 1)), ' '), inner.function,
                      inner.path.empty() ? "" : " (" + inner.path + lines + ")");
    tree_text(tree, i, text);
  }
}

}  // namespace

HostStacks launch_stacks(const Trace& trace, TimeRange range) {
  HostStacks stacks;
  LaunchedTimes(trace, range).each([&](const OpInfo& op, const std::string& name, int64_t ns) {
    FrameStack stack;
    const CodeFrame op_frame{"", 0, op.name.empty() ? "(no op)" : op.name};
    bool named = false;
    for (const CodeFrame& frame : stack_of(op)) {
      if (frame.line == 0 && !named) stack.push_back(op_frame), named = true;  // its native frames follow it
      stack.push_back(frame);
    }
    if (stack.empty()) stack.push_back({"", 0, "(no line)"});
    if (!named) stack.push_back(op_frame);
    if (name != op.name) stack.push_back({"", 0, short_kernel_name(name)});
    if (ns > 0) stacks[std::move(stack)] += ns;
  });
  return stacks;
}

HostStacks launch_stacks(const Trace& trace, const std::vector<TimeRange>& ranges) {
  HostStacks stacks;
  for (const TimeRange& range : ranges)
    for (const auto& [stack, ns] : launch_stacks(trace, range)) stacks[stack] += ns;
  return stacks;
}

bool has_launch_stacks(const Trace& trace) {
  return std::ranges::any_of(trace.ops, [](const OpInfo& op) { return stack_of(op).size() > 1; });
}

std::string launch_text(const HostStacks& stacks, const std::string& of) {
  const FlameTree tree = flame_tree(stacks);
  if (tree.empty()) return "\nNo work was recorded.\n";
  std::string text = formatted("\n{:>10} {:>7}  {}\n", "ms", "%", "by the stack that launched it, then op and kernel; from 0.5 %" + (of.empty() ? of : "; sum of " + of));
  tree_text(tree, 0, text);
  return text;
}

void add_calling_lines(std::vector<KernelRow>& rows, const Trace& trace, TimeRange range) {
  std::map<std::string, int64_t, std::less<>> times;
  bool stacks = false;
  LaunchedTimes(trace, range).each([&](const OpInfo& op, const std::string&, int64_t ns) {
    const auto lines = lines_of_stack(op);
    stacks |= lines.size() > 1;
    for (const std::string& line : lines) {
      const auto at = times.find(line);
      (at == times.end() ? times.emplace(line, 0).first : at)->second += ns;
    }
  });
  if (!stacks) return;  // recorded without stacks
  for (KernelRow& row : rows)
    if (const auto at = times.find(row.key); at != times.end()) row.with_calls = at->second, times.erase(at);
  for (const auto& [line, ns] : times) {
    const auto place = source_place(line);
    if (!place || !is_own_path(place->path)) continue;
    KernelRow row;
    row.key = line, row.with_calls = ns, row.meaning = Meaning::Other;
    row.kind = rows.empty() ? SpanKind::Kernel : rows.front().kind;
    rows.push_back(std::move(row));
  }
}

std::map<int, int64_t> time_by_line(const Trace& trace, TimeRange range, std::string_view path) {
  std::map<int, int64_t> times;
  LaunchedTimes(trace, range).each([&](const OpInfo& op, const std::string&, int64_t ns) {
    std::set<int> lines;
    for (const CodeFrame& frame : stack_of(op))
      if (frame.path == path && frame.line > 0) lines.insert(frame.line);
    for (const int line : lines) times[line] += ns;
  });
  return times;
}

}  // namespace ws::prof

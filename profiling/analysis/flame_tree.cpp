#include "profiling/analysis/flame_tree.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace ws::prof {
namespace {

struct StackFrame {
  std::string function, path, line;
};

// "Net.forward (net.py:12)"
StackFrame stack_frame(std::string_view text) {
  const size_t open = text.rfind(" (");
  if (open == std::string_view::npos || !text.ends_with(')')) return {std::string(text), {}, {}};
  const std::string_view place = text.substr(open + 2, text.size() - open - 3);
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return {std::string(text.substr(0, open)), std::string(place), {}};
  return {std::string(text.substr(0, open)), std::string(place.substr(0, colon)), std::string(place.substr(colon + 1))};
}

class FlameBuilder {
 public:
  FlameBuilder() : tree_(1) {}

  void add(const HostStacks& stacks, double steps, double FlameNode::*to) {
    for (const auto& [stack, ns] : stacks) add(stack, static_cast<double>(ns) / steps, to);
  }
  FlameTree take() {
    if (tree_.size() == 1) return {};
    for (FlameNode& node : tree_)
      std::ranges::stable_sort(node.inside, std::greater<>{},
                               [this](uint32_t i) { return std::max(tree_[i].ns, tree_[i].before); });
    return std::move(tree_);
  }

 private:
  void add(std::string_view stack, double ns, double FlameNode::*to) {
    uint32_t at = 0;
    tree_[0].*to += ns;
    std::string line;
    while (!stack.empty()) {
      const size_t cut = std::min(stack.find(';'), stack.size());
      const StackFrame frame = stack_frame(stack.substr(0, cut));
      stack.remove_prefix(std::min(cut + 1, stack.size()));
      at = inside(at, frame);
      tree_[at].*to += ns;
      if (to == &FlameNode::ns && !frame.line.empty()) tree_[at].lines[frame.line] += ns;
    }
    if (to == &FlameNode::ns) tree_[at].alone += ns;
  }
  uint32_t inside(uint32_t outer, const StackFrame& frame) {
    const auto [at, fresh] =
        places_.try_emplace(std::to_string(outer) + '\n' + frame.function + '\n' + frame.path, static_cast<uint32_t>(tree_.size()));
    if (!fresh) return at->second;
    FlameNode node;
    node.function = frame.function, node.path = frame.path;
    node.parent = outer, node.depth = tree_[outer].depth + 1;
    tree_.push_back(std::move(node));
    tree_[outer].inside.push_back(at->second);
    return at->second;
  }

  FlameTree tree_;
  std::unordered_map<std::string, uint32_t> places_;
};

}  // namespace

FlameTree flame_tree(const HostStacks& stacks) {
  FlameBuilder builder;
  builder.add(stacks, 1, &FlameNode::ns);
  return builder.take();
}

FlameTree flame_difference(const HostStacks& baseline, double baseline_steps, const HostStacks& candidate, double candidate_steps) {
  FlameBuilder builder;
  builder.add(candidate, std::max(candidate_steps, 1.0), &FlameNode::ns);
  builder.add(baseline, std::max(baseline_steps, 1.0), &FlameNode::before);
  return builder.take();
}

bool is_own_path(const std::string& path) {
  if (path.empty()) return false;
  for (const std::string_view other : {"site-packages/", "dist-packages/", "/lib/python", "<frozen", ".so"})
    if (path.find(other) != std::string::npos) return false;
  return true;
}

}  // namespace ws::prof

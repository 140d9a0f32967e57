#include "profiling/analysis/flame_tree.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace ws::prof {
namespace {

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
    // Threads that wait all the time have the most samples.
    std::ranges::stable_partition(tree_[0].inside, [this](uint32_t i) { return tree_[i].function == "MainThread"; });
    return std::move(tree_);
  }

 private:
  void add(const FrameStack& stack, double ns, double FlameNode::*to) {
    uint32_t at = 0;
    tree_[0].*to += ns;
    for (const CodeFrame& frame : stack) {
      at = inside(at, frame);
      tree_[at].*to += ns;
      if (to == &FlameNode::ns && frame.line > 0) tree_[at].lines[frame.line] += ns;
    }
    if (to == &FlameNode::ns) tree_[at].alone += ns;
  }
  uint32_t inside(uint32_t outer, const CodeFrame& frame) {
    const auto [at, fresh] =
        places_.try_emplace({outer, frame.function, frame.path}, static_cast<uint32_t>(tree_.size()));
    if (!fresh) return at->second;
    FlameNode node;
    node.function = frame.function, node.path = frame.path;
    node.parent = outer, node.depth = tree_[outer].depth + 1;
    tree_.push_back(std::move(node));
    tree_[outer].inside.push_back(at->second);
    return at->second;
  }

  FlameTree tree_;
  std::map<std::tuple<uint32_t, std::string, std::string>, uint32_t> places_;  // by the outer node
};

// "training 30560" → "training": the number of a thread is another one in each run.
std::string without_number(const std::string& thread) {
  const size_t end = thread.find_last_not_of("0123456789") + 1;
  if (end == 0 || end == thread.size()) return thread;
  const size_t name = thread.find_last_not_of(" -_#", end - 1) + 1;
  return name == 0 ? thread : thread.substr(0, name);
}

HostStacks without_thread_numbers(const HostStacks& stacks) {
  HostStacks named;
  for (const auto& [numbered, ns] : stacks) {
    FrameStack stack = numbered;
    if (!stack.empty() && stack.front().path.empty()) stack.front().function = without_number(stack.front().function);
    named[std::move(stack)] += ns;
  }
  return named;
}

}  // namespace

FlameTree flame_tree(const HostStacks& stacks) {
  FlameBuilder builder;
  builder.add(stacks, 1, &FlameNode::ns);
  return builder.take();
}

FlameTree flame_difference(const HostStacks& baseline, double baseline_steps, const HostStacks& candidate, double candidate_steps) {
  FlameBuilder builder;
  builder.add(without_thread_numbers(candidate), std::max(candidate_steps, 1.0), &FlameNode::ns);
  builder.add(without_thread_numbers(baseline), std::max(baseline_steps, 1.0), &FlameNode::before);
  return builder.take();
}

namespace {

// "python", "python3", "python3.12"
bool is_interpreter(std::string_view file) {
  constexpr std::string_view kName = "python";
  return file.starts_with(kName) && file.find_first_not_of("0123456789.", kName.size()) == std::string_view::npos;
}

}  // namespace

bool is_own_path(const std::string& path) {
  if (path.empty()) return false;
  for (const std::string_view other : {"site-packages/", "dist-packages/", "/lib/python", "<frozen"})
    if (path.find(other) != std::string::npos) return false;
  const std::string_view file = std::string_view(path).substr(path.rfind('/') + 1);
  return !file.ends_with(".so") && file.find(".so.") == std::string_view::npos && !is_interpreter(file);
}

namespace {

bool is_library(const CodeFrame& frame) { return !frame.path.empty() && !is_own_path(frame.path); }

// "Tensor.backward" and "DataLoader.__next__", not "Module._call_impl".
bool is_public(const std::string& function) {
  const size_t name = function.find_last_of(".:") + 1;
  return name < function.size() && (function[name] != '_' || function.ends_with("__")) && function != "?";
}

FrameStack folded(const FrameStack& stack) {
  FrameStack own;
  const CodeFrame* called = nullptr;  // by the last own function: the first public library function, else the first one
  for (const CodeFrame& frame : stack) {
    if (!is_library(frame)) own.push_back(frame), called = nullptr;
    else if (!called || (!is_public(called->function) && is_public(frame.function))) called = &frame;
  }
  if (called) own.push_back(*called);
  return own;
}

}  // namespace

HostStacks folded_libraries(const HostStacks& stacks) {
  const auto has_own = [](const auto& one) { return std::ranges::any_of(one.first, [](const CodeFrame& frame) { return is_own_path(frame.path); }); };
  if (std::ranges::none_of(stacks, has_own)) return stacks;
  HostStacks all;
  for (const auto& [stack, ns] : stacks) all[folded(stack)] += ns;
  return all;
}

std::string module_of_path(const std::string& path) {
  for (const std::string_view installed : {"site-packages/", "dist-packages/"})
    if (const size_t at = path.find(installed); at != std::string::npos) {
      const size_t first = at + installed.size();
      return path.substr(first, path.find('/', first) - first);
    }
  const std::string file = path.substr(path.rfind('/') + 1);
  if (const size_t library = file.find(".so"); library != std::string::npos) return file.substr(0, library);
  return is_own_path(path) || path.empty() ? file : kPythonModule;
}

}  // namespace ws::prof

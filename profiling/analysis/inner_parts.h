// Shows what kernels with lanes inside do with their time: such a kernel runs many steps, and its parts say which work.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

// Kernels of one GPU since `begin`, in order of their start.
std::vector<Span> kernels_since(const Trace& trace, const std::string& group, TimeNs begin);
// The kernel around a span inside it; nullptr: none of these.
const Span* kernel_around(const std::vector<Span>& kernels, const Span& inner);

struct InnerPart {
  Meaning meaning;
  NameId name;
  OpTag op;
  double share;      // share of the kernel's time
  double ns_a_step;  // mean of the lanes
};

// Lanes of warps that only fetch for others are left out: they wait while the other warps compute. So are ranges that a program
// named: they need not fill their kernel.
class InnerParts {
 public:
  explicit InnerParts(const Trace& trace);
  bool empty() const { return kernels_.empty(); }
  // Parts of the kernels of this op. Their shares sum to 1; none if such kernels have no lanes.
  std::span<const InnerPart> of(OpTag kernel) const;
  // Parts of all kernels, one after another.
  std::vector<InnerPart> all() const;

 private:
  struct Kernel {
    OpTag op;
    std::vector<InnerPart> parts;
  };
  std::vector<Kernel> kernels_;
};

}  // namespace ws::prof

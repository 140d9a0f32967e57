#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "app/core/insights/trace_insights.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/stalls.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

using prof::Stall;

constexpr double kOfKernel = 0.25;   // share of a kernel's samples that one reason at one line must have
constexpr double kOfAll = 0.03;      // share of all samples that such a kernel must have
constexpr uint64_t kFewest = 100;    // samples
constexpr size_t kMost = 3;          // pieces of advice

struct Advice {
  Stall reason;
  const char *rule, *waits, *advice;
};
constexpr Advice kAdvice[] = {
    {Stall::GlobalMemory, "global memory", "wait for global memory",
     "Load four values at once (float4), let neighbouring threads read neighbouring addresses, and start the load some instructions before its value is used."},
    {Stall::GlobalQueue, "global memory queue", "wait because the queue for global memory is full",
     "There are many small accesses. Access 16 bytes per thread, and let neighbouring threads access neighbouring addresses."},
    {Stall::SharedMemory, "shared memory", "wait for shared memory or a special function",
     "If threads of a warp access different rows of one bank, pad each row by one element. If the line has exp, sin, a division or a shuffle, use its fast form or fewer of them."},
    {Stall::SharedQueue, "shared memory queue", "wait because the queue for shared memory is full",
     "If threads of a warp access different rows of one bank, pad each row by one element. Else access 16 bytes per thread, and compute between accesses."},
    {Stall::ConstantMemory, "constant memory", "wait for constant memory",
     "Threads of a warp should read the same constant. Read what differs by thread through shared or global memory."},
    {Stall::Fence, "memory fence", "wait for a memory fence", "Use the narrowest fence that is right: __threadfence_block() for threads of one block."},
    {Stall::Barrier, "barrier", "wait at a barrier",
     "All warps wait for the slowest one. Give warps equal work before it, use __syncwarp() where a warp is enough, or let two buffers take turns and halve the barriers."},
    {Stall::Branch, "branch", "wait for a branch",
     "Threads of a warp go different ways one after the other. Sort the work so that a warp goes one way, or compute both sides and select."},
    {Stall::Fetch, "instruction fetch", "wait for their instructions", "The code does not fit into the instruction cache. Unroll less, or split the kernel."},
    {Stall::MathPipe, "busy math unit", "wait for a busy math unit",
     "Use fewer instructions of this kind: fast forms of exp, sin and division, a lower precision, or tensor cores for products."},
    {Stall::FixedLatency, "dependency chain", "wait for the result of the instruction before",
     "Each instruction needs the one before. Compute two or four independent sums and add them at the end, or run more warps."},
};

// What the trace knows of a kernel whose code was sampled.
struct KernelInTrace {
  double ns = 0;
  std::set<prof::OpTag> ops;
  std::optional<prof::FoundSpan> first;
};

std::map<std::string, KernelInTrace> kernels_in(const prof::Trace& trace) {
  std::set<prof::NameId> wanted;
  for (const prof::SampledInstruction& one : trace.stalls.instructions()) wanted.insert(one.function);
  std::map<std::string, KernelInTrace> all;
  for (size_t t = 0; t < trace.tracks().size(); ++t) {
    if (!prof::on_gpu(trace.tracks()[t])) continue;
    prof::each_span(trace.tracks()[t], -prof::kAlways, prof::kAlways, [&](const prof::Span& span) {
      if (!prof::is_kernel(span) || !wanted.contains(span.name)) return;
      KernelInTrace& kernel = all[trace.name(span.name)];
      kernel.ns += static_cast<double>(span.duration);
      if (span.op != prof::kNoOp && span.op < trace.ops.size()) kernel.ops.insert(span.op);
      if (!kernel.first) kernel.first = prof::FoundSpan{t, span};
    });
  }
  return all;
}

// The op if the kernel belongs to one, else the kernel.
std::string shown_name(const prof::Trace& trace, const std::string& kernel, const KernelInTrace& known) {
  if (known.ops.size() == 1) return trace.ops[*known.ops.begin()].name;
  return prof::short_kernel_name(kernel);
}

// The reason that costs a kernel most at one line. A kernel without line info has its reason for all of it.
struct Worst {
  const Advice* advice = nullptr;
  std::string place;
  uint64_t samples = 0;
};

Worst worst_of(const prof::Trace& trace, const prof::StallRow& kernel) {
  Worst worst;
  const auto look = [&worst](const prof::StallRow& row) {
    for (const Advice& advice : kAdvice)
      if (const uint64_t count = row.counts[static_cast<size_t>(advice.reason)]; count > worst.samples) worst = {&advice, row.place(), count};
  };
  for (const prof::StallRow& line : prof::stalls_by_line(trace, kernel.kernel)) look(line);
  return worst;
}

}  // namespace

std::vector<Insight> stall_insights(const prof::Trace& trace, bool training) {
  const char* const without_lines = training ? "It is built in: the page Own kernel takes a version of your own." : "Its code has no source lines: compile with -lineinfo to see where.";
  std::vector<Insight> found;
  if (trace.stalls.empty()) return found;
  const auto known = kernels_in(trace);
  std::vector<std::pair<uint64_t, Insight>> all;
  for (const prof::StallRow& kernel : prof::stalls_by_kernel(trace)) {
    if (kernel.share < kOfAll) break;
    const Worst worst = worst_of(trace, kernel);
    const double share = static_cast<double>(worst.samples) / static_cast<double>(kernel.samples);
    if (!worst.advice || share < kOfKernel || worst.samples < kFewest) continue;
    const auto at = known.find(kernel.kernel.substr(0, kernel.kernel.find(" · ")));
    const KernelInTrace in_trace = at == known.end() ? KernelInTrace() : at->second;
    Insight insight{worst.advice->rule,
                    formatted("{} of {}'s samples {}", percent(share, 0), shown_name(trace, kernel.kernel, in_trace), worst.advice->waits) +
                        (worst.place.empty() ? "" : " at " + worst.place),
                    worst.place.empty() ? without_lines : ""};
    insight.how = worst.advice->advice;
    insight.cost_ns = in_trace.ns * share;
    if (in_trace.first) insight.place = in_trace.first, insight.look_at = in_trace.first->span.span_meaning();
    all.emplace_back(worst.samples, std::move(insight));
  }
  sort_rows(all, [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [samples, insight] : all)
    if (found.size() < kMost) found.push_back(std::move(insight));
  return found;
}

}  // namespace ws::app

#include "profiling/collectors/trace_levels.h"

#include <array>
#include <optional>

#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws::prof {

namespace {

constexpr std::array<const char*, 6> kLevels{"off", "steps", "collectives", "graph", "kernels", "full"};

std::optional<TraceLevel> level_named(std::string_view name) {
  for (size_t i = 0; i < kLevels.size(); ++i)
    if (name == kLevels[i]) return static_cast<TraceLevel>(i);
  return std::nullopt;
}

}  // namespace

const char* to_string(TraceLevel level) { return kLevels[static_cast<size_t>(level)]; }

TraceLevel trace_level(std::string_view name) {
  const auto level = level_named(name);
  if (level == TraceLevel::Collectives)
    throw Failure("collectives is a level for recorded programs. For a training, choose off, steps, graph, kernels or full.");
  if (!level) throw Failure("There is no trace level \"" + std::string(name) + "\": choose off, steps, graph, kernels or full.");
  return *level;
}

TraceLevel record_level(std::string_view name) {
  const auto level = level_named(name);
  if (!level)
    throw Failure("There is no trace level \"" + std::string(name) + "\": choose off, steps, collectives, graph, kernels or full.");
  return *level;
}

namespace {

std::string describe_window(const CollectorOptions& options) {
  return "Traces every kernel in " + std::to_string(options.node_window) + " of every " +
         std::to_string(options.node_every) + " steps. Of other steps, only whole graph launches.";
}

std::string describe_level(const CollectorOptions& options, TraceLevel level) {
  switch (level) {
    case TraceLevel::Steps:
      return "Traces steps, phases and allocator calls; no kernels.";
    case TraceLevel::Collectives:
      return "Traces steps, ranges and the collectives of NCCL; no kernels and no calls.";
    case TraceLevel::Graph:
      if (options.node_every > 0) return describe_window(options);
      return "Traces eager kernels, copies and each graph launch as a whole, not its kernels.";
    case TraceLevel::Kernels:
      return options.whole_graphs ? "Traces eager kernels, each graph launch as a whole, copies and allocator calls; no other calls."
                                  : "Traces every kernel, copy and allocator call; no other calls.";
    default:
      return options.whole_graphs ? "Traces eager kernels, each graph launch as a whole, copies, allocator calls, launches, syncs and memory pools."
                                  : "Traces every kernel, copy, allocator call, launch, sync and memory pool.";
  }
}

}  // namespace

std::string describe(const CollectorOptions& options, TraceLevel level, const std::string& gpu_refused) {
  if (level == TraceLevel::Off && !gpu_refused.empty()) return "Tracing is off.";
  if (level == TraceLevel::Off)
    return "Tracing is off; the profiler stays attached until the run ends, so launching kernels may stay a little "
           "slower.";
  const std::string captures = options.captures ? " Only in the capture ranges that the program begins and ends." : "";
  if (!gpu_refused.empty()) return "Traces the CPU only: " + gpu_refused + "." + captures;
  std::string text = describe_level(options, level) + captures;
  if (!options.clock.always())
    text += " That for " + to_text(options.clock) + "; between them allocator calls and ranges only.";
  return text;
}

std::string describe(const XrayWindow& window, const XrayResult& result, const std::string& refused) {
  if (result.windows == 0 && !refused.empty()) return "No X-ray: " + refused + ".";
  std::string text = "X-ray of " + to_text(window) + ", from " +
                     (window.by_time ? clock_time_text(XrayWindow::kFirstNs) + " after the first work on the GPU" : "step " + std::to_string(XrayWindow::kFirstStep)) +
                     " on; kernel records pause meanwhile.";
  if (result.windows == 0) return text;
  text += formatted(" {} samples in {}, one every {} cycles", result.samples, result.windows == 1 ? "1 window" : std::to_string(result.windows) + " windows", uint64_t{1} << result.period);
  text += result.dropped > 0 ? formatted("; the hardware dropped {}", result.dropped) : std::string("; none dropped");
  if (result.hidden > 0) text += formatted("; {} of kernels of the driver", result.hidden);
  return text + (refused.empty() ? "." : ". Then it ended: " + refused + ".");
}

std::string describe_exception(TraceLevel level, const GpuTracer& gpu) {
  if (level == TraceLevel::Graph && gpu.graphs_refused())
    return "Traces every kernel: graphs that are there already cannot be recorded as a whole any more.";
  if (level >= TraceLevel::Graph && gpu.kernels_refused())
    return "Traces each graph launch as a whole: the driver holds no more kernels of graphs made at level graph.";
  return "";
}

}  // namespace ws::prof

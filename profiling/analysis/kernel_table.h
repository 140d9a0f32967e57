// How long each kernel takes: one row per name, op, layer or phase.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/occupancy.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

struct DurationStats {
  uint64_t count = 0;
  int64_t total = 0, min = 0, max = 0;  // ns
  double mean = 0, stddev = 0;
  int64_t median = 0, q1 = 0, q3 = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0;
};
// Sorts the durations in place.
DurationStats stats_of(std::vector<int64_t>& durations);

// Shape: name, grid and block. Block: of layers; who knows the network joins the rows by layer.
enum class GroupBy : uint8_t { Name, Op, Layer, Phase, Shape, Line, Block };
const char* to_string(GroupBy by);
// The op that a kernel is charged to. A collective belongs to no module: the hook that launches it runs in the backward pass of
// any module. charged_tag(): kNoOp for such a collective.
OpTag charged_tag(const Trace& trace, Meaning meaning, OpTag op);
inline OpTag charged_tag(const Trace& trace, const Span& span) { return charged_tag(trace, span.span_meaning(), span.op); }
OpInfo charged_op(const Trace& trace, Meaning meaning, OpTag op);
inline constexpr const char* kCollectives = "collectives";
std::string group_of(const OpInfo& op, GroupBy by);  // by op, layer, phase or line; empty: not known
// The same for a table: "(no layer)" where it is not known.
std::string group_name(const OpInfo& op, GroupBy by);

struct KernelRow {
  std::string key;    // "(no op)" for kernels without an op
  NameId name{};      // taken from the first kernel in the group
  Meaning meaning{};  // of most of its time: a kernel that is tried before the training belongs to no op
  OpTag op = kNoOp;   // taken from the first kernel
  Detail detail;      // taken from the first kernel
  DurationStats time;
  double share = 0;  // share of the time of all rows
  int64_t with_calls = 0;  // by line: ns with all that was launched while the line waited for its calls; 0: not known
  SpanKind kind = SpanKind::Kernel;
  bool several_shapes = false;         // not all launches have the shape of the first one
  std::optional<Occupancy> occupancy;  // for the first kernel, if the card is known
};

// By layer: the block that a layer's row is part of, such as "block 2" of "attn7". Other layers have rows of their own.
using JoinedLayers = std::map<std::string, std::string>;

// Largest total first. Includes spans of one kind on all tracks, except kernels drawn inside a resident kernel.
// `in_steps`: only spans that have the number of a step.
std::vector<KernelRow> kernel_table(const Trace& trace, TimeNs begin, TimeNs end, GroupBy by = GroupBy::Name,
                                    SpanKind kind = SpanKind::Kernel, bool in_steps = false, const JoinedLayers& joined = {});

// What used the GPU's time: kernels, and graphs recorded as a whole (kind GraphRun, one row per graph for every
// grouping). For a CPU-only trace: its ops, or the program's ranges if there are no ops. Excludes marks that a host
// made during a capture.
std::vector<KernelRow> work_table(const Trace& trace, TimeNs begin, TimeNs end, GroupBy by = GroupBy::Name, bool in_steps = false,
                                  const JoinedLayers& joined = {});
void add_occupancy(std::vector<KernelRow>& rows, const DeviceLimits& card);

// "void cutlass::Kernel<float, 4>(Params)" → "Kernel".
std::string short_kernel_name(const std::string& name);
// The part of a name that distinguishes kernels: with template arguments, but without parameters and without namespaces
// that most kernels of a program share (ours, PyTorch's).
std::string plain_kernel_name(const std::string& name);
// Shortens a name for a table row by cutting its middle, because the end may distinguish it from other names.
std::string shortened(const std::string& name, size_t most = 200);

std::vector<int64_t> durations_of(const Trace& trace, NameId name, TimeNs begin, TimeNs end);

}  // namespace ws::prof

#include "app/core/page/lane_columns.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "profiling/analysis/kernel_table.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/lod.h"

namespace ws::app {
namespace {

using Json = nlohmann::ordered_json;

void put(std::string& column, uint64_t value) {
  for (; value >= 0x80; value >>= 7) column += static_cast<char>(value | 0x80);
  column += static_cast<char>(value);
}

// Small negative numbers become small numbers, too.
void put_signed(std::string& column, int64_t value) { put(column, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63)); }

std::string shown_name(const prof::Trace& trace, prof::NameId id) {
  const prof::CodeStack* stack = trace.stack(id);
  return stack ? prof::stack_text(*stack) : trace.name(id);
}

// The function that a sample was in, or the kernel without its namespaces and arguments.
std::string short_of(const prof::Trace& trace, prof::NameId id, const std::string& name) {
  if (const prof::CodeStack* stack = trace.stack(id)) return stack->frames.empty() ? name : stack->frames.back().function;
  return prof::short_kernel_name(name);
}

}  // namespace

size_t PageTexts::number(const std::string& text) {
  const auto [at, fresh] = numbers_.try_emplace(text, texts_.size());
  if (fresh) texts_.push_back(text);
  return at->second;
}

size_t SpanNames::name(const prof::Trace& trace, prof::NameId id) {
  const auto [at, fresh] = known_names_.try_emplace({&trace, static_cast<uint32_t>(id)}, 0);
  if (!fresh) return at->second;
  const std::string text = shown_name(trace, id);
  at->second = names_.number(text);
  if (at->second == short_.size()) {
    const std::string brief = short_of(trace, id, text);
    short_.push_back(brief == text ? "" : brief);
  }
  return at->second;
}

size_t SpanNames::op(const prof::Trace& trace, prof::OpTag tag) {
  if (tag == prof::kNoOp || tag >= trace.ops.size()) return 0;
  const auto [at, fresh] = known_ops_.try_emplace({&trace, tag}, ops_.size());
  if (fresh) {
    const prof::OpInfo& op = trace.ops[tag];
    ops_.push_back({{"name", op.name}, {"detail", op.detail}, {"layer", op.layer}, {"phase", op.phase}, {"line", prof::line_of(op)},
                    {"flops", op.flops}, {"bytes", op.bytes}});
  }
  return at->second;
}

size_t SpanNames::shape(const prof::Trace& trace, prof::DetailId id) {
  if (static_cast<size_t>(id) == 0 || static_cast<size_t>(id) >= trace.detail_count()) return 0;
  const auto [at, fresh] = known_shapes_.try_emplace({&trace, static_cast<uint32_t>(id)}, shapes_.size());
  if (fresh) {
    const prof::Detail& d = trace.detail(id);
    shapes_.push_back({{"grid", d.grid}, {"block", d.block}, {"registers", d.registers}, {"shared", d.static_shared + d.dynamic_shared},
                       {"bytes", d.bytes}, {"kind", d.copy_kind}});
  }
  return at->second;
}

Json SpanNames::json() const { return {{"names", names_.all()}, {"short", short_}, {"ops", ops_}, {"shapes", shapes_}}; }

LaneColumns pack_lane(const prof::Trace& trace, const prof::Track& track, prof::TimeNs origin, SpanNames& names) {
  LaneColumns lane;
  enum { Start, Duration, Name, Meaning, Kind, Op, Shape, Step, Correlation, kColumns };
  std::array<std::string, kColumns> columns;
  prof::Span before{};
  before.start = origin;
  for (const prof::SpanBlock& block : track.blocks)
    for (const prof::Span& span : block.spans) {
      if (lane.spans++ == 0) lane.from = span.start - origin;
      put_signed(columns[Start], span.start - before.start);
      put(columns[Duration], span.duration);
      put(columns[Name], names.name(trace, span.name));
      put(columns[Meaning], span.meaning);
      put(columns[Kind], span.kind);
      put(columns[Op], names.op(trace, span.op));
      put(columns[Shape], names.shape(trace, span.detail));
      put_signed(columns[Step], int64_t{span.step} - before.step);
      put_signed(columns[Correlation], int64_t{span.correlation} - before.correlation);
      before = span;
    }
  for (const std::string& column : columns) lane.lengths.push_back(column.size()), lane.bytes += column;
  return lane;
}

Json lane_overview(const prof::Track& track, prof::TimeNs begin, prof::TimeNs end) {
  auto bars = Json::array();
  int64_t at = 0;
  for (const prof::LodRect& rect : prof::lod(track, begin, end, kOverviewColumns)) {
    const int64_t from = std::max<int64_t>(at, std::llround(rect.x0 * kOverviewUnits));
    const int64_t to = std::max<int64_t>(from + 1, std::llround(rect.x1 * kOverviewUnits));
    const int64_t busy = std::llround(255 * std::clamp(rect.busy, 0.0F, 1.0F));
    for (const int64_t number : {from - at, to - from, static_cast<int64_t>(rect.meaning), busy, int64_t{rect.count}}) bars.push_back(number);
    at = to;
  }
  return bars;
}

}  // namespace ws::app

#include "app/timeline/layer_blocks.h"

#include <algorithm>

#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

const prof::OpInfo* op_of(const prof::Trace& trace, const prof::Span& span) {
  if (span.op == prof::kNoOp || span.op >= trace.ops.size() || trace.ops[span.op].phase.empty()) return nullptr;
  return &trace.ops[span.op];
}

// The update goes over all layers at once, or over one after the other: it is one block in both cases.
LayerBlock block_of(const prof::OpInfo& op, const LayerGrouping& grouping) {
  const bool of_layer = !op.layer.empty() && op.phase != "update";
  const auto part = of_layer ? grouping.parts.find(op.layer) : grouping.parts.end();
  if (part != grouping.parts.end()) return {0, 0, part->second, op.phase, true};
  const std::string& name = of_layer ? op.layer : op.phase;
  return {0, 0, grouping.only ? std::string() : name, op.phase, false};
}

std::vector<const prof::Span*> spans_in(const prof::Trace& trace, const std::vector<size_t>& tracks, prof::TimeRange range, size_t most) {
  std::vector<const prof::Span*> spans;
  for (const size_t track : tracks)
    prof::each_span(trace.tracks()[track], range.begin, range.end, [&](const prof::Span& span) {
      if (spans.size() <= most) spans.push_back(&span);
    });
  if (tracks.size() > 1) std::ranges::stable_sort(spans, {}, [](const prof::Span* s) { return s->start; });
  return spans;
}

}  // namespace

std::vector<LayerBlock> layer_blocks(const prof::Trace& trace, const std::vector<size_t>& tracks, prof::TimeRange range,
                                     const LayerGrouping& grouping, size_t most) {
  const std::vector<const prof::Span*> spans = spans_in(trace, tracks, range, most);
  std::vector<LayerBlock> blocks;
  if (spans.size() > most) return blocks;
  uint32_t step = 0;
  for (const prof::Span* span : spans) {
    const prof::OpInfo* op = op_of(trace, *span);
    if (!op) continue;
    LayerBlock block = block_of(*op, grouping);
    const bool same = !blocks.empty() && blocks.back().name == block.name && blocks.back().phase == block.phase && step == span->step;
    step = span->step;
    block.start = span->start, block.end = span->end();
    if (same)
      blocks.back().end = std::max(blocks.back().end, block.end);
    else
      blocks.push_back(std::move(block));
  }
  std::erase_if(blocks, [](const LayerBlock& b) { return b.name.empty(); });
  return blocks;
}

bool has_layers(const prof::Trace& trace, const prof::Track& track) {
  if (track.blocks.empty()) return false;
  return std::ranges::any_of(track.blocks.back().spans, [&](const prof::Span& span) {
    const prof::OpInfo* op = op_of(trace, span);
    return op && !op->layer.empty();
  });
}

}  // namespace ws::app

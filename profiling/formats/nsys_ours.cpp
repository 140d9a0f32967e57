#include "profiling/formats/nsys_ours.h"

#include <algorithm>

#include "profiling/formats/nsys_rows.h"
#include "profiling/formats/nsys_sqlite.h"
#include "profiling/trace/batch_codec.h"

namespace ws::prof {

namespace {

constexpr int64_t kMostOps = 1 << 16;

}  // namespace

void OurSpans::read(Database& db) {
  read_in_ = true;
  NsysRows rows(db, kOurSteps, {"start", "place", "step", "end", "op"});
  while (rows.next()) {
    const int64_t op = rows.integer(4);
    spans_.push_back({{rows.integer(0), rows.integer(1)},
                      rows.integer(3),
                      step(rows.integer(2)),
                      op > 0 && op < kMostOps ? static_cast<OpTag>(op) : kNoOp});
  }
  std::ranges::stable_sort(spans_, {}, &Known::begun);
}

std::vector<OpInfo> OurSpans::read_ops(Database& db) {
  std::vector<OpInfo> ops(1);
  NsysRows rows(db, kOurOps, {"op", "name", "detail", "layer", "phase", "meaning", "flops", "bytes", "stack"});
  while (rows.next()) {
    const int64_t op = rows.integer(0);
    if (op <= 0 || op >= kMostOps) continue;
    ops.resize(std::max(ops.size(), static_cast<size_t>(op) + 1));
    OpInfo& info = ops[static_cast<size_t>(op)];
    info = {rows.text(1), rows.text(2), rows.text(3), rows.text(4),
            static_cast<Meaning>(std::clamp<int64_t>(rows.integer(5), 0, kMeanings - 1)), rows.integer(6), rows.integer(7)};
    if (const std::string_view stack = rows.blob(8); !stack.empty())
      info.stack = std::make_shared<const CodeStack>(decode_stack(stack));
  }
  ops_ = std::ssize(ops);
  for (Known& span : spans_)
    if (span.op >= ops.size()) span.op = kNoOp;
  return ops;
}

uint32_t OurSpans::step(int64_t number) { return number > 0 && number < 0xffffffff ? static_cast<uint32_t>(number) : 0; }

const OurSpans::Known& OurSpans::of(int64_t start, int64_t end, int64_t place) const {
  static const Known kUnknown;
  const std::pair begun{start, place};
  for (auto at = std::ranges::lower_bound(spans_, begun, {}, &Known::begun); at != spans_.end() && at->begun == begun; ++at)
    if (at->end == 0 || at->end == end) return *at;
  return kUnknown;
}

}  // namespace ws::prof

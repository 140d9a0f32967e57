// Inserts the syncs of the host into the plan as ops, so that users can see them.
#include "engine/passes/passes.h"

namespace ws {
namespace {

Op sync_after(const Op& op) {
  Op sync;
  sync.kind = OpKind::Sync;
  sync.phase = op.phase;
  sync.layer = op.layer;
  sync.name = "sync";
  return sync;
}

}  // namespace

Plan insert_sync(Plan plan, SyncPolicy policy) {
  if (policy == SyncPolicy::OnRead || plan.ops.empty()) {
    plan.log.emplace_back("No syncs added: the host waits where it reads a value.");
    return plan;
  }
  std::vector<Op> ops;
  for (const Op& op : plan.ops) {
    ops.push_back(op);
    if (policy == SyncPolicy::EveryOp && !is_bookkeeping(op.kind)) ops.push_back(sync_after(op));
  }
  if (policy == SyncPolicy::EveryStep) ops.push_back(sync_after(plan.ops.back()));
  const size_t syncs = ops.size() - plan.ops.size();
  plan.log.push_back(std::to_string(syncs) + (syncs == 1 ? " sync added." : " syncs added."));
  plan.ops = std::move(ops);
  return plan;
}

}  // namespace ws

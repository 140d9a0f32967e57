// Inserts the averages over the ranks into the plan. It runs before fusion, which then keeps every gradient stored.
#include <algorithm>
#include <map>

#include "engine/passes/passes.h"

namespace ws {
namespace {

// Gradients that one op averages; the op is inserted after the op at `after`.
struct Bucket {
  size_t after = 0;
  int layer = -1;
  int64_t bytes = 0;
  std::vector<BufferId> gradients;
};

bool makes(const Op& op, const std::vector<BufferId>& gradients) {
  return std::ranges::find_first_of(op.out, gradients) != op.out.end();
}

// Returns one bucket per layer, in the order in which the backward phase finishes the layers.
std::vector<Bucket> layer_buckets(const Plan& plan) {
  std::map<int, Bucket, std::greater<>> by_layer;
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::Update) continue;
    Bucket& bucket = by_layer[op.layer];
    const BufferId gradient = update_items(plan, op)[0].gradient;
    bucket.layer = op.layer;
    bucket.gradients.push_back(gradient);
    bucket.bytes += plan.buffer(gradient).bytes();
    for (size_t i = 0; i < plan.ops.size(); ++i)
      if (plan.ops[i].phase == Phase::Backward && std::ranges::count(plan.ops[i].out, gradient) > 0) bucket.after = std::max(bucket.after, i);
  }
  std::vector<Bucket> buckets;
  for (auto& [layer, bucket] : by_layer) buckets.push_back(std::move(bucket));
  std::ranges::stable_sort(buckets, {}, &Bucket::after);
  return buckets;
}

// If the first layer's gradients are many and the output layer's are few, the output layer's are made last: their
// product hides the long transfer. A transfer of less than kLongTransfer takes little longer than one of a few bytes.
constexpr int64_t kLongTransfer = 4 << 20, kMuchShorter = 16;
void hide_long_transfer(Plan& plan) {
  const std::vector<Bucket> layers = layer_buckets(plan);
  const Bucket &output = layers.front(), &last = layers.back();
  if (last.bytes < kLongTransfer || kMuchShorter * output.bytes > last.bytes) return;
  std::stable_partition(plan.ops.begin(), plan.ops.begin() + static_cast<std::ptrdiff_t>(last.after) + 1,
                        [&](const Op& op) { return !makes(op, output.gradients); });
  plan.log.push_back("The step makes the gradients of " +
                     plan.layer_names[static_cast<size_t>(output.layer)] +
                     " last: their product hides the transfer of " +
                     plan.layer_names[static_cast<size_t>(last.layer)] + ".");
}

std::vector<Bucket> join(std::vector<Bucket> layers, double least_bytes) {
  std::vector<Bucket> joined;
  for (Bucket& next : layers) {
    if (joined.empty() || static_cast<double>(joined.back().bytes) >= least_bytes) {
      joined.push_back(std::move(next));
      continue;
    }
    Bucket& last = joined.back();
    last.after = std::max(last.after, next.after);
    last.layer = -1;
    last.bytes += next.bytes;
    last.gradients.insert(last.gradients.end(), next.gradients.begin(), next.gradients.end());
  }
  return joined;
}

Op op_of(const Plan& plan, const Bucket& bucket, size_t number, size_t of) {
  Op op;
  op.kind = OpKind::AllReduce;
  op.phase = Phase::Backward;
  op.layer = bucket.layer;
  op.name = of == 1            ? "all-reduce"
            : bucket.layer < 0 ? "all-reduce " + std::to_string(number + 1)
                               : "all-reduce " + plan.layer_names[static_cast<size_t>(bucket.layer)];
  op.in = op.out = bucket.gradients;
  return op;
}

// The other updates overlap the late transfers.
void update_last(Plan& plan, const std::vector<BufferId>& gradients) {
  const auto early = [&](const Op& op) {
    return op.kind != OpKind::Update || std::ranges::count(gradients, update_items(plan, op)[0].gradient) == 0;
  };
  const auto first = std::ranges::find(plan.ops, OpKind::Update, &Op::kind);
  const auto end = std::find_if(first, plan.ops.end(), [](const Op& op) { return op.kind != OpKind::Update; });
  std::stable_partition(first, end, early);
}

}  // namespace

std::vector<BufferId> late_gradients(const Plan& plan) {
  std::vector<BufferId> late;
  if (plan.ranks == 1 || plan.spec.exec.comm != Comm::Overlap) return late;
  std::vector<BufferId> of_first_layer;
  for (const Op& op : plan.ops)
    if (op.phase == Phase::Backward && op.kind != OpKind::AllReduce && op.layer == 0)
      of_first_layer.insert(of_first_layer.end(), op.out.begin(), op.out.end());
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::AllReduce && (!late.empty() || makes(op, of_first_layer)))
      late.insert(late.end(), op.in.begin(), op.in.end());
  return late;
}

Plan insert_all_reduce(Plan plan) {
  if (plan.ranks == 1) return plan;
  const ExecSpec& exec = plan.spec.exec;
  const double least = exec.comm == Comm::Bucket ? 1e300 : exec.bucket_mib * (1 << 20);
  if (exec.comm == Comm::Overlap) hide_long_transfer(plan);
  const std::vector<Bucket> buckets = join(layer_buckets(plan), least);
  size_t gradients = 0;
  for (size_t i = buckets.size(); i-- > 0;) {
    gradients += buckets[i].gradients.size();
    plan.ops.insert(plan.ops.begin() + static_cast<std::ptrdiff_t>(buckets[i].after) + 1,
                    op_of(plan, buckets[i], i, buckets.size()));
  }
  if (exec.comm == Comm::Overlap) update_last(plan, late_gradients(plan));
  if (std::ranges::count(plan.ops, OpKind::BatchNorm, &Op::kind) > 0)
    plan.log.emplace_back("Batch norm takes the statistics of each rank's own rows.");
  plan.log.push_back("The step averages " + std::to_string(gradients) + " gradients over " +
                     std::to_string(plan.ranks) + " ranks in " + std::to_string(buckets.size()) +
                     (buckets.size() == 1 ? " transfer" : " transfers") +
                     ". They must be stored, so no update is fused with its gradient.");
  return plan;
}

}  // namespace ws

#include "engine/cuda/executor/stream_executor.h"

#include <algorithm>
#include <utility>

namespace ws::cuda {

void Workplace::create(const Model& model, const data::Dataset& data, const RunSpec& spec) {
  stream = make_stream();
  scratch = DeviceBlock<char>::filled(kScratchBytes);
  storage.create(model, moments_of(spec.train.optimizer));
  tables.create(data.task == data::Task::Classification);
  feed.load(stream, data, spec);
  CUDA_CHECK(cudaDeviceSynchronize());  // the zeroing above uses the default stream, and our streams do not wait for it
}

namespace {

// True for a transformer with products of the library: between them an overlapped launch costs more than it saves. On an
// H200, a step of 4 blocks 128 wide took 464 µs with overlap and 427 µs without. With our own products it takes 348 and 378.
bool runs_between_products(const Launching& with) {
  const Plan& plan = with.bound.plan;
  const bool attends = std::ranges::any_of(plan.ops, [](const Op& op) { return op.kind == OpKind::Attention; });
  return attends && std::ranges::any_of(plan.ops, [&](const Op& op) {
    return op.kind == OpKind::MatMul && engine_of(plan.spec.exec.matmul, product_of(with, op)) == Engine::Library;
  });
}

// Kernels may overlap in fused plans and graphs. In other plans they run one by one, so that users see each one.
bool overlaps(const Launching& with, bool capturing) {
  return runs_clusters() && (capturing || with.spec().exec.fusion != Fusion::Off) &&
         with.bound.plan.ranks == 1 &&  // with several ranks a kernel may depend on two streams
         !runs_between_products(with);
}

// True if products beside this transfer take longer than it does. Roughly: tensor cores do 1e14 FLOP in a second, NVLink
// carries 3e11 bytes.
bool products_are_longer(const Plan& plan, size_t transfer) {
  constexpr int64_t kFlopsOfByte = 300;
  int64_t beside = 0;
  for (size_t i = transfer + 1; i < plan.ops.size() && plan.ops[i].phase == Phase::Backward; ++i)
    beside += flops(plan, plan.ops[i]);
  return beside > kFlopsOfByte * bytes(plan, plan.ops[transfer]) / 2;  // each byte is read and written
}

}  // namespace

void RankAverages::start(cudaStream_t stream, const DevicePlan& bound, size_t at) {
  const Op& op = bound.plan.ops[at];
  std::vector<Gradient> gradients;
  for (BufferId id : op.in)
    gradients.push_back({static_cast<float*>(bound.address[index(id)]),
                         static_cast<size_t>(bound.plan.buffer(id).elements())});
  if (bound.plan.spec.exec.comm != Comm::Overlap)
    return link->average(stream, bound.plan.share(), gradients);
  if (!ready) {
    long_ones = make_urgent_stream(), short_ones = make_urgent_stream();
    ready = make_event(), begun = make_event();
  }
  const bool short_one = overtakes(bytes(bound.plan, op) / 2);
  const Stream& beside = short_one ? short_ones : long_ones;
  auto free = std::ranges::find(transfers, false, &Transfer::running);
  if (free == transfers.end()) free = transfers.insert(free, Transfer{make_event(), {}, false});
  CUDA_CHECK(cudaEventRecord(ready, stream));
  CUDA_CHECK(cudaStreamWaitEvent(beside, ready, 0));
  if (short_one) {
    // An update that comes first would keep it from the multiprocessors.
    link->average_beside(beside, bound.plan.share(), gradients, Beside::Average, begun);
    CUDA_CHECK(cudaStreamWaitEvent(stream, begun, 0));
  } else {
    link->average_beside(beside, bound.plan.share(), gradients,
                         products_are_longer(bound.plan, at) ? Beside::Products : Beside::Updates, nullptr);
  }
  CUDA_CHECK(cudaEventRecord(free->done, beside));
  free->gradients = op.in, free->running = true;
}

bool RankAverages::overtakes(int64_t bytes) const {
  constexpr int64_t kShort = 1 << 20;
  return bytes <= kShort && link->takes_two() && std::ranges::count(transfers, true, &Transfer::running) > 0;
}

void RankAverages::wait(cudaStream_t stream, const Op& op) {
  for (Transfer& transfer : transfers) {
    if (!transfer.running || std::ranges::find_first_of(transfer.gradients, op.in) == transfer.gradients.end()) continue;
    CUDA_CHECK(cudaStreamWaitEvent(stream, transfer.done, 0));
    transfer.running = false;
  }
}

void StreamExecutor::run(DevicePlan& bound, AllocatorStack& memory, int64_t first_step, int64_t row, int64_t steps) {
  StepTables& tables = place_.tables;
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t step_row = row + i * bound.rows_onward();
    // Ops find their step by the clock and an offset, so one write of the clock serves many consecutive steps.
    StepClock clock = tables.known_clock();
    const int64_t offset = first_step + i - clock.step;
    const bool straight = clock.step >= 0 && offset >= 0 && clock.row + offset * bound.rows_onward() == step_row;
    if (!straight) tables.set_clock({place_.stream.get()}, clock = {first_step + i, step_row});
    const prof::StepScope scope(first_step + i);
    const int slot = place_.feed.stage(bound, place_.stream, step_row);
    step(bound, memory, tables.at(first_step + i - clock.step), false);
    place_.feed.staged_step_enqueued(place_.stream, slot);
    tables.steps_enqueued(first_step + i + 1);
  }
}

void StreamExecutor::step(DevicePlan& bound, AllocatorStack& memory, StepAt at, bool capturing, int64_t steps) {
  Launching with{bound, {place_.stream.get()}, at, place_.blas, {place_.scratch.data()}, place_.storage, steps};
  with.queue.overlap = overlaps(with, capturing);
  PhaseWalk phases;
  try {
    for (size_t i = 0; i < bound.plan.ops.size(); ++i) {
      const Op& op = bound.plan.ops[i];
      phases.enter(op.phase);
      const prof::OpScope scope(bound.tags.of(i));
      if (is_bookkeeping(op.kind))
        bookkeeping(bound, memory, i, capturing);
      else if (op.kind == OpKind::LoadBatch)
        place_.feed.launch(with);
      else if (op.kind == OpKind::AllReduce)
        place_.ranks.start(place_.stream, bound, i);
      else {
        if (op.phase == Phase::Update) place_.ranks.wait(place_.stream, op);
        if (!bound.own.empty() && bound.own[i])
          launch_own(bound, i, at);
        else
          launch_op(with, i);
      }
    }
  } catch (...) {
    free_leftovers(bound, memory);
    throw;
  }
}

void StreamExecutor::launch_own(const DevicePlan& bound, size_t i, StepAt at) {
  std::vector<void*> addresses;
  for (const own::Operand& o : bound.own[i]->contract().operands) addresses.push_back(bound.address[index(o.buffer)]);
  bound.own[i]->launch(place_.stream, addresses, at);
}

void StreamExecutor::bookkeeping(DevicePlan& bound, AllocatorStack& memory, size_t i, bool capturing) {
  const Op& op = bound.plan.ops[i];
  const prof::OpTag tag = bound.tags.of(i);
  if (op.kind == OpKind::Sync) {
    if (!capturing) CUDA_CHECK(cudaStreamSynchronize(place_.stream));
    return;
  }
  for (BufferId id : op.kind == OpKind::Alloc ? op.out : op.in) {
    void*& address = bound.address[index(id)];
    const int64_t bytes = bound.plan.buffer(id).bytes();
    if (op.kind == OpKind::Alloc)
      address = memory.allocate(place_.stream, bytes, tag);
    else
      memory.deallocate(place_.stream, std::exchange(address, nullptr), bytes, tag);
  }
}

// Frees all memory of a step that failed half-way.
void StreamExecutor::free_leftovers(DevicePlan& bound, AllocatorStack& memory) noexcept {
  if (memory.kind() == Allocator::Arena) return;
  for (size_t i = 0; i < bound.address.size(); ++i) {
    const Buffer& buffer = bound.plan.buffers[i];
    if (!lives_in_step(buffer) || !bound.address[i]) continue;
    memory.deallocate(place_.stream, std::exchange(bound.address[i], nullptr), buffer.bytes(), prof::kNoOp);
  }
}

}  // namespace ws::cuda

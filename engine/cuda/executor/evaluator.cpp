#include "engine/cuda/executor/evaluator.h"

#include <algorithm>

#include "engine/passes/compile.h"
#include "engine/cuda/executor/advice.h"

namespace ws::cuda {
namespace {

constexpr int64_t kUnit = 64;                     // rows: every batch then begins at a 256-byte boundary
constexpr int64_t kMostBytes = int64_t{1} << 30;  // for intermediates

RunSpec evaluation_spec(RunSpec spec) {
  spec.exec.allocator = Allocator::Arena;
  spec.exec.sync = SyncPolicy::OnRead;
  spec.exec.launch = Launch::Eager;
  return spec;
}

bool is_loss(OpKind kind) { return kind == OpKind::CrossEntropy || kind == OpKind::SquaredError; }

}  // namespace

int64_t Evaluator::batch_for(const RunSpec& spec, int64_t rows) {
  int64_t batch = std::min(rows, most_rows_);
  while (batch > kUnit && compile_evaluation(evaluation_spec(spec), model_, batch).plan.arena_bytes > kMostBytes)
    batch = round_up(batch / 2, kUnit);
  return batch;
}

// Frees the memory of a failed attempt, so that the next attempt can use it.
void Evaluator::release() noexcept {
  plans_.clear();
  arena_ = {}, staging_ = {};
}

template <class Work>
auto Evaluator::in_batches(const RunSpec& spec, int64_t rows, Work&& work) {
  for (;;) {
    const int64_t batch = batch_for(spec, rows);
    try {
      return work(batch);
    } catch (const OutOfMemory& problem) {
      CUDA_CHECK(cudaStreamSynchronize(place_.stream));  // wait, so that running work does not lose its memory
      release();
      if (batch <= kUnit) throw OutOfMemory(problem.call, problem.code, advice_for_evaluation(spec, model_, batch));
      most_rows_ = round_up(batch / 2, kUnit);
    }
  }
}

DevicePlan& Evaluator::bound(const RunSpec& spec, int64_t rows) {
  DevicePlan& made = plans_[rows];
  if (made.plan.ops.empty()) {
    made.plan = compile_evaluation(evaluation_spec(spec), model_, rows).plan;
    made.tags = OpTags(made.plan);
    const Op& load = made.plan.ops.front();
    made.x = load.out[0], made.y = load.out[1];
    made.feed = Feed::Whole;
    made.address.assign(made.plan.buffers.size(), nullptr);
  }
  const auto x_bytes = static_cast<size_t>(round_up(made.plan.buffer(made.x).bytes(), kAlignment));
  const size_t need = static_cast<size_t>(round_up(made.plan.arena_bytes, kAlignment)) + x_bytes;
  if (arena_.bytes() < need) arena_ = {}, arena_ = DeviceBlock<char>::device(need);
  for (size_t i = 0; i < made.plan.buffers.size(); ++i) {
    const Buffer& b = made.plan.buffers[i];
    if (b.role == Role::Parameter) made.address[i] = place_.storage.parameter(b.param);
    if (b.role == Role::Shadow) made.address[i] = place_.storage.shadow(b.param);
    if (b.role == Role::Temp) made.address[i] = arena_.data() + x_bytes + b.offset;
  }
  return made;
}

void Evaluator::place_x(DevicePlan& plan, const Rows& rows) {
  const Buffer& x = plan.plan.buffer(plan.x);
  const float* source = rows.device;
  const auto bytes = static_cast<size_t>(x.elements()) * sizeof(float);
  if (!source) {
    if (staging_.bytes() < bytes) staging_ = {}, staging_ = DeviceBlock<char>::device(bytes);
    CUDA_CHECK(cudaMemcpyAsync(staging_.data(), rows.host, bytes, cudaMemcpyHostToDevice, place_.stream));
    source = reinterpret_cast<const float*>(staging_.data());
  }
  void*& address = plan.address[index(plan.x)];
  address = const_cast<float*>(source);
  if (x.type == DType::F32) return;
  address = arena_.data();
  convert({place_.stream.get()}, Tensor{const_cast<float*>(source), DType::F32, x.rows, x.cols},
          Tensor{address, x.type, x.rows, x.cols});
}

// Runs the ops up to the loss.
Evaluator::Output Evaluator::forward(DevicePlan& plan, const Rows& rows) {
  const Launching with{plan,           {place_.stream.get()}, place_.tables.at(0), place_.blas, {place_.scratch.data()},
                       place_.storage};
  PhaseWalk phases;
  for (size_t i = 0; i < plan.plan.ops.size(); ++i) {
    const Op& op = plan.plan.ops[i];
    if (is_loss(op.kind)) return {with.tensor(op.in[0]), plan.tags.of(i)};
    if (is_bookkeeping(op.kind)) continue;
    phases.enter(op.phase);
    const prof::OpScope scope(plan.tags.of(i));
    op.kind == OpKind::LoadBatch ? place_x(plan, rows) : launch_op(with, i);
  }
  throw Failure("The evaluation plan has no loss.");
}

Evaluation Evaluator::evaluate(const RunSpec& spec, Part part, RankRows wanted) {
  const RankRows rows = whole(wanted, (part == Part::Test ? data_.test : data_.train).rows);
  if (rows.count == 0) return {0, std::nan(""), 0};
  return in_batches(spec, rows.count, [&](int64_t batch) { return evaluate_in(spec, part, rows, batch); });
}

Evaluation Evaluator::evaluate_in(const RunSpec& spec, Part part, RankRows rows, int64_t batch) {
  const data::Split& split = part == Part::Test ? data_.test : data_.train;
  const bool classes = data_.task == data::Task::Classification;
  const prof::StepScope step_scope(-1);
  if (!sums_) sums_ = DeviceBlock<double>::device(3);
  const cudaStream_t stream = place_.stream;
  CUDA_CHECK(cudaMemsetAsync(sums_.data(), 0, sums_.bytes(), stream));
  const int64_t row_y = place_.feed.row_bytes_y();
  DeviceBlock<char> y_copy;
  const char* y_all = place_.feed.resident_y(part);
  if (!y_all) {
    y_copy = DeviceBlock<char>::device(static_cast<size_t>(split.rows * row_y));
    const void* host = classes ? static_cast<const void*>(split.labels.data()) : split.targets.data();
    CUDA_CHECK(cudaMemcpyAsync(y_copy.data(), host, y_copy.bytes(), cudaMemcpyHostToDevice, stream));
    y_all = y_copy.data();
  }
  const int64_t end = rows.first + rows.count;
  for (int64_t first = rows.first; first < end; first += batch) {
    const int64_t count = std::min(batch, end - first);
    DevicePlan& plan = bound(spec, count);
    const float* device = place_.feed.resident_x(part);
    const Output out = forward(
        plan, {split.x.data() + first * model_.inputs, device ? device + first * model_.inputs : nullptr, count});
    Tensor y{const_cast<char*>(y_all) + first * row_y, classes ? DType::I32 : DType::F32, count,
             place_.feed.targets()};
    const prof::OpScope scope(out.loss);
    evaluate_loss({stream}, {place_.scratch.data()}, spec.model.loss, out.z, y, sums_.data());
  }
  double host[3];
  CUDA_CHECK(cudaMemcpyAsync(host, sums_.data(), sizeof host, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  return {host[0] / host[2], classes ? host[1] / host[2] : std::nan(""), rows.count};
}

std::vector<float> Evaluator::predict(const RunSpec& spec, std::span<const float> x, int64_t rows) {
  std::vector<float> out(static_cast<size_t>(rows * model_.predictions * model_.outputs));
  if (rows > 0) in_batches(spec, rows, [&](int64_t batch) { predict_in(spec, x, batch, out); });
  return out;
}

void Evaluator::predict_in(const RunSpec& spec, std::span<const float> x, int64_t batch, std::vector<float>& out) {
  const int64_t row = model_.predictions * model_.outputs, rows = static_cast<int64_t>(out.size()) / row;
  for (int64_t first = 0; first < rows; first += batch) {
    const int64_t count = std::min(batch, rows - first);
    const Tensor z = forward(bound(spec, count), {x.data() + first * model_.inputs, nullptr, count}).z;
    CUDA_CHECK(cudaMemcpyAsync(out.data() + first * row, z.data,
                               static_cast<size_t>(z.elements()) * sizeof(float), cudaMemcpyDeviceToHost,
                               place_.stream));
  }
  CUDA_CHECK(cudaStreamSynchronize(place_.stream));
}

}  // namespace ws::cuda

#include "engine/cuda/executor/persistent_executor.h"

#include <algorithm>
#include <cmath>

#include "engine/cuda/executor/cuda_executor.h"
#include "engine/cuda/persistent/kernel_source.h"

namespace ws::cuda {
namespace {

using persistent::Arguments;
using persistent::Placement;

static_assert(sizeof(persistent::ScaleState) == sizeof(LossScale));

prof::OpTag launch_tag() {
  static const prof::OpTag tag =
      prof::register_ops({{"steps", "one kernel runs all ops of many steps", "", "all phases", prof::Meaning::Matrix}});
  return tag;
}

}  // namespace

std::atomic<int> PersistentExecutor::lose_message_at{-1};
std::atomic<double> PersistentExecutor::seconds_to_wait{1};

void PersistentExecutor::bind(DevicePlan& bound, bool only_if_fastest) {
  static const DeviceInfo device = query_device();
  const persistent::Limits limits = persistent::limits_of(device);
  bound.all_rows = bound.rows() >= data_.train.rows;
  bound.feed = Feed::Whole;
  persistent::Network network = persistent::network_of(bound.plan.spec, bound.plan, data_.train.rows);
  if (network.all_rows && network.precision == Precision::Tf32) find_input_range(network);
  Bound made{persistent::place(network, limits), nullptr, nullptr};
  if (made.placement.residency == persistent::Residency::None) throw Failure(made.placement.why_not);
  if (only_if_fastest && !made.placement.why_slow.empty()) throw Failure(made.placement.why_slow);
  auto& kernel = kernels_[persistent::kernel_source(made.placement)];
  if (!kernel) kernel = std::make_shared<persistent::CompiledKernel>(made.placement, limits.compute);
  made.kernel = kernel;
  made.parts = StepParts(bound.plan, made.placement);
  make_buffers(made.placement);
  made.rows = rows_for(made, network.precision);
  if (prof::StampBoard::instance().wanted() > 0) kernel_of(made, true);  // compile now, not between two steps
  bound.notes.assign(bound.plan.ops.size(), {});
  if (!bound.notes.empty()) {
    std::string& note = bound.notes.front();
    note = "in one kernel with all other ops: " + persistent::summary(made.placement) + "; " +
           std::to_string(kernel->registers()) + " registers per thread" +
           (kernel->local_bytes() > 32 ? ", " + std::to_string(kernel->local_bytes()) + " bytes in local memory" : "");
  }
  bound_[bound.plan.id] = std::move(made);
}

// Rows in fp16 are scaled by the largest of their values.
void PersistentExecutor::find_input_range(persistent::Network& network) {
  if (largest_input_ < 0) {
    const auto inputs = static_cast<size_t>(data_.features);
    std::vector<float> largest(inputs);
    for (size_t at = 0; at + inputs <= data_.train.x.size(); at += inputs)
      for (size_t i = 0; i < inputs; ++i) largest[i] = std::max(largest[i], std::abs(data_.train.x[at + i]));
    largest_input_ = smallest_input_ = 0;
    for (const float size : largest) {
      largest_input_ = std::max(largest_input_, size);
      if (size > 0 && (smallest_input_ == 0 || size < smallest_input_)) smallest_input_ = size;
    }
  }
  network.largest_input = largest_input_, network.smallest_input = smallest_input_;
}

const void* PersistentExecutor::rows_for(const Bound& bound, Precision precision) {
  const persistent::Placement& placement = bound.placement;
  const int64_t row_bytes = placement.row_bytes, group = placement.row_group;
  if (row_bytes == 0) return place_.feed.resident_x(Part::Train);
  for (const PreparedRows& p : prepared_)
    if (p.precision == precision && p.residency == placement.residency && p.row_bytes == row_bytes) return p.bytes.data();
  const int64_t rows = (data_.train.rows + group - 1) / group * group;
  PreparedRows made{precision, placement.residency, row_bytes,
                    DeviceBlock<char>::device(static_cast<size_t>(row_bytes * rows))};
  bound.kernel->prepare_rows(place_.stream, place_.feed.resident_x(Part::Train), made.bytes.data(), data_.train.rows);
  prepared_.push_back(std::move(made));
  return prepared_.back().bytes.data();
}

void PersistentExecutor::make_buffers(const Placement& placement) {
  if (static_cast<size_t>(placement.exchange_bytes) > exchange_.bytes()) {
    CUDA_CHECK(cudaStreamSynchronize(place_.stream));
    exchange_ = DeviceBlock<char>::filled(static_cast<size_t>(placement.exchange_bytes));
  }
  const auto partials = static_cast<size_t>(placement.most_steps * placement.blocks * 2);
  if (partials > partials_.size()) {
    CUDA_CHECK(cudaStreamSynchronize(place_.stream));
    partials_ = DeviceBlock<float>::filled(partials);
  }
  if (fault_) return;
  fault_ = PinnedBlock<persistent::FaultReport>::pinned(1);
  fault_[0] = {};
}

Arguments PersistentExecutor::arguments(const DevicePlan& bound, const Bound& found) const {
  Arguments a{};
  a.rows = found.rows;
  a.targets = place_.feed.resident_y(Part::Train);
  a.order = bound.all_rows ? nullptr : static_cast<const unsigned*>(place_.feed.order_address());
  const int moments = moments_of(bound.plan.spec.train.optimizer);
  for (size_t i = 0; i < model_.parameters.size(); ++i) {
    const Parameter& p = model_.parameters[i];
    const auto id = static_cast<ParamId>(i);
    persistent::LayerState& layer = a.layers[p.layer];
    (p.is_bias ? layer.b : layer.w) = place_.storage.parameter(id);
    if (moments > 0) (p.is_bias ? layer.b_m : layer.w_m) = place_.storage.moment(0, id);
    if (moments > 1) (p.is_bias ? layer.b_v : layer.w_v) = place_.storage.moment(1, id);
  }
  const StepAt at = place_.tables.at(0);
  a.rates = at.lr, a.metrics = at.metrics, a.ring = at.capacity;
  a.partials = partials_.data();
  a.exchange = exchange_.data();
  a.scale = reinterpret_cast<persistent::ScaleState*>(place_.storage.scale());
  a.fault = fault_.data();
  a.rows_onward = bound.rows_onward();
  a.limit = static_cast<unsigned long long>(2e9 * seconds_to_wait.load());
  a.lose_message_at = lose_message_at.load();
  a.batch = static_cast<int>(bound.rows());
  const TrainSpec& t = bound.plan.spec.train;
  a.momentum = static_cast<float>(t.momentum);
  a.beta1 = static_cast<float>(t.beta1), a.beta2 = static_cast<float>(t.beta2);
  a.epsilon = static_cast<float>(t.epsilon);
  a.weight_decay = static_cast<float>(t.weight_decay);
  return a;
}

// Returns the kernel for the next launch: the one with stamps if the profiler wants stamps.
const persistent::CompiledKernel& PersistentExecutor::kernel_of(Bound& found, bool stamped) {
  if (!stamped) return *found.kernel;
  auto& kernel = kernels_[persistent::kernel_source(found.placement, true)];
  if (!kernel) kernel = std::make_shared<persistent::CompiledKernel>(found.placement, found.kernel->compute(), true);
  return *kernel;
}

void PersistentExecutor::run(const DevicePlan& bound, int64_t first_step, int64_t row, int64_t steps) {
  check_fault();
  Bound& found = bound_.at(bound.plan.id);
  const int64_t wanted = prof::StampBoard::instance().wanted();
  const persistent::CompiledKernel& stamping = kernel_of(found, wanted > 0);
  // Data of another plan in the exchange buffer could look like a message. So could an old message once step numbers
  // repeat.
  constexpr unsigned kMostExchanged = 1u << 31;
  if (exchange_ && (exchanging_ != bound.plan.id || exchanged_ > kMostExchanged)) {
    CUDA_CHECK(cudaMemsetAsync(exchange_.data(), 0, exchange_.bytes(), place_.stream));
    exchanged_ = 0;
  }
  exchanging_ = bound.plan.id;
  Arguments a = arguments(bound, found);
  // Stamps cost registers even if they are not written. A separate launch for them leaves the other steps unchanged.
  bool stamps = wanted > 0;
  for (int64_t done = 0; done < steps; stamps = wanted > 0 && !stamps) {
    const int64_t most = stamps ? std::min(wanted, found.placement.most_steps) : found.placement.most_steps,
                  count = std::min(most, steps - done);
    a.first_step = first_step + done;
    a.first_row = row + done * bound.rows_onward();
    a.steps = static_cast<int>(count);
    a.exchange_base = exchanged_;
    exchanged_ += static_cast<unsigned>(count);
    if (auto* listener = prof::listener()) listener->steps_launched(first_step + done, count);
    const prof::StepScope step(first_step + done);
    const prof::OpScope op(launch_tag());
    if (stamps) stamps_.prepare(found.parts, count, a);
    (stamps ? stamping : *found.kernel).launch(place_.stream, &a);
    if (stamps) stamps_.launched(place_.stream, launch_tag(), first_step + done);
    done += count;
    place_.tables.steps_enqueued(first_step + done);
  }
  place_.storage.refresh_shadows({place_.stream.get()});  // tests read the shadows
}

void PersistentExecutor::check_fault() {
  stamps_.collect();
  if (!fault_ || fault_[0].code == 0) return;
  CUDA_CHECK(cudaStreamSynchronize(place_.stream));
  const persistent::FaultReport report = fault_[0];
  fault_[0] = {};
  exchanging_.clear();  // some messages of this launch were never written
  throw Failure("The persistent kernel stopped itself: block " + std::to_string(report.block) + " waited too long for " +
                persistent::waited_for(report.code) + " in step " + std::to_string(report.step) +
                " of its launch. The weights are those before this launch. Choose launch graph, and report this.");
}

int64_t PersistentExecutor::bytes() const {
  size_t sum = partials_.bytes() + exchange_.bytes() + static_cast<size_t>(stamps_.bytes());
  for (const PreparedRows& p : prepared_) sum += p.bytes.bytes();
  return static_cast<int64_t>(sum);
}

}  // namespace ws::cuda

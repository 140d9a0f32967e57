#include "engine/cuda/executor/data_feed.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/cuda/memory/resource.h"
#include "profiling/annotate/annotate.h"

namespace ws::cuda {
namespace {

constexpr int64_t kFixedGraphs = 8;  // maximum number of graphs per epoch that may each contain their own row addresses

const void* targets_of(const data::Split& split, bool classes) {
  return classes ? static_cast<const void*>(split.labels.data()) : split.targets.data();
}

// True if the data set is an unchanged synthetic line: the GPU can then generate it itself, with the same bits.
bool is_made_up_line(const data::Dataset& data, const data::DataSpec& spec) {
  return data.name == "line" && spec.name == "line" && spec.limit == 0 &&
         data.train.rows + data.test.rows == spec.points;
}

}  // namespace

void DataFeed::load(cudaStream_t stream, const data::Dataset& data, const RunSpec& spec) {
  data_ = &data;
  rows_ = data.train.rows;
  loader_ = spec.exec.loader;
  classes_ = data.task == data::Task::Classification;
  copies_ = make_stream();
  order_sent_ = make_event();
  if (loader_ != Loader::Resident) return;
  if (is_made_up_line(data, spec.data)) {
    train_ = make_points(stream, data.train.rows, 0, spec.data);
    test_ = make_points(stream, data.test.rows, data.train.rows, spec.data);
  } else {
    train_ = upload(data.train);
    test_ = upload(data.test);
  }
}

DataFeed::Resident DataFeed::upload(const data::Split& split) const {
  Resident made{DeviceBlock<float>::device(static_cast<size_t>(split.rows * data_->features)),
                DeviceBlock<char>::device(static_cast<size_t>(split.rows * row_bytes_y()))};
  if (split.rows == 0) return made;
  CUDA_CHECK(cudaMemcpy(made.x.data(), split.x.data(), made.x.bytes(), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(made.y.data(), targets_of(split, classes_), made.y.bytes(), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaStreamSynchronize(nullptr));  // a copy from pageable memory may return before its last bytes arrive
  return made;
}

DataFeed::Resident DataFeed::make_points(cudaStream_t stream, int64_t rows, int64_t first,
                                         const data::DataSpec& spec) const {
  Resident made{DeviceBlock<float>::device(static_cast<size_t>(rows)),
                DeviceBlock<char>::device(static_cast<size_t>(4 * rows))};
  if (rows > 0) fill_line({stream}, made.x.data(), reinterpret_cast<float*>(made.y.data()), rows, first, spec);
  return made;
}

void DataFeed::order(cudaStream_t stream, std::span<const uint32_t> order) {
  in_order_ = true;
  rows_ = static_cast<int64_t>(order.size());
  for (size_t i = 0; i < order.size() && in_order_; ++i) in_order_ = order[i] == i;
  shuffled_ = false;
  if (loader_ != Loader::Resident) {
    order_.assign(order.begin(), order.end());
    return;
  }
  if (in_order_) return;
  if (!pinned_order_) {
    pinned_order_ = PinnedBlock<uint32_t>::pinned(order.size());
    device_order_ = DeviceBlock<uint32_t>::device(order.size());
  }
  if (order_in_flight_) CUDA_CHECK(cudaEventSynchronize(order_sent_));
  std::copy(order.begin(), order.end(), pinned_order_.data());
  CUDA_CHECK(cudaMemcpyAsync(device_order_.data(), pinned_order_.data(), pinned_order_.bytes(), cudaMemcpyHostToDevice,
                             stream));
  CUDA_CHECK(cudaEventRecord(order_sent_, stream));
  order_in_flight_ = true;
}

void DataFeed::attach(DevicePlan& bound, bool views) {
  const Buffer &x = bound.plan.buffer(bound.x), &y = bound.plan.buffer(bound.y);
  const int64_t rows = data_->train.rows, batch = bound.plan.step_rows;
  const bool aligned = (x.cols * size_of(x.type)) % 16 == 0 || views;
  const int64_t launches = (rows / batch) / std::max<int64_t>(1, bound.plan.spec.exec.graph_steps) + 1;
  bound.all_rows = batch >= rows;
  if (loader_ != Loader::Resident) {
    bound.feed = Feed::Staged;
    if (x.type != DType::F32) bound.own_x = DeviceBlock<char>::device(static_cast<size_t>(x.bytes()));
    return;
  }
  if (bound.all_rows)
    bound.feed = Feed::Whole;
  else if (!bound.launches_graphs())
    bound.feed = aligned ? Feed::View : Feed::Gather;
  else
    bound.feed = views ? Feed::Clock : aligned && launches <= kFixedGraphs ? Feed::View : Feed::Gather;
  const bool moves = bound.plan.ranks > 1 || (bound.plan.spec.train.shuffle && batch < rows);
  if (bound.feed != Feed::Gather && moves && !make_shuffled(x.type))
    bound.feed = Feed::Gather;  // not enough memory for a second set
  if (bound.feed != Feed::Gather) return;
  bound.own_x = DeviceBlock<char>::device(static_cast<size_t>(x.bytes()));
  bound.own_y = DeviceBlock<char>::device(static_cast<size_t>(y.bytes()));
}

bool DataFeed::make_shuffled(DType type) {
  if (shuffled_type_ == type) return true;
  shuffled_type_.reset();  // if the allocation fails, the old memory is gone too
  try {
    shuffled_x_ = {};
    shuffled_x_ = DeviceBlock<char>::device(static_cast<size_t>(data_->train.rows * data_->features * size_of(type)));
    if (!shuffled_y_) shuffled_y_ = DeviceBlock<char>::device(train_.y.bytes());
  } catch (const OutOfMemory&) {
    return false;
  }
  shuffled_type_ = type;
  shuffled_ = false;
  return true;
}

void DataFeed::shuffle(Queue queue, DType type) {
  if (shuffled_) return;
  if (!make_shuffled(type))
    throw OutOfMemory("cudaMalloc", "cudaErrorMemoryAllocation", "the shuffled data set does not fit");
  static const prof::OpTag tag =
      prof::register_ops({{"shuffle", "puts the rows of an epoch into their order", "", "input", prof::Meaning::Copy}});
  const prof::OpScope scope(tag);
  const uint32_t* order = in_order_ ? nullptr : device_order_.data();
  const StepAt from_the_first{};
  Tensor x = all_x(type, shuffled_x_.data()), y = all_y(shuffled_y_.data());
  x.rows = y.rows = rows_;
  gather_rows(queue, all_x(DType::F32, train_.x.data()), order, 0, from_the_first, x);
  gather_rows(queue, all_y(train_.y.data()), order, 0, from_the_first, y);
  shuffled_ = true;
}

// Returns a complete slot or throws. A slot with device memory but no host memory would look usable.
DataFeed::Slot DataFeed::make_slot(size_t bytes) const {
  Slot slot;
  slot.device = DeviceBlock<char>::device(bytes);
  if (loader_ == Loader::Pinned) slot.host = PinnedBlock<char>::pinned(bytes);
  slot.copied = make_event();
  slot.consumed = make_event();
  return slot;
}

int DataFeed::stage(DevicePlan& bound, cudaStream_t stream, int64_t row) {
  const Buffer& x = bound.plan.buffer(bound.x);
  if (bound.feed == Feed::Gather) {
    bound.address[index(bound.x)] = bound.own_x.data();
    bound.address[index(bound.y)] = bound.own_y.data();
    return -1;
  }
  if (bound.feed != Feed::Staged) {
    const bool as_it_lies = x.type == DType::F32 && in_order_;
    if (!as_it_lies) shuffle({stream}, x.type);
    char* all_rows_x = as_it_lies ? reinterpret_cast<char*>(train_.x.data()) : shuffled_x_.data();
    char* all_rows_y = as_it_lies ? train_.y.data() : shuffled_y_.data();
    const int64_t first = bound.feed == Feed::View ? row : 0;
    bound.address[index(bound.x)] = all_rows_x + first * x.cols * size_of(x.type);
    bound.address[index(bound.y)] = all_rows_y + first * row_bytes_y();
    return -1;
  }
  const int number = loader_ == Loader::Pinned ? std::exchange(next_slot_, 1 - next_slot_) : 0;
  Slot& slot = slots_[static_cast<size_t>(number)];
  if (const auto bytes = static_cast<size_t>(staged_bytes(bound.rows())); slot.device.size() < bytes) {
    CUDA_CHECK(cudaStreamSynchronize(stream));  // for a larger plan: the old slot may still be read
    slot = {};
    slot = make_slot(bytes);
  }
  if (loader_ == Loader::Pageable) pageable_.resize(slot.device.size());
  if (slot.used && loader_ == Loader::Pinned) CUDA_CHECK(cudaEventSynchronize(slot.copied));
  char* host = loader_ == Loader::Pinned ? slot.host.data() : pageable_.data();
  gather_on_host(host, row, bound.rows());
  send(slot, stream, host, bound.rows());
  bound.address[index(bound.x)] = x.type == DType::F32 ? slot.device.data() : bound.own_x.data();
  bound.address[index(bound.y)] = slot.device.data() + round_up(bound.rows() * row_bytes_x(), kAlignment);
  return number;
}

void DataFeed::gather_on_host(char* out, int64_t row, int64_t rows) const {
  const data::Split& split = data_->train;
  const auto x_bytes = static_cast<size_t>(row_bytes_x()), y_bytes = static_cast<size_t>(row_bytes_y());
  const char* y = static_cast<const char*>(targets_of(split, classes_));
  char* out_y = out + round_up(rows * row_bytes_x(), kAlignment);
  for (int64_t r = 0; r < rows; ++r) {
    const size_t from = order_.empty() ? static_cast<size_t>(row + r) : order_[static_cast<size_t>(row + r)];
    std::memcpy(out + static_cast<size_t>(r) * x_bytes, split.x.data() + from * static_cast<size_t>(data_->features),
                x_bytes);
    std::memcpy(out_y + static_cast<size_t>(r) * y_bytes, y + from * y_bytes, y_bytes);
  }
}

void DataFeed::send(Slot& slot, cudaStream_t stream, const char* host, int64_t rows) {
  const auto bytes = static_cast<size_t>(staged_bytes(rows));
  if (loader_ == Loader::Pageable) {
    CUDA_CHECK(cudaMemcpyAsync(slot.device.data(), host, bytes, cudaMemcpyHostToDevice, stream));
    return;
  }
  if (slot.used) CUDA_CHECK(cudaStreamWaitEvent(copies_, slot.consumed, 0));
  CUDA_CHECK(cudaMemcpyAsync(slot.device.data(), host, bytes, cudaMemcpyHostToDevice, copies_));
  CUDA_CHECK(cudaEventRecord(slot.copied, copies_));
  CUDA_CHECK(cudaStreamWaitEvent(stream, slot.copied, 0));
  slot.used = true;
}

void DataFeed::staged_step_enqueued(cudaStream_t stream, int slot) {
  if (slot >= 0 && loader_ == Loader::Pinned)
    CUDA_CHECK(cudaEventRecord(slots_[static_cast<size_t>(slot)].consumed, stream));
}

void DataFeed::launch(const Launching& with) {
  DevicePlan& bound = with.bound;
  const Tensor x = with.tensor(bound.x), y = with.tensor(bound.y);
  if (bound.feed == Feed::Staged && x.type != DType::F32) {
    const char* staged = static_cast<const char*>(y.data) - round_up(x.rows * row_bytes_x(), kAlignment);
    convert(with.queue, Tensor{const_cast<char*>(staged), DType::F32, x.rows, x.cols}, x);
  }
  if (bound.feed != Feed::Gather) return;
  const uint32_t* order = in_order_ ? nullptr : device_order_.data();
  gather_rows(with.queue, all_x(DType::F32, train_.x.data()), order, 0, with.at, x);
  gather_rows(with.queue, all_y(train_.y.data()), order, 0, with.at, y);
}

int64_t DataFeed::bytes() const {
  size_t sum = train_.x.bytes() + train_.y.bytes() + test_.x.bytes() + test_.y.bytes() + shuffled_x_.bytes() +
               shuffled_y_.bytes() + device_order_.bytes();
  for (const Slot& slot : slots_) sum += slot.device.bytes();
  return static_cast<int64_t>(sum);
}

}  // namespace ws::cuda

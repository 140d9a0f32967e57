// Brings the rows of each batch to the GPU with one of three loaders.
//
// Resident: the data set is on the GPU. Each epoch shuffles all of it at once, so a batch is a view.
// Pinned: the host gathers rows in page-locked memory. A second stream copies them while the GPU trains on the previous
// batch.
// Pageable: the host gathers rows and copies them on the training stream, as simple programs do.
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "datasets/dataset.h"
#include "engine/cuda/executor/device_plan.h"
#include "engine/cuda/executor/dispatch.h"
#include "engine/cuda/memory/resource.h"
#include "engine/executor/executor.h"

namespace ws::cuda {

class DataFeed {
 public:
  void load(cudaStream_t stream, const data::Dataset& data, const RunSpec& spec);
  void order(cudaStream_t stream, std::span<const uint32_t> order);

  // Chooses how the plan gets its rows and allocates memory for its batch buffers. `views`: every reader can find its
  // rows by the device clock.
  void attach(DevicePlan& bound, bool views);

  // Call before a step, or a graph of steps, that begins at `row`. Prepares what differs between steps and sets the
  // addresses of x and y. Returns the staging slot, or -1 if there is none.
  int stage(DevicePlan& bound, cudaStream_t stream, int64_t row);
  // Runs the LoadBatch op: launches a kernel, or nothing if the rows are a view.
  void launch(const Launching& with);
  void staged_step_enqueued(cudaStream_t stream, int slot);  // frees the slot when the stream reaches this point

  // The address of the order that a captured graph contains.
  const void* order_address() const { return in_order_ ? nullptr : device_order_.data(); }

  // The rows of a part of the data set on the GPU; null if the loader keeps them on the host.
  const float* resident_x(Part part) const { return rows_of(part).x.data(); }
  const char* resident_y(Part part) const { return rows_of(part).y.data(); }
  // Targets of a row: a text has one for each symbol.
  int64_t targets() const { return !classes_ ? data_->outputs : std::max<int64_t>(1, data_->context); }
  int64_t row_bytes_y() const { return targets() * 4; }
  int64_t bytes() const;

 private:
  struct Slot {
    PinnedBlock<char> host;  // x, then y
    DeviceBlock<char> device;
    Event copied, consumed;
    bool used = false;
  };
  struct Resident {
    DeviceBlock<float> x;
    DeviceBlock<char> y;
  };
  Resident upload(const data::Split& split) const;
  Resident make_points(cudaStream_t stream, int64_t rows, int64_t first, const data::DataSpec& spec) const;
  const Resident& rows_of(Part part) const { return part == Part::Test ? test_ : train_; }
  void shuffle(Queue queue, DType type);
  bool make_shuffled(DType type);
  Slot make_slot(size_t bytes) const;
  void gather_on_host(char* out, int64_t row, int64_t rows) const;
  void send(Slot& slot, cudaStream_t stream, const char* host, int64_t rows);
  int64_t row_bytes_x() const { return data_->features * 4; }
  int64_t staged_bytes(int64_t rows) const { return round_up(rows * row_bytes_x(), kAlignment) + rows * row_bytes_y(); }
  Tensor all_x(DType type, void* data) const { return {data, type, data_->train.rows, data_->features}; }
  Tensor all_y(void* data) const {
    return {data, classes_ ? DType::I32 : DType::F32, data_->train.rows, targets()};
  }

  const data::Dataset* data_ = nullptr;
  bool classes_ = true;
  Loader loader_ = Loader::Resident;

  Resident train_, test_;
  std::vector<uint32_t> order_;
  int64_t rows_ = 0;       // length of order_: the rows that this rank uses
  bool in_order_ = true;  // the order is 0, 1, 2...

  DeviceBlock<uint32_t> device_order_;
  PinnedBlock<uint32_t> pinned_order_;
  Event order_sent_;
  bool order_in_flight_ = false;
  DeviceBlock<char> shuffled_x_, shuffled_y_;
  std::optional<DType> shuffled_type_;  // of shuffled_x_; empty: it has no memory
  bool shuffled_ = false;               // true if the shuffled set has the current order

  Stream copies_;
  std::array<Slot, 2> slots_;
  int next_slot_ = 0;
  std::vector<char> pageable_;
};

}  // namespace ws::cuda

// Brings the rows of each batch to the GPU, by one of three loaders.
//
// Resident: the set is on the GPU and each epoch's order is applied to all of it at once, so that a batch is a view.
// Pinned: the host gathers into page-locked memory and a second stream copies while the GPU trains on the batch before.
// Pageable: the host gathers and copies in the stream's way, as naive programs do.
#pragma once
#include <array>
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

  // Chooses how the plan gets its rows and gives its batch buffers what memory they need. `views`: every reader can
  // find its rows by the clock.
  void attach(DevicePlan& bound, bool views);

  // Before a step, or a graph of steps, that begins at `row`: everything that is not the same in every step. Sets the
  // addresses of x and y. Returns the staging slot, -1 without one.
  int stage(DevicePlan& bound, cudaStream_t stream, int64_t row);
  // The LoadBatch op itself: a kernel, or nothing where the rows are a view.
  void launch(const Launching& with);
  void staged_step_enqueued(cudaStream_t stream, int slot);  // the slot is free again when the stream gets here

  // What of the order is baked into a captured graph.
  const void* order_address() const { return in_order_ ? nullptr : device_order_.data(); }

  // The rows of a split on the GPU as they lie there; null where the loader keeps them on the host.
  const float* resident_x(Part part) const { return rows_of(part).x.data(); }
  const char* resident_y(Part part) const { return rows_of(part).y.data(); }
  int64_t row_bytes_y() const { return classes_ ? 4 : data_->outputs * 4; }
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
    return {data, classes_ ? DType::I32 : DType::F32, data_->train.rows, classes_ ? 1 : data_->outputs};
  }

  const data::Dataset* data_ = nullptr;
  bool classes_ = true;
  Loader loader_ = Loader::Resident;

  Resident train_, test_;
  std::vector<uint32_t> order_;
  int64_t rows_ = 0;       // of the order: those that this rank sees
  bool in_order_ = true;  // the order is 0, 1, 2...

  DeviceBlock<uint32_t> device_order_;
  PinnedBlock<uint32_t> pinned_order_;
  Event order_sent_;
  bool order_in_flight_ = false;
  DeviceBlock<char> shuffled_x_, shuffled_y_;
  DType shuffled_type_ = DType::I32;  // I32: nothing is there yet
  bool shuffled_ = false;             // the shuffled set has the order of now

  Stream copies_;
  std::array<Slot, 2> slots_;
  int next_slot_ = 0;
  std::vector<char> pageable_;
};

}  // namespace ws::cuda

// Runs the network forward over many rows in large batches, between two training steps. It uses memory of its own.
#pragma once
#include <map>

#include "engine/cuda/executor/stream_executor.h"

namespace ws::cuda {

class Evaluator {
 public:
  Evaluator(Workplace& place, const Model& model, const data::Dataset& data)
      : place_(place), model_(model), data_(data) {}

  // Uses smaller batches if training leaves too little memory. Throws if even 64 rows do not fit.
  Evaluation evaluate(const RunSpec& spec, Part part, RankRows rows);
  std::vector<float> predict(const RunSpec& spec, std::span<const float> x, int64_t rows);
  int64_t bytes() const { return static_cast<int64_t>(arena_.bytes() + staging_.bytes()); }
  void forget() { plans_.clear(); most_rows_ = kMostRows; }  // call when choices changed that the plans depend on

 private:
  struct Rows {
    const float* host = nullptr;  // features; either host or device is set
    const float* device = nullptr;
    int64_t count = 0;
  };
  static constexpr int64_t kMostRows = 16384;
  Evaluation evaluate_in(const RunSpec& spec, Part part, RankRows rows, int64_t batch);
  void predict_in(const RunSpec& spec, std::span<const float> x, int64_t batch, std::vector<float>& out);
  template <class Work>
  auto in_batches(const RunSpec& spec, int64_t rows, Work&& work);
  void release() noexcept;
  int64_t batch_for(const RunSpec& spec, int64_t rows);
  DevicePlan& bound(const RunSpec& spec, int64_t rows);
  struct Output {
    Tensor z;
    prof::OpTag loss = prof::kNoOp;
  };
  Output forward(DevicePlan& plan, const Rows& rows);
  void place_x(DevicePlan& plan, const Rows& rows);

  Workplace& place_;
  const Model& model_;
  const data::Dataset& data_;
  std::map<int64_t, DevicePlan> plans_;  // by rows
  DeviceBlock<char> arena_, staging_;
  DeviceBlock<double> sums_;
  int64_t most_rows_ = kMostRows;  // reduced after memory was short
};

}  // namespace ws::cuda

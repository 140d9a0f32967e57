// The arguments of both kernels of an output layer: one with a block per row, one with two rows per warp for large
// batches.
#pragma once
#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {

// Small, because every launch copies it.
struct OutputArguments {
  const void *h, *w, *bias, *y, *saved;
  void *dz, *dz_before;
  float *dw, *db, *db_before;
  const LossScale* scale;
  const StepClock* clock;  // the clock of h or y
  int64_t h_row, y_row;    // row offsets from the clock's row; h_row < 0: h is not a view
  int64_t rows;
  int in, out;
  DType type, bias_type, y_type, saved_type, dz_type;
  Activation activation;
  LossKind loss;
  bool y_is_view, join_later, w_is_settled;
  StepAt at;
  Scratch scratch;
};

// True if the batch is large and the layer small enough that a warp can hold its weights in registers.
bool fits_many_rows(const OutputArguments& a);
void output_layer_of_many_rows(Queue queue, const OutputArguments& a);

}  // namespace ws::cuda

// What both kernels of an output layer take: one block a row, and two rows a warp for large batches.
#pragma once
#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {

// Small, since every launch copies it.
struct OutputArguments {
  const void *h, *w, *bias, *y, *saved;
  void *dz, *dz_before;
  float *dw, *db, *db_before;
  const LossScale* scale;
  const StepClock* clock;  // of h or y
  int64_t h_row, y_row;    // rows from the clock's; h_row < 0: h is no view
  int64_t rows;
  int in, out;
  DType type, bias_type, y_type, saved_type, dz_type;
  Activation activation;
  LossKind loss;
  bool y_is_view, join_later;
  StepAt at;
  Scratch scratch;
};

// Whether the batch is large and the layer small enough for a warp to hold its weights in registers.
bool fits_many_rows(const OutputArguments& a);
void output_layer_of_many_rows(Queue queue, const OutputArguments& a);

}  // namespace ws::cuda

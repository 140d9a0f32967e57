// Device memory for what survives a step: master weights, 16-bit shadows, optimizer moments and the fp16 loss scale.
#pragma once
#include <vector>

#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/executor/executor.h"

namespace ws::cuda {

class Storage {
 public:
  void create(const Model& model, int moments);
  void set(cudaStream_t stream, const TrainState& state);
  void get(cudaStream_t stream, TrainState& state) const;  // waits for the stream

  float* parameter(ParamId id) const { return at(0, id); }
  float* moment(int slot, ParamId id) const { return at(1 + slot, id); }
  void* shadow(ParamId id) const { return shadows_.data() + 2 * offsets_[index(id)]; }
  LossScale* scale() const { return scale_.data(); }

  // A step that updates the masters also updates their shadows. After any other change the shadows must be written
  // again.
  void need_shadows(DType type);
  void refresh_shadows(Queue queue);
  int64_t bytes() const;

 private:
  float* at(int group, ParamId id) const { return values_.data() + group * total_ + offsets_[index(id)]; }
  void copy_group(cudaStream_t stream, int group, std::vector<std::vector<float>>& host, bool to_host) const;

  std::vector<int64_t> offsets_, elements_;  // by ParamId
  int64_t total_ = 0;                        // elements per group, alignment included
  int moments_ = 0;
  DeviceBlock<float> values_;  // masters, then one group per moment
  DeviceBlock<char> shadows_;
  DType shadow_type_ = DType::F32;
  DeviceBlock<LossScale> scale_;
};

}  // namespace ws::cuda

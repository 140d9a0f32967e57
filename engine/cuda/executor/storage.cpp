#include "engine/cuda/executor/storage.h"

#include "engine/cuda/memory/resource.h"

namespace ws::cuda {

void Storage::create(const Model& model, int moments) {
  moments_ = moments;
  for (const Parameter& p : model.parameters) {
    offsets_.push_back(total_);
    elements_.push_back(p.elements());
    total_ += round_up(p.elements(), kAlignment / 2);  // also aligns the 16-bit shadows
  }
  values_ = DeviceBlock<float>::filled(static_cast<size_t>(total_ * (1 + moments_)));
  scale_ = DeviceBlock<LossScale>::device(1);
}

void Storage::copy_group(cudaStream_t stream, int group, std::vector<std::vector<float>>& host, bool to_host) const {
  for (size_t i = 0; i < elements_.size(); ++i) {
    if (to_host) host[i].resize(static_cast<size_t>(elements_[i]));
    float* device = at(group, static_cast<ParamId>(i));
    const size_t size = host[i].size() * sizeof(float);
    if (to_host)
      CUDA_CHECK(cudaMemcpyAsync(host[i].data(), device, size, cudaMemcpyDeviceToHost, stream));
    else
      CUDA_CHECK(cudaMemcpyAsync(device, host[i].data(), size, cudaMemcpyHostToDevice, stream));
  }
}

void Storage::set(cudaStream_t stream, const TrainState& state) {
  if (state.parameters.size() != elements_.size()) throw Failure("The state holds other parameters than this model.");
  TrainState copy = state;
  copy_group(stream, 0, copy.parameters, false);
  for (int slot = 0; slot < moments_; ++slot)
    if (copy.moments[slot].size() == elements_.size()) copy_group(stream, 1 + slot, copy.moments[slot], false);
  const auto scale = static_cast<float>(state.loss_scale);
  const LossScale host{scale, 1.f / scale, static_cast<int32_t>(state.good_steps), 0, 0};
  CUDA_CHECK(cudaMemcpyAsync(scale_.data(), &host, sizeof host, cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  refresh_shadows({stream});
}

void Storage::get(cudaStream_t stream, TrainState& state) const {
  state.parameters.resize(elements_.size());
  copy_group(stream, 0, state.parameters, true);
  for (int slot = 0; slot < moments_; ++slot) {
    state.moments[slot].resize(elements_.size());
    copy_group(stream, 1 + slot, state.moments[slot], true);
  }
  LossScale host;
  CUDA_CHECK(cudaMemcpyAsync(&host, scale_.data(), sizeof host, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  state.loss_scale = static_cast<double>(host.scale);
  state.good_steps = host.good_steps;
}

void Storage::need_shadows(DType type) {
  if (type == DType::F32) return;
  if (!shadows_) shadows_ = DeviceBlock<char>::device(static_cast<size_t>(2 * total_));
  shadow_type_ = type;
}

void Storage::refresh_shadows(Queue queue) {
  if (!shadows_) return;
  for (size_t i = 0; i < elements_.size(); ++i) {
    const auto id = static_cast<ParamId>(i);
    convert(queue, Tensor{parameter(id), DType::F32, 1, elements_[i]},
            Tensor{shadow(id), shadow_type_, 1, elements_[i]});
  }
}

int64_t Storage::bytes() const { return static_cast<int64_t>(values_.bytes() + shadows_.bytes() + scale_.bytes()); }

}  // namespace ws::cuda

// Eight adjacent elements as they lie in memory. A kernel that knows the type requests many of them before it waits for
// the first; with load_some, each is converted, and waited for, at once.
#pragma once
#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {

struct AnyType {};  // elements of any type and alignment: converted at once

template <class T>
struct Eight {
  uint4 words[sizeof(T) / 2];
  Eight() = default;
  __device__ __forceinline__ Eight(Ref r, int64_t i, int) {
    const auto* from = reinterpret_cast<const uint4*>(r.data + i * static_cast<int64_t>(sizeof(T)));
#pragma unroll
    for (size_t j = 0; j < sizeof(T) / 2; ++j) words[j] = from[j];
  }
  __device__ __forceinline__ Pack<8> floats() const {
    Pack<8> out;
    const auto* from = reinterpret_cast<const T*>(words);
#pragma unroll
    for (int j = 0; j < 8; ++j) out.v[j] = static_cast<float>(from[j]);
    return out;
  }
  __device__ static __forceinline__ void store(Ref r, int64_t i, const Pack<8>& v, int) {
    Eight out;
    auto* to = reinterpret_cast<T*>(out.words);
#pragma unroll
    for (int j = 0; j < 8; ++j) to[j] = static_cast<T>(v.v[j]);
    auto* at = reinterpret_cast<uint4*>(r.data + i * static_cast<int64_t>(sizeof(T)));
#pragma unroll
    for (size_t j = 0; j < sizeof(T) / 2; ++j) at[j] = out.words[j];
  }
};

template <>
struct Eight<AnyType> {
  Pack<8> values;
  Eight() = default;
  __device__ __forceinline__ Eight(Ref r, int64_t i, int count) : values(load_some<8>(r, i, count, false)) {}
  __device__ __forceinline__ Pack<8> floats() const { return values; }
  __device__ static __forceinline__ void store(Ref r, int64_t i, const Pack<8>& v, int count) {
    store_some<8>(r, i, v, count, false);
  }
};

// With relu known, eight elements take eight instructions; in general each needs a choice.
template <class F>
__device__ __forceinline__ Pack<8> by_activation(Activation kind, const Pack<8>& in, F f) {
  Pack<8> out;
  if (kind == Activation::Relu) {
#pragma unroll
    for (int j = 0; j < 8; ++j) out.v[j] = f(Activation::Relu, in.v[j]);
  } else {
#pragma unroll
    for (int j = 0; j < 8; ++j) out.v[j] = f(kind, in.v[j]);
  }
  return out;
}
__device__ __forceinline__ Pack<8> activated(Activation kind, const Pack<8>& z) {
  if (kind == Activation::None) return z;
  return by_activation(kind, z, [](Activation k, float v) { return activated(k, v); });
}
__device__ __forceinline__ Pack<8> activation_slope(Activation kind, const Pack<8>& saved) {
  return by_activation(kind, saved, [](Activation k, float v) { return activation_slope(k, v); });
}

// True if rows of c elements can be read in packs of eight. An empty tensor can.
inline bool rows_of_packs(const Tensor& t, int64_t c) { return packs(Tensor{t.data, t.type, 1, c}, 8); }

// Calls f(T{}) with the type that all tensors have; with AnyType if they differ or their rows of c do not allow packs.
template <class F>
void with_type(int64_t c, std::initializer_list<Tensor> tensors, F f) {
  const DType type = tensors.begin()->type;
  const bool alike = std::ranges::all_of(
      tensors, [&](const Tensor& t) { return !t || (t.type == type && rows_of_packs(t, c)); });
  if (!alike) return f(AnyType{});
  if (type == DType::F32) return f(float{});
  type == DType::F16 ? f(__half{}) : f(__nv_bfloat16{});
}

}  // namespace ws::cuda

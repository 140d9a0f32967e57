// The laboratory's matrix products against cublasGemmEx with the same operands, call by call in turn.
//   lab_product_times [largest size]   prints JSON; exit code 1 where a product is more than 5 % slower.
#include <cublas_v2.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/workloads/product.h"
#include "engine/devices/devices.h"
#include "engine/executor/executor.h"
#include "engine/workloads/workload.h"

namespace {

using namespace ws;
using cuda::DeviceBlock;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 9;
constexpr double kBatchSeconds = 2e-3, kSlower = 1.05;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Kind {
  const char* name;
  Precision precision;
  DType type;
  cudaDataType_t library_type;
  cublasComputeType_t compute;
};
constexpr Kind kKinds[] = {{"gpu", Precision::Fp32, DType::F32, CUDA_R_32F, CUBLAS_COMPUTE_32F},
                           {"gpu-tf32", Precision::Tf32, DType::F32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
                           {"gpu-fp16", Precision::Fp16, DType::F16, CUDA_R_16F, CUBLAS_COMPUTE_32F}};

struct Operands {
  DeviceBlock<float> a, b, c;
  DeviceBlock<char> half_a, half_b;
  explicit Operands(int64_t n) {
    const lab::Inputs inputs = lab::make_inputs({}, n);
    const auto count = static_cast<size_t>(n * n);
    for (auto* block : {&a, &b, &c}) *block = DeviceBlock<float>::device(count);
    CUDA_CHECK(cudaMemcpy(a.data(), inputs.a.data(), a.bytes(), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(b.data(), inputs.b.data(), b.bytes(), cudaMemcpyHostToDevice));
    half_a = halved(a, n), half_b = halved(b, n);
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  static DeviceBlock<char> halved(const DeviceBlock<float>& from, int64_t n) {
    auto to = DeviceBlock<char>::device(from.size() * 2);
    cuda::convert(cuda::Queue(), {from.data(), DType::F32, n, n}, {to.data(), DType::F16, n, n});
    return to;
  }
};

template <class Call>
double host_time(cudaStream_t stream, const Call& call) {
  const auto begin = Clock::now();
  call();
  CUDA_CHECK(cudaStreamSynchronize(stream));
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

template <class Call>
double batch_time(cudaStream_t stream, const cuda::Event& begin, const cuda::Event& end, int calls, const Call& call) {
  CUDA_CHECK(cudaEventRecord(begin, stream));
  for (int i = 0; i < calls; ++i) call();
  CUDA_CHECK(cudaEventRecord(end, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  float ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
  return static_cast<double>(ms) * 1e-3 / calls;
}

template <class Ours, class Theirs>
nlohmann::json compare(cudaStream_t stream, const Ours& ours, const Theirs& theirs) {
  cuda::Event begin, end;
  CUDA_CHECK(cudaEventCreate(begin.out()));
  CUDA_CHECK(cudaEventCreate(end.out()));
  for (int i = 0; i < 3; ++i) host_time(stream, ours), host_time(stream, theirs);
  const double once = host_time(stream, theirs);
  const int calls = std::clamp(static_cast<int>(kBatchSeconds / once), 1, 200), singles = once > 0.05 ? 5 : 41;
  std::vector<double> own_batch, its_batch, own_host, its_host;
  for (int round = 0; round < kRounds && (round < 5 || once < 0.05); ++round) {
    own_batch.push_back(batch_time(stream, begin, end, calls, ours));
    its_batch.push_back(batch_time(stream, begin, end, calls, theirs));
  }
  for (int i = 0; i < singles; ++i) {
    own_host.push_back(host_time(stream, ours));
    its_host.push_back(host_time(stream, theirs));
  }
  return {{"ours_s", median(own_batch)},
          {"cublas_s", median(its_batch)},
          {"ours_call_s", median(own_host)},
          {"cublas_call_s", median(its_host)}};
}

nlohmann::json measure(cublasHandle_t handle, cudaStream_t stream, const Kind& kind, int64_t n, const Operands& o) {
  const bool half = kind.type == DType::F16;
  const void *a = half ? static_cast<const void*>(o.half_a.data()) : o.a.data(),
             *b = half ? static_cast<const void*>(o.half_b.data()) : o.b.data();
  cuda::Product product;
  product.precision = kind.precision;
  product.a = {const_cast<void*>(a), kind.type, n, n};
  product.b = {const_cast<void*>(b), kind.type, n, n};
  product.c = {o.c.data(), kind.type, n, n};
  const cuda::lab::FastestProduct ours(product, true);
  const float one = 1, zero = 0;
  const int side = static_cast<int>(n);
  const auto theirs = [&] {
    CUBLAS_CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one, b, kind.library_type, side, a,
                              kind.library_type, side, &zero, o.c.data(), kind.library_type, side, kind.compute,
                              CUBLAS_GEMM_DEFAULT));
  };
  nlohmann::json point = compare(
      stream, [&] { ours.launch(stream); }, theirs);
  point["way"] = kind.name;
  point["size"] = n;
  point["choice"] = ours.describe();
  return point;
}

}  // namespace

int main(int argc, char** argv) {
  if (!device_info().cuda) {
    std::fprintf(stderr, "%s\n", device_info().why_not.c_str());
    return 0;
  }
  const int64_t largest = argc > 1 ? std::atoll(argv[1]) : 16384;
  const cuda::Stream stream = cuda::make_stream();
  cublasHandle_t handle = nullptr;
  CUBLAS_CHECK(cublasCreate(&handle));
  CUBLAS_CHECK(cublasSetStream(handle, stream));
  nlohmann::json points = nlohmann::json::array();
  int slower = 0;
  for (int64_t n = 1; n <= largest; n *= 2) {
    const Operands operands(n);
    for (const Kind& kind : kKinds) {
      points.push_back(measure(handle, stream, kind, n, operands));
      const double ratio = points.back()["ours_s"].get<double>() / points.back()["cublas_s"].get<double>();
      slower += ratio > kSlower ? 1 : 0;
      std::fprintf(stderr, "%6lld %-9s %.3f of cuBLAS, %s\n", static_cast<long long>(n), kind.name, ratio,
                   points.back()["choice"].get<std::string>().c_str());
    }
  }
  cublasDestroy(handle);
  std::printf("%s\n", nlohmann::json{{"device", device_info().name}, {"points", points}}.dump(1).c_str());
  return slower > 0 ? 1 : 0;
}

#include "engine/cuda/executor/own_kernel_bench.h"

#include <algorithm>
#include <utility>

#include "engine/cuda/runtime/nvrtc.h"

namespace ws::cuda {
namespace {

// The median of 21 stretches of 20 launches; of a slow kernel, fewer launches.
constexpr int kTimes = 21, kEach = 20;
constexpr double kSlowUs = 1000;

// Bytes before and behind a buffer: a multiple of every alignment.
size_t guard_of(size_t bytes) { return std::clamp<size_t>((bytes + 4095) / 4096 * 4096, 4096, 1 << 20); }

bool all_are(const own::Bytes& bytes, unsigned char value) {
  return std::ranges::all_of(bytes, [&](char c) { return c == static_cast<char>(value); });
}

own::Bytes download(const char* from, size_t count) {
  own::Bytes host(count);
  CUDA_CHECK(cudaMemcpy(host.data(), from, count, cudaMemcpyDeviceToHost));
  return host;
}

// Fills all shared memory of the block. One such block fits into a multiprocessor.
constexpr const char* kFiller =
    "extern \"C\" __global__ void fill(unsigned value, int words) {\n"
    "  extern __shared__ unsigned content[];\n  for (int i = threadIdx.x; i < words; i += blockDim.x) content[i] = value;\n"
    "  __syncthreads();\n  if (content[(threadIdx.x * 7919) % words] != value) __trap();\n}\n"
    "extern \"C\" __global__ void nothing() {}\n";

}  // namespace

GuardedKernel::GuardedKernel(const own::KernelContract& contract, const OwnKernelSource& source, OnLaunch on_launch)
    : kernel_(contract, source), on_launch_(std::move(on_launch)) {
  for (const own::Operand& o : contract.operands) {
    const auto bytes = static_cast<size_t>(o.elements() * size_of(o.type));
    blocks_.push_back(DeviceBlock<char>::filled(bytes + 2 * guard_of(bytes), 0));
  }
  kernel_.take_all_shared_memory();
  const int compute = 10 * device_attribute(cudaDevAttrComputeCapabilityMajor) + device_attribute(cudaDevAttrComputeCapabilityMinor);
  const std::vector<char> code = compile_to_cubin(kFiller, "fill.cu", {"--gpu-architecture=sm_" + std::to_string(compute)}, "the check's own kernel");
  CUDA_CHECK(cudaLibraryLoadData(helpers_.out(), code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUDA_CHECK(cudaLibraryGetKernel(&fill_, helpers_, "fill"));
  CUDA_CHECK(cudaLibraryGetKernel(&nothing_, helpers_, "nothing"));
}

char* GuardedKernel::address(size_t operand) const {
  const own::Operand& o = contract().operands[operand];
  return blocks_[operand].data() + guard_of(static_cast<size_t>(o.elements() * size_of(o.type)));
}

OwnKernelBench::OwnKernelBench(const Plan& plan, const Model& model, const data::Dataset& data, size_t op, const OwnKernelSource& source, double rate,
                               OnLaunch on_launch)
    : GuardedKernel(own::contract_of(plan, op), source, std::move(on_launch)), op_(op), clock_(DeviceBlock<StepClock>::filled(1, 0)),
      rate_(DeviceBlock<float>::filled(1, 0)), sums_(DeviceBlock<float>::filled(4, 0)) {
  const auto given = static_cast<float>(rate);
  CUDA_CHECK(cudaMemcpy(rate_.data(), &given, sizeof given, cudaMemcpyHostToDevice));
  place_.create(model, data, plan.spec);
  bound_.plan = plan;
  bound_.address.assign(plan.buffers.size(), nullptr);
  for (const Op& each : plan.ops) bound_.items.push_back(each.kind == OpKind::Update || each.kind == OpKind::UpdateAll ? update_items(plan, each) : std::vector<UpdateItem>{});
  for (size_t i = 0; i < contract().operands.size(); ++i) bound_.address[index(contract().operands[i].buffer)] = address(i);
  if (plan.ops[op].kind == OpKind::MatMul) prepare(place_.blas, plan.spec.exec.matmul, product_of(launching(), plan.ops[op]));
}

Launching OwnKernelBench::launching() { return {bound_, {stream_.get()}, at(), place_.blas, {place_.scratch.data()}, place_.storage, 1, true}; }

void GuardedKernel::place_operands(const std::vector<own::Bytes>& operands, unsigned char guard) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const size_t bytes = operands[i].size();
    CUDA_CHECK(cudaMemset(blocks_[i].data(), guard, bytes + 2 * guard_of(bytes)));
    CUDA_CHECK(cudaMemcpy(blocks_[i].data() + guard_of(bytes), operands[i].data(), bytes, cudaMemcpyHostToDevice));
  }
}

void GuardedKernel::fill_shared_memory(unsigned char with) {
  const int bytes = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  CUDA_CHECK(cudaFuncSetAttribute(fill_, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  unsigned value = 0x01010101u * with;
  int words = bytes / 4;
  void* arguments[] = {&value, &words};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(2 * device_attribute(cudaDevAttrMultiProcessorCount)));
  config.blockDim = dim3(1024);
  config.dynamicSmemBytes = static_cast<size_t>(bytes);
  config.stream = stream_;
  CUDA_CHECK(cudaLaunchKernelExC(&config, fill_, arguments));
}

void GuardedKernel::launch_own() {
  std::vector<void*> addresses;
  for (size_t i = 0; i < blocks_.size(); ++i) addresses.push_back(address(i));
  kernel_.launch(stream_, addresses, at());
}

own::LaunchResult GuardedKernel::launch(const std::vector<own::Bytes>& operands, const own::LaunchState& state) {
  place_operands(operands, state.guard);
  fill_shared_memory(state.scratch);
  CUDA_CHECK(cudaDeviceSynchronize());
  report(true);
  launch_own();
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  report(false);
  own::LaunchResult result;
  for (size_t i = 0; i < operands.size(); ++i) {
    const size_t bytes = operands[i].size(), guard = guard_of(bytes);
    result.operands.push_back(download(blocks_[i].data() + guard, bytes));
    result.guards_hold.push_back(all_are(download(blocks_[i].data(), guard), state.guard) &&
                                 all_are(download(blocks_[i].data() + guard + bytes, guard), state.guard));
  }
  return result;
}

std::vector<own::Bytes> OwnKernelBench::built_in(const std::vector<own::Bytes>& operands) {
  place_operands(operands, 0);
  launch_op(launching(), op_);
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  std::vector<own::Bytes> results;
  for (size_t i = 0; i < operands.size(); ++i) results.push_back(download(address(i), operands[i].size()));
  return results;
}

double OwnKernelBench::own_us() {
  return time([this] { launch_own(); });
}
double OwnKernelBench::built_in_us() {
  return time([this] { launch_op(launching(), op_); });
}

double OwnKernelBench::empty_us() {
  return time([this] {
    cudaLaunchConfig_t config{};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = stream_;
    CUDA_CHECK(cudaLaunchKernelExC(&config, nothing_, nullptr));
  });
}

double OwnKernelBench::time(const std::function<void()>& launch) {
  const double first = time(launch, 1, 1);
  return first < kSlowUs ? time(launch, kEach, kTimes) : time(launch, 1, 3);
}

// In a graph, where the host does not delay a launch.
double OwnKernelBench::time(const std::function<void()>& launch, int each, int times) {
  Handle<cudaGraph_t, cudaGraphDestroy> graph;
  GraphExec exec;
  CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < each; ++i) launch();
  CUDA_CHECK(cudaStreamEndCapture(stream_, graph.out()));
  CUDA_CHECK(cudaGraphInstantiate(exec.out(), graph, 0));
  std::vector<double> us;
  const Event begin = make_timed_event(), end = make_timed_event();
  for (int i = 0; i < times; ++i) {
    report(true);
    CUDA_CHECK(cudaEventRecord(begin, stream_));
    CUDA_CHECK(cudaGraphLaunch(exec, stream_));
    CUDA_CHECK(cudaEventRecord(end, stream_));
    CUDA_CHECK(cudaEventSynchronize(end));
    report(false);
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    us.push_back(1000.0 * static_cast<double>(ms) / each);
  }
  std::ranges::nth_element(us, us.begin() + times / 2);
  return us[static_cast<size_t>(times / 2)];
}

}  // namespace ws::cuda

#include "engine/cuda/executor/own_kernel_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "engine/cuda/executor/own_kernel.h"
#include "engine/cuda/executor/stream_executor.h"
#include "profiling/base/failure.h"

namespace ws::cuda {
namespace {

constexpr size_t kGuard = 4096;            // bytes before and behind a buffer
constexpr int kGuardByte = 0xC5, kPoison = 0xFF;  // 0xFF: not a number in every floating-point type
constexpr int kRepeats = 3, kTimes = 21;

// A buffer between two stretches that nobody may write.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes) : bytes_(bytes), block_(DeviceBlock<char>::filled(bytes + 2 * kGuard, kGuardByte)) {}
  void* data() const { return block_.data() + kGuard; }
  void poison() { CUDA_CHECK(cudaMemset(data(), kPoison, bytes_)); }
  void upload(const std::vector<char>& host) { CUDA_CHECK(cudaMemcpy(data(), host.data(), bytes_, cudaMemcpyHostToDevice)); }
  std::vector<char> download() const { return part(kGuard, bytes_); }
  bool guards_hold() const {
    const auto whole = [](const std::vector<char>& bytes) {
      return std::ranges::all_of(bytes, [](char c) { return c == static_cast<char>(kGuardByte); });
    };
    return whole(part(0, kGuard)) && whole(part(kGuard + bytes_, kGuard));
  }

 private:
  std::vector<char> part(size_t from, size_t count) const {
    std::vector<char> host(count);
    CUDA_CHECK(cudaMemcpy(host.data(), block_.data() + from, count, cudaMemcpyDeviceToHost));
    return host;
  }
  size_t bytes_;
  DeviceBlock<char> block_;
};

float half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 0    ? std::ldexp(static_cast<float>(fraction), -24)
                     : exponent == 31 ? (fraction ? NAN : INFINITY)
                                      : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

double value_at(const std::vector<char>& bytes, DType type, int64_t i) {
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof value, sizeof value);
    return value;
  };
  if (type == DType::F32) return static_cast<double>(read(0.f));
  if (type == DType::I32) return read(int32_t{});
  const uint16_t bits = read(uint16_t{});
  if (type == DType::F16) return static_cast<double>(half_value(bits));
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return static_cast<double>(value);
}

// Values that both types of 16 bits hold exactly: multiples of 1/64.
void put(std::vector<char>& bytes, DType type, int64_t i, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  char* to = bytes.data() + i * size_of(type);
  if (type == DType::F32) std::memcpy(to, &value, 4);
  if (type == DType::Bf16) {
    const auto upper = static_cast<uint16_t>(bits >> 16);
    std::memcpy(to, &upper, 2);
  }
  if (type != DType::F16) return;
  const int exponent = static_cast<int>(bits >> 23 & 255) - 127 + 15;
  const auto half = static_cast<uint16_t>(value == 0 ? 0 : (bits >> 16 & 0x8000) | static_cast<uint32_t>(exponent) << 10 | (bits >> 13 & 1023));
  std::memcpy(to, &half, 2);
}

class Check {
 public:
  Check(const Plan& plan, const Model& model, const data::Dataset& data, size_t op, const OwnKernelSource& source)
      : op_(op), kernel_(own::contract_of(plan, op), source) {
    place_.create(model, data, plan.spec);
    bound_.plan = plan;
    bound_.address.assign(plan.buffers.size(), nullptr);
    for (const own::Operand& o : contract().operands) {
      operands_.emplace_back(static_cast<size_t>(o.elements() * size_of(o.type)));
      bound_.address[index(o.buffer)] = operands_.back().data();
    }
    if (plan.ops[op].kind == OpKind::MatMul)
      prepare(place_.blas, plan.spec.exec.matmul, product_of(launching(), plan.ops[op]));
  }

  OwnKernelVerdict run() {
    OwnKernelVerdict verdict;
    verdict.registers = kernel_.registers(), verdict.occupancy = kernel_.occupancy();
    verdict.bytes = static_cast<double>(bytes(bound_.plan, bound_.plan.ops[op_]));
    verdict.flops = static_cast<double>(flops(bound_.plan, bound_.plan.ops[op_]));
    fill_inputs();
    const auto expected = results([&] { launch_op(launching(), op_); });
    const auto own = results([&] { launch_own(); });
    find_memory_fault(verdict);
    if (verdict.good()) compare(own, expected, verdict);
    for (int i = 1; i < kRepeats && verdict.good(); ++i) same_bits(results([&] { launch_own(); }), own, verdict);
    if (!verdict.good()) return verdict;
    verdict.own_us = time([&] { launch_own(); });
    verdict.built_in_us = time([&] { launch_op(launching(), op_); });
    return verdict;
  }

 private:
  const own::KernelContract& contract() const { return kernel_.contract(); }
  Launching launching() {
    return {bound_, {place_.stream.get()}, place_.tables.at(0), place_.blas, {place_.scratch.data()}, place_.storage};
  }

  void launch_own() {
    std::vector<void*> addresses;
    for (const GuardedBuffer& operand : operands_) addresses.push_back(operand.data());
    kernel_.launch(place_.stream, addresses);
  }

  void fill_inputs() {
    std::mt19937 random(7);
    std::uniform_int_distribution<int> value(-96, 96);
    const int64_t classes = contract().operands.back().cols;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const own::Operand& o = contract().operands[i];
      std::vector<char> host(static_cast<size_t>(o.elements() * size_of(o.type)));
      for (int64_t at = 0; at < o.elements(); ++at)
        if (const int v = value(random); o.type == DType::I32) {
          const auto label = static_cast<int32_t>((v + 96) % std::max<int64_t>(classes, 1));
          std::memcpy(host.data() + at * 4, &label, 4);
        } else {
          put(host, o.type, at, static_cast<float>(v) / 64);
        }
      if (o.written) continue;
      operands_[i].upload(host);
      inputs_.push_back({i, host});
    }
  }

  // What a launch writes into poisoned results.
  template <class Launch>
  std::vector<std::vector<char>> results(Launch launch) {
    for (size_t i = 0; i < operands_.size(); ++i)
      if (contract().operands[i].written) operands_[i].poison();
    CUDA_CHECK(cudaDeviceSynchronize());
    launch();
    CUDA_CHECK(cudaStreamSynchronize(place_.stream));
    std::vector<std::vector<char>> all(operands_.size());
    for (size_t i = 0; i < operands_.size(); ++i)
      if (contract().operands[i].written) all[i] = operands_[i].download();
    return all;
  }

  void find_memory_fault(OwnKernelVerdict& verdict) const {
    for (size_t i = 0; i < operands_.size(); ++i)
      if (!operands_[i].guards_hold()) verdict.fault = OwnKernelFault::WritesOutside, verdict.operand = contract().operands[i].name;
    for (const auto& [i, host] : inputs_)
      if (operands_[i].download() != host) verdict.fault = OwnKernelFault::WritesInput, verdict.operand = contract().operands[i].name;
  }

  // A sum over many products may differ by its order. Other results differ by the rounding of their type.
  double tolerance(const own::Operand& o) const {
    const Precision precision = bound_.plan.spec.exec.precision;
    if (o.type == DType::Bf16) return 1.6e-2;
    if (o.type == DType::F16) return 2e-3;
    if (contract().op.kind != OpKind::MatMul && contract().op.kind != OpKind::Conv) return 2e-5;
    return precision == Precision::Fp32 ? 1e-4 : precision == Precision::Bf16 ? 1.6e-2 : 4e-3;
  }

  void compare(const std::vector<std::vector<char>>& own, const std::vector<std::vector<char>>& expected, OwnKernelVerdict& verdict) const {
    double worst = 0;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const own::Operand& o = contract().operands[i];
      if (!o.written) continue;
      const double size = size_of_values(expected[i], o), bound = tolerance(o);
      for (int64_t at = 0; at < o.elements(); ++at) {
        const double got = value_at(own[i], o.type, at), want = value_at(expected[i], o.type, at);
        const bool unwritten = std::isnan(got) && !std::isnan(want);
        const double apart = unwritten ? 1e300 : std::abs(got - want) / (bound * (std::abs(want) + size));
        if (!(apart > std::max(worst, 1.0))) continue;
        worst = apart;
        place(verdict, unwritten ? OwnKernelFault::NotWritten : OwnKernelFault::WrongValue, o, at);
        verdict.own = got, verdict.built_in = want, verdict.tolerance = bound;
      }
    }
  }

  static double size_of_values(const std::vector<char>& bytes, const own::Operand& o) {
    double sum = 0;
    for (int64_t at = 0; at < o.elements(); ++at) sum += std::pow(value_at(bytes, o.type, at), 2);
    return std::sqrt(sum / static_cast<double>(std::max<int64_t>(o.elements(), 1))) + 1e-30;
  }

  static void place(OwnKernelVerdict& verdict, OwnKernelFault fault, const own::Operand& o, int64_t at) {
    verdict.fault = fault, verdict.operand = o.name, verdict.row = at / o.cols, verdict.col = at % o.cols;
  }

  void same_bits(const std::vector<std::vector<char>>& again, const std::vector<std::vector<char>>& first, OwnKernelVerdict& verdict) const {
    for (size_t i = 0; i < again.size(); ++i) {
      const auto apart = std::ranges::mismatch(again[i], first[i]).in1;
      if (apart == again[i].end()) continue;
      const own::Operand& o = contract().operands[i];
      return place(verdict, OwnKernelFault::Varies, o, (apart - again[i].begin()) / size_of(o.type));
    }
  }

  // The median of single launches, each measured over a short stretch of them.
  template <class Launch>
  double time(Launch launch) {
    constexpr int kEach = 20;
    std::vector<double> us;
    const Event begin = make_timed_event(), end = make_timed_event();
    for (int i = 0; i < kTimes; ++i) {
      CUDA_CHECK(cudaEventRecord(begin, place_.stream));
      for (int each = 0; each < kEach; ++each) launch();
      CUDA_CHECK(cudaEventRecord(end, place_.stream));
      CUDA_CHECK(cudaEventSynchronize(end));
      float ms = 0;
      CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
      us.push_back(1000.0 * static_cast<double>(ms) / kEach);
    }
    std::ranges::nth_element(us, us.begin() + kTimes / 2);
    return us[kTimes / 2];
  }

  size_t op_;
  OwnKernel kernel_;
  Workplace place_;
  DevicePlan bound_;
  std::vector<GuardedBuffer> operands_;
  std::vector<std::pair<size_t, std::vector<char>>> inputs_;
};

}  // namespace

OwnKernelVerdict check_own_kernel(const Plan& plan, const Model& model, const data::Dataset& data, const std::string& op,
                                  const OwnKernelSource& source, const std::function<void()>& ready) {
  Check check(plan, model, data, own::find_op(plan, op), source);
  ready();
  return check.run();
}

}  // namespace ws::cuda

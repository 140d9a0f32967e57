#include "engine/own_kernels/kernel_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string_view>

namespace ws::own {
namespace {

constexpr int kRepeats = 3;

float half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 0    ? std::ldexp(static_cast<float>(fraction), -24)
                     : exponent == 31 ? (fraction ? NAN : INFINITY)
                                      : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

// Values that both types of 16 bits hold exactly: multiples of 1/64.
void put(Bytes& bytes, DType type, int64_t i, float value) {
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

// The number of values that whole numbers take: rows of the table that symbols choose from, else columns of the result.
int64_t classes_of(const KernelContract& contract) {
  for (const Operand& o : contract.operands)
    if (o.name == "table" || o.name == "dtable") return o.rows;
  return contract.operands.back().cols;
}

// A sum over many products may differ by its order. Other results differ by the rounding of their type.
double tolerance(const KernelContract& contract, Precision precision, const Operand& o) {
  if (o.type == DType::Bf16) return 1.6e-2;
  if (o.type == DType::F16) return 2e-3;
  constexpr std::array kProducts{OpKind::MatMul, OpKind::Conv, OpKind::ConvDataGrad, OpKind::ConvWeightGrad};
  if (std::ranges::find(kProducts, contract.op.kind) == kProducts.end()) return 2e-5;
  return precision == Precision::Fp32 ? 1e-4 : precision == Precision::Bf16 ? 1.6e-2 : 4e-3;
}

double size_of_values(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += std::pow(static_cast<double>(v), 2);
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(values.size(), 1))) + 1e-30;
}

void place(OwnKernelVerdict& verdict, OwnKernelFault fault, const Operand& o, int64_t at) {
  verdict.fault = fault, verdict.operand = o.name, verdict.row = at / o.cols, verdict.col = at % o.cols;
}

class Judge {
 public:
  Judge(const KernelContract& contract, KernelBench& bench, const std::vector<Bytes>& inputs)
      : contract_(contract), bench_(bench), inputs_(inputs) {}

  LaunchResult launch(const LaunchState& state) const {
    std::vector<Bytes> operands = inputs_;
    for (size_t i = 0; i < operands.size(); ++i)
      if (const Operand& o = contract_.operands[i]; o.written && !o.read) std::ranges::fill(operands[i], static_cast<char>(state.unwritten));
    return bench_.launch(operands, state);
  }

  void find_memory_fault(const LaunchResult& result, OwnKernelVerdict& verdict) const {
    for (size_t i = 0; i < contract_.operands.size() && verdict.good(); ++i) {
      const Operand& o = contract_.operands[i];
      if (!result.guards_hold[i]) verdict.fault = OwnKernelFault::WritesOutside, verdict.operand = o.name;
      if (!o.written && result.operands[i] != inputs_[i]) verdict.fault = OwnKernelFault::WritesInput, verdict.operand = o.name;
    }
  }

  // Finds the first result that differs between two launches.
  void same(const LaunchResult& first, const LaunchResult& again, OwnKernelFault fault, OwnKernelVerdict& verdict) const {
    for (size_t i = 0; i < contract_.operands.size() && verdict.good(); ++i) {
      const Operand& o = contract_.operands[i];
      if (!o.written) continue;
      const auto apart = std::ranges::mismatch(again.operands[i], first.operands[i]).in1;
      if (apart != again.operands[i].end()) place(verdict, fault, o, (apart - again.operands[i].begin()) / size_of(o.type));
    }
  }

  // A result that holds the pattern of both launches was never written. Any other difference was read, and is found first:
  // a kernel that adds to what was there may add zero at some places.
  void find_unwritten(const LaunchResult& first, const LaunchResult& again, const LaunchState& a, const LaunchState& b,
                      OwnKernelVerdict& verdict) const {
    for (size_t i = 0; i < contract_.operands.size(); ++i) {
      const Operand& o = contract_.operands[i];
      for (int64_t at = 0; o.written && at < o.elements(); ++at) {
        const std::string_view one = value_bytes(first, i, at), two = value_bytes(again, i, at);
        if (one == two) continue;
        if (!all_are(one, a.unwritten) || !all_are(two, b.unwritten)) return place(verdict, OwnKernelFault::ReadsResult, o, at);
        if (verdict.good()) place(verdict, OwnKernelFault::NotWritten, o, at);
      }
    }
  }

  void compare(const LaunchResult& own, Precision precision, const std::vector<std::vector<float>>& expected, OwnKernelVerdict& verdict) const {
    double worst = 0;
    for (size_t i = 0; i < contract_.operands.size(); ++i) {
      const Operand& o = contract_.operands[i];
      if (!o.written) continue;
      const double size = size_of_values(expected[i]), bound = tolerance(contract_, precision, o);
      for (int64_t at = 0; at < o.elements(); ++at) {
        const double got = value_at(own.operands[i], o.type, at), want = static_cast<double>(expected[i][static_cast<size_t>(at)]);
        const double apart = got == want ? 0 : std::isnan(got) ? 1e300 : std::abs(got - want) / (std::abs(want) + size);
        verdict.error = std::max(verdict.error, apart);
        if (!(apart / bound > std::max(worst, 1.0))) continue;
        worst = apart / bound;
        place(verdict, OwnKernelFault::WrongValue, o, at);
        verdict.own = got, verdict.expected = want, verdict.tolerance = bound;
      }
    }
  }

 private:
  std::string_view value_bytes(const LaunchResult& result, size_t operand, int64_t at) const {
    const auto size = static_cast<size_t>(size_of(contract_.operands[operand].type));
    return {result.operands[operand].data() + static_cast<size_t>(at) * size, size};
  }
  static bool all_are(std::string_view bytes, unsigned char pattern) {
    return std::ranges::all_of(bytes, [pattern](char c) { return c == static_cast<char>(pattern); });
  }

  const KernelContract& contract_;
  KernelBench& bench_;
  const std::vector<Bytes>& inputs_;
};

}  // namespace

double value_at(const Bytes& bytes, DType type, int64_t i) {
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

std::vector<Bytes> input_values(const KernelContract& contract, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> value(-96, 96);
  const int64_t classes = std::max<int64_t>(classes_of(contract), 1);
  std::vector<Bytes> all;
  for (const Operand& o : contract.operands) {
    Bytes& bytes = all.emplace_back(static_cast<size_t>(o.elements() * size_of(o.type)));
    for (int64_t at = 0; at < o.elements() && seed != 0; ++at)
      if (const int v = value(random); o.type == DType::I32) {
        const auto label = static_cast<int32_t>((v + 96) % classes);
        std::memcpy(bytes.data() + at * 4, &label, 4);
      } else {
        put(bytes, o.type, at, static_cast<float>(o.is_square ? std::abs(v) : v) / 64);
      }
  }
  return all;
}

OwnKernelVerdict judge(const KernelContract& contract, Precision precision, KernelBench& bench, const std::vector<Bytes>& inputs,
                       const std::vector<std::vector<float>>& expected) {
  const Judge judge(contract, bench, inputs);
  OwnKernelVerdict verdict;
  // The guards of both launches are large, of either sign: relu hides one of them, but not both.
  const LaunchState state, guards{.guard = 0x45}, results{.unwritten = 0x42}, scratch{.scratch = 0x41};
  const LaunchResult own = judge.launch(state);
  judge.find_memory_fault(own, verdict);
  for (int i = 1; i < kRepeats && verdict.good(); ++i) judge.same(own, judge.launch(state), OwnKernelFault::Varies, verdict);
  if (verdict.good()) judge.same(own, judge.launch(guards), OwnKernelFault::ReadsOutside, verdict);
  if (verdict.good()) judge.find_unwritten(own, judge.launch(results), state, results, verdict);
  if (verdict.good()) judge.same(own, judge.launch(scratch), OwnKernelFault::Uninitialised, verdict);
  if (verdict.good()) judge.compare(own, precision, expected, verdict);
  return verdict;
}

OwnKernelVerdict judge_inputs(const KernelContract& contract, Precision precision, KernelBench& bench, const ExpectedOf& expected) {
  const std::vector<Bytes> random = input_values(contract, 7), zeros = input_values(contract, 0);
  const auto of_random = expected(random), of_zeros = expected(zeros);
  OwnKernelVerdict verdict = judge(contract, precision, bench, random, of_random);
  if (!verdict.good()) return verdict;
  const double error = verdict.error;
  verdict = judge(contract, precision, bench, zeros, of_zeros);
  verdict.error = std::max(verdict.error, error);
  return verdict;
}

OwnKernelVerdict judge_memory(const KernelContract& contract, KernelBench& bench, const std::vector<Bytes>& inputs) {
  const Judge judge(contract, bench, inputs);
  OwnKernelVerdict verdict;
  judge.find_memory_fault(judge.launch({}), verdict);
  return verdict;
}

}  // namespace ws::own

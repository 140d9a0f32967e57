// Judges a kernel by what its launches do to memory, whatever runs it: a GPU, or a stand-in in a test.
#pragma once
#include <functional>
#include <vector>

#include "engine/own_kernels/kernel_contract.h"
#include "engine/own_kernels/own_kernel_verdict.h"

namespace ws::own {

using Bytes = std::vector<char>;

// Memory that a right kernel never depends on. The check changes one of the three and expects the same results.
struct LaunchState {
  unsigned char guard = 0xC5;      // before and behind each buffer
  unsigned char unwritten = 0xFF;  // in buffers that are only written; 0xFF: not a number in every floating-point type
  unsigned char scratch = 0xFF;    // in shared memory
};

struct LaunchResult {
  std::vector<Bytes> operands;
  std::vector<bool> guards_hold;  // by operand
};

// Where the kernel runs. Guards are at least as long as the buffer, up to 1 MiB.
class KernelBench {
 public:
  virtual ~KernelBench() = default;
  virtual LaunchResult launch(const std::vector<Bytes>& operands, const LaunchState& state) = 0;
};

// Values that all types hold exactly, and classes for whole numbers. `seed` 0: zeros.
std::vector<Bytes> input_values(const KernelContract& contract, unsigned seed);
double value_at(const Bytes& bytes, DType type, int64_t i);

// `expected`: the values of the op, by operand; only written operands are compared.
OwnKernelVerdict judge(const KernelContract& contract, Precision precision, KernelBench& bench, const std::vector<Bytes>& inputs,
                       const std::vector<std::vector<float>>& expected);
using ExpectedOf = std::function<std::vector<std::vector<float>>(const std::vector<Bytes>& operands)>;
// Judges random values, then zeros.
OwnKernelVerdict judge_inputs(const KernelContract& contract, Precision precision, KernelBench& bench, const ExpectedOf& expected);
// Launches once, and looks only at memory that the kernel may not write.
OwnKernelVerdict judge_memory(const KernelContract& contract, KernelBench& bench, const std::vector<Bytes>& inputs);

}  // namespace ws::own

#include "engine/workloads/lab_kernels.h"

#include "engine/own_kernels/kernel_versions.h"

namespace ws::lab {
namespace {

using own::Operand;

constexpr int64_t kSoftmaxRow = 1024;

struct OwnOperation {
  OpKind kind;
  const char* meaning;
  std::vector<Operand> operands;  // the last one is the result
};

Operand matrix(const char* name, int64_t rows, int64_t cols) {
  Operand operand{.name = name};
  operand.rows = rows, operand.cols = cols;
  return operand;
}

OwnOperation softmax(int64_t n) {
  if (n > kSoftmaxRow && n % kSoftmaxRow != 0) throw Failure("a kernel of your own takes whole rows of 1,024 numbers");
  const int64_t rows = std::max<int64_t>(n / kSoftmaxRow, 1), cols = n / rows;
  return {OpKind::Softmax, "p = softmax of each row of z", {matrix("z", rows, cols), matrix("p", rows, cols)}};
}

// The same ops and names as in a step, so that a kernel of the library fits both.
OwnOperation own_operation(const LabSpec& spec, int64_t n) {
  const int64_t m = spec.m > 0 ? spec.m : n, k = spec.k > 0 ? spec.k : n;
  switch (spec.operation) {
    case Operation::MatMul:
      return {OpKind::MatMul, "c = a·b", {matrix("a", m, k), matrix("b", k, n), matrix("c", m, n)}};
    case Operation::Sine:
      return {OpKind::Activate, "h = sin(sin(…z)), depth times", {matrix("z", 1, n), matrix("h", 1, n)}};
    case Operation::Add:
      return {OpKind::Add, "c = a + b", {matrix("a", 1, n), matrix("b", 1, n), matrix("c", 1, n)}};
    case Operation::Reduce:
      return {OpKind::ColumnSum, "db = the sum of dz", {matrix("dz", n, 1), matrix("db", 1, 1)}};
    case Operation::Softmax:
      return softmax(n);
    case Operation::Copy:
      return {OpKind::Activate, "h = z", {matrix("z", 1, n), matrix("h", 1, n)}};
  }
  return {};
}

}  // namespace

own::KernelContract kernel_contract(const LabSpec& spec, int64_t size) {
  OwnOperation operation = own_operation(spec, size);
  own::KernelContract contract{std::string(to_string(spec.operation)), operation.meaning, {}, std::move(operation.operands)};
  contract.op.kind = operation.kind;
  if (spec.operation == Operation::Sine) contract.sines = spec.depth;
  contract.operands.back().written = true, contract.operands.back().read = false;
  for (size_t i = 0; i < contract.operands.size(); ++i) {
    contract.operands[i].buffer = static_cast<BufferId>(i);
    if (contract.operands[i].elements() > INT32_MAX) throw Failure("a kernel of your own takes at most 2^31 numbers, because it counts them as int");
  }
  return contract;
}

const OwnKernelSource* kernel_of(const LabSpec& spec, Way way) {
  for (size_t i = 0; i < spec.kernels.size(); ++i)
    if (own_way(i) == way) return &spec.kernels[i];
  return nullptr;
}

void read_kernels(LabSpec& spec) {
  for (OwnKernelSource& kernel : spec.kernels)
    if (!kernel) kernel = own::read_source({std::string(to_string(spec.operation)), kernel.file, {}});
}

}  // namespace ws::lab

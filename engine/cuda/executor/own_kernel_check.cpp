#include "engine/cuda/executor/own_kernel_check.h"

#include <algorithm>

#include "engine/cuda/executor/own_kernel_bench.h"

namespace ws::cuda {

OwnKernelVerdict check_own_kernel(const Plan& plan, const Model& model, const data::Dataset& data, size_t op, const OwnKernelSource& source,
                                  const ExpectedResults& expected, const std::function<void()>& ready) {
  const own::KernelContract contract = own::contract_of(plan, op);
  const Precision precision = plan.spec.exec.precision;
  OwnKernelBench bench(plan, model, data, op, source, expected.rate);
  const std::vector<own::Bytes> random = own::input_values(contract, 7), zeros = own::input_values(contract, 0);
  const auto of_random = expected.of(random), of_zeros = expected.of(zeros);
  ready();
  OwnKernelVerdict verdict = own::judge(contract, precision, bench, random, of_random);
  if (verdict.good()) {
    const double error = verdict.error;
    verdict = own::judge(contract, precision, bench, zeros, of_zeros);
    verdict.error = std::max(verdict.error, error);
  }
  verdict.registers = bench.kernel().registers(), verdict.occupancy = bench.kernel().occupancy();
  verdict.bytes = static_cast<double>(bytes(plan, plan.ops[op])), verdict.flops = static_cast<double>(flops(plan, plan.ops[op]));
  if (!verdict.good()) return verdict;
  const own::LaunchResult own = bench.launch(random, {});
  verdict.own_us = bench.own_us(), verdict.empty_us = bench.empty_us();
  // Built-in updates use the weights of the run and not these operands.
  verdict.same_bits = bench.built_in(random) == own.operands && !contract.takes_step();
  verdict.built_in_us = bench.built_in_us();
  return verdict;
}

}  // namespace ws::cuda

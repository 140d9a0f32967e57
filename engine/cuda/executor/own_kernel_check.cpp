#include "engine/cuda/executor/own_kernel_check.h"

#include "engine/cuda/executor/own_kernel_bench.h"

namespace ws::cuda {

OwnKernelVerdict check_own_kernel(const Plan& plan, const Model& model, const data::Dataset& data, size_t op, const OwnKernelSource& source,
                                  const ExpectedResults& expected, const OnLaunch& on_launch) {
  const own::KernelContract contract = own::contract_of(plan, op);
  OwnKernelBench bench(plan, model, data, op, source, expected.rate, on_launch);
  OwnKernelVerdict verdict = own::judge_inputs(contract, plan.spec.exec.precision, bench, expected.of);
  verdict.registers = bench.kernel().registers(), verdict.occupancy = bench.kernel().occupancy();
  verdict.bytes = static_cast<double>(bytes(plan, plan.ops[op])), verdict.flops = static_cast<double>(flops(plan, plan.ops[op]));
  if (!verdict.good()) return verdict;
  const std::vector<own::Bytes> random = own::input_values(contract, 7);
  const own::LaunchResult own = bench.launch(random, {});
  verdict.own_us = bench.own_us(), verdict.empty_us = bench.empty_us();
  // Built-in updates use the weights of the run and not these operands.
  verdict.same_bits = bench.built_in(random) == own.operands && !contract.takes_step();
  verdict.built_in_us = bench.built_in_us();
  return verdict;
}

OwnKernelVerdict check_contract(const own::KernelContract& contract, const OwnKernelSource& source, const own::ExpectedOf& expected,
                                const OnLaunch& on_launch) {
  GuardedKernel kernel(contract, source, on_launch);
  return own::judge_inputs(contract, Precision::Fp32, kernel, expected);
}

OwnKernelVerdict check_memory(const own::KernelContract& contract, const OwnKernelSource& source, const std::vector<own::Bytes>& operands,
                              const OnLaunch& on_launch) {
  GuardedKernel kernel(contract, source, on_launch);
  return own::judge_memory(contract, kernel, operands);
}

}  // namespace ws::cuda

#include "engine/devices/own_kernels.h"

#include "engine/cpu/cpu_executor.h"
#include "engine/own_kernels/kernel_check.h"
#include "engine/own_kernels/triton_kernel.h"
#include "profiling/base/failure.h"
#ifdef WARPSIGHT_HAVE_CUDA
#include "engine/cuda/executor/own_kernel_check.h"
#endif

namespace ws {

std::vector<std::vector<float>> expected_results(const Plan& plan, size_t op, const std::vector<own::Bytes>& inputs) {
  const own::KernelContract contract = own::contract_of(plan, op);
  std::vector<std::vector<float>> values(plan.buffers.size()), results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const own::Operand& o = contract.operands[i];
    for (int64_t at = 0; at < o.elements(); ++at) values[index(o.buffer)].push_back(static_cast<float>(own::value_at(inputs[i], o.type, at)));
  }
  values = run_one_op(plan, op, std::move(values));
  for (const own::Operand& o : contract.operands) results.push_back(values[index(o.buffer)]);
  return results;
}

own::KernelBuild build_own_kernel(const Plan& plan, const std::string& op, const OwnKernelSource& source, int compute) {
  return build_own_kernel(own::contract_of(plan, own::find_op(plan, op)), source, compute);
}

#ifdef WARPSIGHT_HAVE_CUDA
own::KernelBuild build_own_kernel(const own::KernelContract& contract, const OwnKernelSource& source, int compute) {
  return cuda::build_own(contract, source, compute);
}

std::string first_kernel(const own::KernelContract& contract, own::KernelLanguage language) {
  if (language == own::KernelLanguage::Ptx) return cuda::first_ptx(contract);
  return language == own::KernelLanguage::Triton ? own::first_triton(contract) : own::first_version(contract);
}

OwnKernelVerdict check_own_kernel(const Plan& plan, const Model& model, const data::Dataset& data, const std::string& name,
                                  const OwnKernelSource& source, const OnLaunch& on_launch) {
  const size_t op = own::find_op(plan, name);
  const auto expected = [&](const std::vector<own::Bytes>& operands) { return expected_results(plan, op, operands); };
  return cuda::check_own_kernel(plan, model, data, op, source, {expected, kAloneRate}, on_launch);
}
#else
constexpr const char* kNoCuda = "This build has no CUDA support. Install the CUDA toolkit and build again.";
own::KernelBuild build_own_kernel(const own::KernelContract&, const OwnKernelSource&, int) { throw Failure(kNoCuda); }
std::string first_kernel(const own::KernelContract& contract, own::KernelLanguage language) {
  if (language == own::KernelLanguage::Ptx) throw Failure(kNoCuda);
  return language == own::KernelLanguage::Triton ? own::first_triton(contract) : own::first_version(contract);
}
OwnKernelVerdict check_own_kernel(const Plan&, const Model&, const data::Dataset&, const std::string&, const OwnKernelSource&,
                                  const OnLaunch&) {
  throw Failure(kNoCuda);
}
#endif

}  // namespace ws

#include "engine/devices/own_kernels.h"

#include "engine/own_kernels/kernel_contract.h"
#include "profiling/base/failure.h"
#ifdef WARPSIGHT_HAVE_CUDA
#include "engine/cuda/executor/own_kernel_check.h"
#endif

namespace ws {

#ifdef WARPSIGHT_HAVE_CUDA
size_t compile_own_kernel(const Plan& plan, const std::string& op, const OwnKernelSource& source, int compute) {
  return cuda::compile_own(own::contract_of(plan, own::find_op(plan, op)), source, compute).size();
}

OwnKernelVerdict check_own_kernel(const Plan& plan, const Model& model, const data::Dataset& data, const std::string& op,
                                  const OwnKernelSource& source, const std::function<void()>& ready) {
  return cuda::check_own_kernel(plan, model, data, op, source, ready);
}
#else
constexpr const char* kNoCuda = "This build has no CUDA support. Install the CUDA toolkit and build again.";
size_t compile_own_kernel(const Plan&, const std::string&, const OwnKernelSource&, int) { throw Failure(kNoCuda); }
OwnKernelVerdict check_own_kernel(const Plan&, const Model&, const data::Dataset&, const std::string&, const OwnKernelSource&,
                                  const std::function<void()>&) {
  throw Failure(kNoCuda);
}
#endif

}  // namespace ws

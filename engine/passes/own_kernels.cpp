// Puts kernels that a person wrote into the plan: exec.kernels = "relu1=my.cu; fc1=product.cu".
#include "engine/own_kernels/kernel_contract.h"
#include "engine/own_kernels/kernel_versions.h"
#include "engine/passes/passes.h"
#include "profiling/base/failure.h"

namespace ws {

Plan use_own_kernels(Plan plan) {
  for (const own::KernelChoice& choice : own::kernel_choices(plan.spec.exec.kernels)) {
    Op& op = plan.ops[own::find_op(plan, choice.op)];
    if (const auto reason = own::why_none(plan, op)) throw Failure(*reason);
    op.own = own::read_source(choice);
    own::require_same_op(own::contract_of(plan, op), op.own);
    op.note = "your kernel " + choice.name() + (op.note.empty() ? "" : "; " + op.note);
    plan.log.push_back(op.name + " runs your kernel " + choice.name() + ".");
  }
  return plan;
}

}  // namespace ws

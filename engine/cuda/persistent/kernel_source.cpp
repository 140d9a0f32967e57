#include "engine/cuda/persistent/kernel_source.h"

#include <algorithm>
#include <iterator>

#include "engine/cuda/persistent/kernel_text.h"

namespace ws::cuda::persistent {
namespace {

int64_t value_of(const Placement& placement, const std::string& name) {
  const auto found = std::ranges::find(placement.constants, name, &Constant::name);
  if (found == placement.constants.end()) throw Failure("The persistent kernel has no constant " + name + ".");
  return found->value;
}

std::string constants(const Placement& placement, bool stamps) {
  std::string out = "namespace ws::cuda::persistent::choice {\n";
  for (const Constant& c : placement.constants)
    out += "constexpr int " + c.name + " = " + std::to_string(c.value) + ";\n";
  return out + "constexpr bool stamps = " + (stamps ? "true" : "false") + ";\n}\n";
}

std::string wgmma_functions(const Placement& placement) {
  const auto precision = static_cast<Precision>(value_of(placement, "precision"));
  const bool halves = precision == Precision::Bf16 || precision == Precision::Fp16;
  return "namespace ws::cuda::persistent {\n"
         "__device__ __forceinline__ void wgmma_fence() { asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); "
         "}\n"
         "__device__ __forceinline__ void wgmma_commit() {\n"
         "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n}\n"
         "template <int Left>\n__device__ __forceinline__ void wgmma_wait() {\n"
         "  asm volatile(\"wgmma.wait_group.sync.aligned %0;\" ::\"n\"(Left) : \"memory\");\n}\n" +
         wgmma_function("forward_product", static_cast<int>(value_of(placement, "batch")) / 2, precision, false) +
         wgmma_function("hidden_product", static_cast<int>(value_of(placement, "batch")), Precision::Tf32, false) +
         wgmma_function("backward_product", 8 * static_cast<int>(value_of(placement, "tiles")), precision, halves) +
         "}\n";
}

}  // namespace

std::string wgmma_function(const std::string& name, int columns, Precision precision, bool second_is_transposed) {
  const int sums = columns / 2;
  const bool halves = precision == Precision::Bf16 || precision == Precision::Fp16;
  const std::string type = precision == Precision::Fp16 ? "f16" : precision == Precision::Bf16 ? "bf16" : "tf32";
  const auto operand = [](int i) { return "%" + std::to_string(i); };
  std::string list, outputs;
  for (int i = 0; i < sums; ++i) {
    list += (i ? ", " : "") + operand(i);
    outputs += std::string(i ? ", " : "") + "\"+f\"(d[" + std::to_string(i) + "])";
  }
  return "__device__ __forceinline__ void " + name + "(float (&d)[" + std::to_string(sums) +
         "], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned long long b, int accumulate) {\n"
         "  asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, " +
         operand(sums + 5) + ", 0;\\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + "k" +
         (halves ? "16" : "8") + ".f32." + type + "." + type + " {" + list + "}, {" + operand(sums) + "," +
         operand(sums + 1) + "," + operand(sums + 2) + "," + operand(sums + 3) + "}, " + operand(sums + 4) +
         ", p, 1, 1" + (halves ? (second_is_transposed ? ", 1" : ", 0") : "") + ";\\n}\\n\"\n      : " + outputs +
         "\n      : \"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3), \"l\"(b), \"r\"(accumulate));\n}\n";
}

std::string waited_for(unsigned code) {
  constexpr const char* names[] = {"",
                                   "the rows of the batch",
                                   "partial sums of the other blocks",
                                   "output gradients of the other blocks",
                                   "hidden units of the other blocks",
                                   "output weights of the other blocks",
                                   "a buffer of the batch",
                                   "gradient sums of the other blocks"};
  return code < std::size(names) ? names[code] : "something unknown";
}

std::string kernel_source(const Placement& placement, bool stamps) {
  std::string out;
  out += text_of("arguments.cuh") + constants(placement, stamps) + text_of("common.cuh");
  switch (placement.residency) {
    case Residency::Cluster:
      return out + wgmma_functions(placement) + text_of("cluster.cuh");
    case Residency::Rows:
      return out + text_of("widths.cuh") + text_of("rows.cuh");
    case Residency::Block:
      return out + text_of("widths.cuh") + text_of("block.cuh");
    case Residency::Grid:
      return out + text_of("widths.cuh") + text_of("grid.cuh");
    case Residency::None:
      break;
  }
  throw Failure(placement.why_not);
}

}  // namespace ws::cuda::persistent

#include "engine/cuda/persistent/kernel_source.h"

#include <algorithm>
#include <iterator>
#include <set>

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

// Returns a device function with one wgmma. `first`: the parameters that hold the first operand. `orders`: the end of
// the instruction, which says if operands of 16 bits are transposed.
std::string wgmma_text(const std::string& name, int columns, Precision precision, const std::vector<std::string>& first,
                       const std::string& orders) {
  const int sums = columns / 2, in_registers = static_cast<int>(first.size());
  const bool halves = precision == Precision::Bf16 || precision == Precision::Fp16;
  const std::string type = precision == Precision::Fp16 ? "f16" : precision == Precision::Bf16 ? "bf16" : "tf32";
  const auto operand = [](int i) { return "%" + std::to_string(i); };
  std::string list, outputs, parameters, operands, inputs;
  for (int i = 0; i < sums; ++i) {
    list += (i ? ", " : "") + operand(i);
    outputs += std::string(i ? ", " : "") + "\"+f\"(d[" + std::to_string(i) + "])";
  }
  for (int i = 0; i < in_registers; ++i) {
    const std::string& parameter = first[static_cast<size_t>(i)];
    parameters += parameter + ", ";
    operands += (i ? "," : "") + operand(sums + i);
    inputs += std::string(in_registers > 1 ? "\"r\"(" : "\"l\"(") + parameter.substr(parameter.rfind(' ') + 1) + "), ";
  }
  if (in_registers > 1) operands = "{" + operands + "}";
  return "__device__ __forceinline__ void " + name + "(float (&d)[" + std::to_string(sums) + "], " + parameters +
         "unsigned long long b, int accumulate) {\n"
         "  asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, " +
         operand(sums + in_registers + 1) + ", 0;\\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + "k" +
         (halves ? "16" : "8") + ".f32." + type + "." + type + " {" + list + "}, " + operands + ", " +
         operand(sums + in_registers) + ", p, 1, 1" + orders + ";\\n}\\n\"\n      : " + outputs +
         "\n      : " + inputs + "\"l\"(b), \"r\"(accumulate));\n}\n";
}

// One overload for each number of columns; see parts() in copies.cuh.
std::string copy_gradients(const Placement& placement, Precision precision) {
  std::set<int> columns;
  for (int64_t l = 2; l < value_of(placement, "layers"); ++l) {
    const auto padded = static_cast<int>((value_of(placement, "width" + std::to_string(l - 1)) + 15) / 16 * 16);
    columns.insert(padded > 64 ? padded / 2 : padded);
  }
  std::string out;
  for (const int n : columns) out += wgmma_in_memory("copy_gradient", n, precision, true, true);
  return out;
}

// The products of flow.cuh. Operands have 16 bits, also with tf32.
std::string flow_products(const Placement& placement) {
  const auto chosen = static_cast<Precision>(value_of(placement, "precision"));
  const Precision precision = chosen == Precision::Bf16 ? Precision::Bf16 : Precision::Fp16;
  return wgmma_in_memory("forward_product", 128, precision, false, false) +
         wgmma_function("top_product", 16, precision, true) + wgmma_function("hidden_product", 64, precision, false) +
         wgmma_in_memory("top_gradient", 16, precision, true, true) +
         wgmma_in_memory("input_gradient", static_cast<int>(value_of(placement, "slice_columns")), precision, true, true);
}

// One overload for each number of columns that a task of WideProduct in grid.cuh can have.
std::string grid_products(const Placement& placement) {
  if (!value_of(placement, "wide")) return {};
  std::set<int> columns;
  const auto add = [&](int64_t all) {
    for (const int64_t parts : {2, 4}) columns.insert(static_cast<int>((all + 8 * parts - 1) / (8 * parts) * 8));
  };
  add(value_of(placement, "batch"));
  for (int64_t l = 1; l < value_of(placement, "layers"); ++l) add(value_of(placement, "units" + std::to_string(l)));
  std::string out = wgmma_in_memory("grid_forward", static_cast<int>(value_of(placement, "batch")), Precision::Tf32, false, false);
  for (const int n : columns) out += wgmma_function("grid_product", n, Precision::Tf32, false);
  return out;
}

// The small functions around wgmma, and the products of the residencies that use it.
std::string wgmma_functions(const Placement& placement) {
  const auto precision = static_cast<Precision>(value_of(placement, "precision"));
  const bool halves = precision == Precision::Bf16 || precision == Precision::Fp16;
  const bool flows = placement.residency == Residency::Flow;
  const auto batch = flows ? 0 : static_cast<int>(value_of(placement, "batch"));
  const auto inputs = [&] { return 8 * static_cast<int>(value_of(placement, "tiles")); };
  std::string products;
  if (flows)
    products = flow_products(placement);
  else if (placement.residency == Residency::Grid)
    products = grid_products(placement);
  else if (placement.residency == Residency::Cluster)
    products = wgmma_function("forward_product", batch / 2, precision, false) +
               wgmma_function("hidden_product", batch, halves ? precision : Precision::Tf32, false) +
               wgmma_function("backward_product", inputs(), precision, halves);
  else
    products = wgmma_function("forward_product", batch, precision, false) +
               wgmma_in_memory("layer_product", batch, precision, false, false) +
               wgmma_in_memory("back_product", batch, precision, true, false) +
               wgmma_in_memory("input_gradient", inputs(), precision, true, true) + copy_gradients(placement, precision);
  return "namespace ws::cuda::persistent {\n"
         "__device__ __forceinline__ void wgmma_fence() { asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); "
         "}\n"
         "__device__ __forceinline__ void wgmma_commit() {\n"
         "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n}\n"
         "template <int Left>\n__device__ __forceinline__ void wgmma_wait() {\n"
         "  asm volatile(\"wgmma.wait_group.sync.aligned %0;\" ::\"n\"(Left) : \"memory\");\n}\n" +
         products + "}\n";
}

}  // namespace

std::string wgmma_function(const std::string& name, int columns, Precision precision, bool second_is_transposed) {
  const bool halves = precision == Precision::Bf16 || precision == Precision::Fp16;
  const std::string order = second_is_transposed ? ", 1" : ", 0";
  return wgmma_text(name, columns, precision, {"unsigned a0", "unsigned a1", "unsigned a2", "unsigned a3"}, halves ? order : "");
}

std::string wgmma_in_memory(const std::string& name, int columns, Precision precision, bool first_is_transposed,
                            bool second_is_transposed) {
  const bool halves = precision == Precision::Bf16 || precision == Precision::Fp16;
  const std::string orders = std::string(first_is_transposed ? ", 1" : ", 0") + (second_is_transposed ? ", 1" : ", 0");
  return wgmma_text(name, columns, precision, {"unsigned long long a"}, halves ? orders : "");
}

std::string waited_for(unsigned code) {
  constexpr const char* names[] = {"",
                                   "the rows of the batch",
                                   "partial sums of the other blocks",
                                   "gradients of the other blocks",
                                   "hidden units of the other blocks",
                                   "weights of the other blocks",
                                   "a buffer of the batch",
                                   "gradient sums of the other blocks"};
  return code < std::size(names) ? names[code] : "something unknown";
}

namespace {

// Samples of the kernel name these files and their lines.
std::string text_with_lines(const std::string& file) { return "#line 1 \"persistent/" + file + "\"\n" + text_of(file); }
std::string made_with_lines(const std::string& text) { return "#line 1 \"persistent/made\"\n" + text; }

}  // namespace

std::string kernel_source(const Placement& placement, bool stamps) {
  std::string out;
  out += text_with_lines("arguments.cuh") + made_with_lines(constants(placement, stamps)) + text_with_lines("common.cuh");
  switch (placement.residency) {
    case Residency::Cluster:
      return out + made_with_lines(wgmma_functions(placement)) + text_with_lines("slices.cuh") + text_with_lines("cluster.cuh");
    case Residency::Copies:
      return out + made_with_lines(wgmma_functions(placement)) + text_with_lines("widths.cuh") + text_with_lines("slices.cuh") + text_with_lines("copies.cuh");
    case Residency::Rows:
      return out + text_with_lines("widths.cuh") + text_with_lines("rows.cuh");
    case Residency::Block:
      return out + text_with_lines("widths.cuh") + text_with_lines("block.cuh");
    case Residency::Grid:
      return out + made_with_lines(wgmma_functions(placement)) + text_with_lines("widths.cuh") + text_with_lines("grid.cuh");
    case Residency::Flow:
      return out + made_with_lines(wgmma_functions(placement)) + text_with_lines("flow.cuh");
    case Residency::None:
      break;
  }
  throw Failure(placement.why_not);
}

}  // namespace ws::cuda::persistent

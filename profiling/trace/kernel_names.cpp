#include "profiling/trace/kernel_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ws::prof {

namespace {

constexpr std::array<std::pair<std::string_view, Meaning>, 57> kHints{{
    {"nccl", Meaning::Communication},  // first, because these names also contain the reduction
    {"nvshmem", Meaning::Communication},
    {"all_reduce", Meaning::Communication},           // ours, and PyTorch's through symmetric memory
    {"cross_device_reduce", Meaning::Communication},  // vLLM's
    // Names of compiled kernels list all ops that are fused in them.
    {"nll_loss", Meaning::Loss},
    {"cross_entropy", Meaning::Loss},
    {"triton_tem_", Meaning::Matrix},
    {"triton_poi_", Meaning::Pointwise},
    {"triton_red_", Meaning::Reduction},
    {"triton_per_", Meaning::Reduction},
    // Copies inside of a kernel, and changes of layout around a convolution.
    {"nchwtonhwc", Meaning::Pointwise},
    {"nhwctonchw", Meaning::Pointwise},
    {"scalepackedtensor", Meaning::Pointwise},
    {"batchedcopy", Meaning::Pointwise},
    {"cublaslt::epilogue", Meaning::Matrix},  // the end of a product: bias, or its sums
    {"scal_kernel", Meaning::Matrix},         // a product's beta
    {"gemm", Meaning::Matrix},
    {"cutlass", Meaning::Matrix},
    {"xmma", Meaning::Matrix},
    {"wgmma", Meaning::Matrix},
    {"nvjet", Meaning::Matrix},
    {"matmul", Meaning::Matrix},
    {"gemv", Meaning::Matrix},
    {"splitk", Meaning::Matrix},
    {"flash", Meaning::Matrix},
    {"fmha", Meaning::Matrix},
    {"sdpa", Meaning::Matrix},
    {"layer_norm", Meaning::Reduction},
    {"layernorm", Meaning::Reduction},  // before "conv": PyTorch's has a template argument "converter"
    {"gammabeta", Meaning::Reduction},
    {"batch_norm", Meaning::Reduction},
    {"batchnorm", Meaning::Reduction},
    {"bn_fw", Meaning::Reduction},  // cuDNN's batch normalisation
    {"bn_bw", Meaning::Reduction},
    {"conv", Meaning::Matrix},
    {"wgrad", Meaning::Matrix},  // cuDNN's convolutions, backward
    {"dgrad", Meaning::Matrix},
    {"winograd", Meaning::Matrix},
    {"column_sum", Meaning::Reduction},  // ours
    {"group_norm", Meaning::Reduction},
    {"groupnorm", Meaning::Reduction},
    {"rms_norm", Meaning::Reduction},
    {"rmsnorm", Meaning::Reduction},
    {"pool", Meaning::Reduction},
    {"upsample", Meaning::Pointwise},
    {"dropout", Meaning::Pointwise},
    {"embedding", Meaning::Pointwise},
    {"gather", Meaning::Pointwise},
    {"scatter", Meaning::Pointwise},
    {"index", Meaning::Pointwise},
    {"softmax", Meaning::Loss},
    {"adam", Meaning::Optimizer},
    {"sgd", Meaning::Optimizer},
    {"multi_tensor_apply", Meaning::Optimizer},
    {"elementwise", Meaning::Pointwise},
    {"reduce", Meaning::Reduction},
    {"fill", Meaning::Pointwise},
}};

// More exact than Meaning::Reduction. The names are words of kHints, too.
constexpr std::pair<std::string_view, std::string_view> kReductions[] = {
    {"batch_norm", "batch norm"}, {"batchnorm", "batch norm"}, {"bn_fw", "batch norm"},      {"bn_bw", "batch norm"},
    {"layer_norm", "layer norm"}, {"layernorm", "layer norm"}, {"gammabeta", "layer norm"},  {"group_norm", "group norm"},
    {"groupnorm", "group norm"},  {"rms_norm", "RMS norm"},    {"rmsnorm", "RMS norm"},      {"pool", "pooling"}};

std::string searchable(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return c == ' ' ? '_' : static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

std::string_view kind_of_reduction(std::string_view name) {
  if (meaning_of_kernel(name) != Meaning::Reduction) return {};
  const std::string lower = searchable(name);
  for (const auto& [word, kind] : kReductions)
    if (lower.find(word) != std::string::npos) return kind;
  return {};
}

Meaning meaning_of_kernel(std::string_view name) {
  const std::string lower = searchable(name);
  for (const auto& [word, meaning] : kHints) {
    if (lower.find(word) != std::string::npos) return meaning;
  }
  return Meaning::Other;
}

Meaning meaning_of_range(std::string_view name) {
  return name.starts_with("gloo:") ? Meaning::Communication : Meaning::Other;
}

std::string readable_kernel_name(const char* mangled) {
  if (!mangled) return "(unnamed kernel)";
  int status = 0;
  char* plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 && plain ? plain : mangled;
  std::free(plain);
  return name;
}

namespace {

// Leaves out what stands between `<` and `>`, but not in the names of operators.
std::string without_template_arguments(const std::string& text) {
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (depth == 0 && out.ends_with("operator"))
      while (i < text.size() && std::strchr("<>=-", text[i])) out += text[i++];
    if (i == text.size()) break;
    depth += text[i] == '<';
    if (depth == 0) out += text[i];
    depth -= text[i] == '>' && depth > 0;
  }
  return out;
}

// The names before the first template argument, for symbols that this demangler does not know: newer forms, or cut off.
// "c10::function_ref<…>" for "_ZN3c1012function_refIFvPPcPKlllEE11callback_fnI…"
std::string names_in_front(const std::string& symbol) {
  std::string_view rest = std::string_view(symbol).substr(2);
  const bool nested = rest.starts_with('N');
  if (nested) rest.remove_prefix(1);
  while (!rest.empty() && std::strchr("rVK", rest[0])) rest.remove_prefix(1);  // qualifiers of the function
  std::string text;
  if (rest.starts_with("St")) text = "std", rest.remove_prefix(2);
  while (!rest.empty() && rest[0] >= '1' && rest[0] <= '9') {
    size_t length = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    rest.remove_prefix(static_cast<size_t>(read.ptr - rest.data()));
    if (read.ec != std::errc() || length > rest.size()) return symbol;
    const std::string_view name = rest.substr(0, length);
    text.append(text.empty() ? "" : "::").append(name.starts_with("_GLOBAL__N_") ? "{anonymous}" : name);
    rest.remove_prefix(length);
    if (!nested) break;
  }
  if (text.empty() || text == "std") return symbol;
  return text + (rest.starts_with('I') ? "<…>" : "");
}

}  // namespace

std::string short_function_name(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;
  int failed = 0;
  char* const demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &failed);
  if (!demangled) return names_in_front(symbol);
  std::string name = demangled;
  std::free(demangled);
  for (const std::string anonymous = "(anonymous namespace)"; name.find(anonymous) != std::string::npos;)
    name.replace(name.find(anonymous), anonymous.size(), "{anonymous}");
  name = without_template_arguments(name);
  size_t begin = 0, end = name.size();
  int braces = 0;
  for (size_t i = 0; i < end; ++i) {
    braces += (name[i] == '{') - (name[i] == '}');
    if (braces > 0) continue;
    if (name[i] == ' ' && !std::string_view(name).substr(0, i).ends_with("operator")) begin = i + 1;  // after the result's type
    if (name[i] == '(' && !std::string_view(name).substr(0, i).ends_with("operator")) end = i;
  }
  return name.substr(begin, end - begin);
}

}  // namespace ws::prof

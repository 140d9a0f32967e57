#include "profiling/trace/kernel_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace ws::prof {

namespace {

constexpr std::array<std::pair<std::string_view, Meaning>, 22> kHints{{
    {"nccl", Meaning::Communication},  // first, because these names also contain the reduction
    {"nvshmem", Meaning::Communication},
    {"all_reduce", Meaning::Communication},           // ours, and PyTorch's through symmetric memory
    {"cross_device_reduce", Meaning::Communication},  // vLLM's
    {"gemm", Meaning::Matrix},
    {"cutlass", Meaning::Matrix},
    {"xmma", Meaning::Matrix},
    {"wgmma", Meaning::Matrix},
    {"nvjet", Meaning::Matrix},
    {"matmul", Meaning::Matrix},
    {"gemv", Meaning::Matrix},
    {"splitk", Meaning::Matrix},
    {"conv", Meaning::Matrix},
    {"softmax", Meaning::Loss},
    {"nll_loss", Meaning::Loss},
    {"cross_entropy", Meaning::Loss},
    {"adam", Meaning::Optimizer},
    {"sgd", Meaning::Optimizer},
    {"multi_tensor_apply", Meaning::Optimizer},
    {"elementwise", Meaning::Pointwise},
    {"reduce", Meaning::Pointwise},
    {"fill", Meaning::Pointwise},
}};

}  // namespace

Meaning meaning_of_kernel(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
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

}  // namespace ws::prof

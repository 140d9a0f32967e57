#include "profiling/recording/generated_code.h"

#include <algorithm>
#include <string_view>

#include "profiling/recording/own_files.h"

namespace ws::prof {
namespace {

constexpr size_t kHeadBytes = 4096, kMostSource = size_t{16} << 20, kMostText = 160;
constexpr std::string_view kOriginalOps = "Original ATen: [";

}  // namespace

bool is_generated(const std::string& function, const std::string& path) {
  const std::string_view name = std::string_view(function).substr(function.rfind('.') + 1);
  if ((name != "call" && !name.starts_with("partition_")) || !path.ends_with(".py")) return false;
  return first_bytes(path, kHeadBytes).find("torch._inductor") != std::string::npos;
}

std::string ops_of_comment(const std::string& comment) {
  const size_t begin = comment.find(kOriginalOps), first = begin + kOriginalOps.size();
  const size_t end = begin == std::string::npos ? begin : comment.find(']', first);
  if (end == std::string::npos) return {};
  std::string ops;
  for (const char c : std::string_view(comment).substr(first, end - first))
    if (c == ',')
      ops += " +";
    else
      ops += c;
  if (ops.size() > kMostText) ops.resize(std::min(ops.rfind(" + ", kMostText), kMostText)), ops += " + …";
  return ops;
}

// The comment stands right above the launch; a launch in between means that this one has none.
std::string generated_ops(const std::string& path, int line) {
  const std::string all = first_bytes(path, kMostSource);
  std::string_view rest = all, comment;
  for (int at = 1; at <= line && !rest.empty(); ++at) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    if (text.find(kOriginalOps) != std::string_view::npos)
      comment = text;
    else if (at < line && (text.find(".run(") != std::string_view::npos || text.find("extern_kernels.") != std::string_view::npos))
      comment = {};
  }
  return ops_of_comment(std::string(comment));
}

}  // namespace ws::prof

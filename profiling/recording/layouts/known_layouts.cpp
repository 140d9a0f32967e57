#include "profiling/recording/layouts/known_layouts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "profiling/base/failure.h"

namespace ws::prof {
namespace {

constexpr std::array<KnownLayout, 6> kKnown{{
    {Hook::PythonFrames, "python-frames", "Python", {3, 9}, {3, 15}, "no source lines and no stacks"},
    {Hook::PythonCalls, "python-calls", "Python", {3, 9}, {3, 15}, "wrappers in Python record modules and optimizers"},
    {Hook::TorchOps, "torch-ops", "PyTorch", {1, 13}, {2, 11}, "no ops and no modules of the backward pass from PyTorch's observers"},
    {Hook::TorchBackward, "torch-backward", "PyTorch", {1, 13}, {2, 11}, "PyTorch's observers record the modules of the backward pass"},
    {Hook::TorchMemory, "torch-memory", "PyTorch", {1, 13}, {2, 11}, "no blocks of PyTorch's allocator"},
    {Hook::Nccl, "nccl", "NCCL", {2, 0}, {2, 99}, "no calls of NCCL at level collectives"},
}};

std::optional<LayoutVersion> version_of(std::string_view text) {
  LayoutVersion version;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return {};
  if (std::from_chars(major.ptr + 1, end, version.minor).ec != std::errc()) return {};
  return version;
}

std::string shown(LayoutVersion version) { return std::to_string(version.major) + "." + std::to_string(version.minor); }

template <class Take>
void each_name(std::string_view list, const Take& take) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (end > 0) take(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

}  // namespace

std::span<const KnownLayout> known_layouts() { return kKnown; }

std::optional<Hook> hook_named(std::string_view name) {
  const auto at = std::ranges::find(kKnown, name, &KnownLayout::name);
  return at == kKnown.end() ? std::nullopt : std::optional(at->hook);
}

std::string why_not(Hook hook, std::string_view version, std::string_view without) {
  const KnownLayout& known = kKnown[static_cast<size_t>(hook)];
  bool off = false;
  each_name(without, [&](std::string_view name) { off |= name == known.name; });
  if (off) return std::string(kWithout) + " switches " + known.name + " off: " + known.loss + ".";
  const auto is = version_of(version);
  if (is && known.first <= *is && *is <= known.last) return {};
  return std::string(known.program) + " " + (version.empty() ? "of unknown version" : std::string(version)) + " is not one that is known here (" +
         shown(known.first) + " to " + shown(known.last) + "): " + known.loss + ".";
}

std::string why_not(Hook hook, std::string_view version) {
  const char* without = std::getenv(kWithout);
  return why_not(hook, version, without ? without : "");
}

void check_without(std::string_view without) {
  each_name(without, [](std::string_view name) {
    if (hook_named(name)) return;
    std::string names;
    for (const KnownLayout& known : kKnown) names += (names.empty() ? "" : ", ") + std::string(known.name);
    throw Failure(std::string(kWithout) + ": there is no hook \"" + std::string(name) + "\". Choose from " + names + ".");
  });
}

}  // namespace ws::prof

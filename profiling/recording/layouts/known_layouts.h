// Which versions of other programs we know the inside of. Each hook that relies on such knowledge asks here first: an unknown
// version is refused with a sentence, and the program runs without the hook.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ws::prof {

enum class Hook : uint8_t { PythonFrames, PythonCalls, TorchOps, TorchBackward, TorchMemory, Nccl };

struct LayoutVersion {
  int major = 0, minor = 0;
  auto operator<=>(const LayoutVersion&) const = default;
};

struct KnownLayout {
  Hook hook;
  const char* name;  // in kWithout
  const char* program;
  LayoutVersion first, last;
  const char* loss;  // what the recording lacks without the hook
};
std::span<const KnownLayout> known_layouts();  // in the order of Hook

// Names of hooks that are switched off, with commas: "python-frames,nccl".
inline constexpr const char* kWithout = "WARPSIGHT_WITHOUT";

// Returns "" if the hook may be used in this version of its program, such as "3.12" or "2.9.1+cu128"; otherwise one sentence.
std::string why_not(Hook hook, std::string_view version, std::string_view without);
std::string why_not(Hook hook, std::string_view version);  // as the environment says
std::optional<Hook> hook_named(std::string_view name);
// Throws Failure if the variable names something that is no hook.
void check_without(std::string_view without);

}  // namespace ws::prof

// Versions of a person's kernels: every text that a training used is kept, so that a run can name it and use it again.
//
// exec.kernels = "relu1=my.cu; fc1=product.cu@1a2b3c4d5e": op, file, and the version, without which the file is read as it is now.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace ws::own {

struct KernelChoice {
  std::string op, file, version;
  std::string name() const { return version.empty() ? file : file + "@" + version; }
};
std::vector<KernelChoice> kernel_choices(const std::string& text);  // of exec.kernels; throws Failure
std::string kernel_choices_text(const std::vector<KernelChoice>& choices);

enum class KernelLanguage : uint8_t { Cuda, Ptx, Triton };
KernelLanguage language_of(const std::string& file);  // by its ending: .cu, .ptx, .py
bool is_kernel_file(const std::filesystem::path& file);

std::string version_of(const std::string& source);  // ten letters
// The file as it is, in the current folder or in kernels_folder(); or the text that has the version. Throws Failure.
OwnKernelSource read_source(const KernelChoice& choice);
// Reads the files that have no version yet, keeps their texts, and writes the versions into exec.kernels.
void fix_versions(RunSpec& spec);
// Keeps a text so that its version can be read. Does nothing if it is kept already or cannot be written.
void keep_version(const std::string& source);

std::filesystem::path kernels_folder();  // of this person: $WARPSIGHT_KERNELS, else beside the runs

}  // namespace ws::own

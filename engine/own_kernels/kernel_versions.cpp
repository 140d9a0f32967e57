#include "engine/own_kernels/kernel_versions.h"

#include <cstdlib>

#include "profiling/base/digest.h"
#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/base/text.h"
#include "profiling/base/whole_file.h"

namespace ws::own {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostBytes = 1 << 20, kVersionLetters = 10;

bool is_version(const std::string& text) {
  return text.size() == kVersionLetters && text.find_first_not_of("0123456789abcdef") == text.npos;
}

fs::path version_file(const std::string& version) { return kernels_folder() / "versions" / (version + ".cu"); }

fs::path find_file(const std::string& file) {
  std::error_code error;
  if (fs::exists(file, error) || file.find('/') != file.npos) return file;
  return kernels_folder() / file;
}

}  // namespace

fs::path kernels_folder() {
  const char* set = std::getenv("WARPSIGHT_KERNELS");
  return set && *set ? fs::path(set) : runs_folder().parent_path() / "kernels";
}

std::vector<KernelChoice> kernel_choices(const std::string& text) {
  std::vector<KernelChoice> choices;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(';', at), text.size()), equal = text.find('=', at);
    const std::string part(trimmed(std::string_view(text).substr(at, end - at)));
    at = end + 1;
    if (part.empty()) continue;
    if (equal >= end) throw Failure("kernels: “" + part + "” names no file; write OP=FILE.cu, and ; between several.");
    KernelChoice choice{std::string(trimmed(std::string_view(part).substr(0, part.find('=')))), std::string(trimmed(std::string_view(part).substr(part.find('=') + 1))), {}};
    if (const size_t mark = choice.file.rfind('@'); mark != choice.file.npos && is_version(choice.file.substr(mark + 1)))
      choice.version = choice.file.substr(mark + 1), choice.file.erase(mark);
    choices.push_back(choice);
  }
  return choices;
}

std::string kernel_choices_text(const std::vector<KernelChoice>& choices) {
  std::string text;
  for (const KernelChoice& choice : choices) text += (text.empty() ? "" : "; ") + choice.op + "=" + choice.name();
  return text;
}

KernelLanguage language_of(const std::string& file) {
  return file.ends_with(".ptx") ? KernelLanguage::Ptx : file.ends_with(".py") ? KernelLanguage::Triton : KernelLanguage::Cuda;
}

bool is_kernel_file(const fs::path& file) { return file.extension() == ".cu" || language_of(file) != KernelLanguage::Cuda; }

std::string version_of(const std::string& source) {
  std::string text;
  for (const char c : sha256(source).substr(0, kVersionLetters / 2)) text += formatted("{:02x}", static_cast<unsigned char>(c));
  return text;
}

OwnKernelSource read_source(const KernelChoice& choice) {
  const std::string now = prof::whole_text(find_file(choice.file));
  if (!choice.version.empty()) {
    if (version_of(now) == choice.version) return {choice.file, now};
    const std::string kept = prof::whole_text(version_file(choice.version));
    if (version_of(kept) == choice.version) return {choice.file, kept};
    throw Failure(choice.name() + ": this version is not on this machine. Write " + choice.file + " without @" + choice.version +
                  " to use the file as it is now.");
  }
  std::error_code error;
  if (!fs::is_regular_file(find_file(choice.file), error)) throw Failure(choice.file + ": this kernel cannot be read. Check the name of the file.");
  if (now.empty() || now.size() > kMostBytes) throw Failure(choice.file + ": a kernel's source has 1 byte to 1 MiB.");
  return {choice.file, now};
}

void keep_version(const std::string& source) {
  try {
    const fs::path file = version_file(version_of(source));
    std::error_code error;
    if (!fs::exists(file, error)) prof::write_shared(file.string(), source);
  } catch (const Failure&) {  // there is no home folder
  }
}

void fix_versions(RunSpec& spec) {
  std::vector<KernelChoice> choices = kernel_choices(spec.exec.kernels);
  for (KernelChoice& choice : choices) {
    const OwnKernelSource source = read_source(choice);
    keep_version(source.text);
    choice.version = version_of(source.text);
  }
  spec.exec.kernels = kernel_choices_text(choices);
}

}  // namespace ws::own

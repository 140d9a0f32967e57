#include "app/core/kernels/kernel_library.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "engine/own_kernels/kernel_contract.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;

std::string without_mark(const std::string& comment) {
  for (const std::string_view mark : {"// ", "# "})
    if (comment.starts_with(mark)) return comment.substr(mark.size());
  return {};
}

KernelFile described(const fs::path& path) {
  KernelFile file{path.filename(), path, {}, {}, {}};
  const OwnKernelSource source = own::read_source({{}, path, {}});
  file.version = own::version_of(source.text);
  file.signature = own::op_of_source(source.text);
  if (file.signature.empty()) return file;
  std::istringstream lines(source.text);
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  file.meaning = without_mark(line);
  return file;
}

std::string free_name(const std::string& stem, const std::string& ending = ".cu") {
  std::error_code error;
  std::string name = stem + ending;
  for (int number = 2; fs::exists(own::kernels_folder() / name, error); ++number) name = stem + "-" + std::to_string(number) + ending;
  return name;
}

}  // namespace

std::vector<KernelFile> kernel_files() {
  std::vector<KernelFile> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(own::kernels_folder(), error)) {
    if (!own::is_kernel_file(entry.path()) || !entry.is_regular_file(error)) continue;
    try {
      files.push_back(described(entry.path()));
    } catch (const Failure&) {  // an empty or unreadable file is no kernel
    }
  }
  std::ranges::sort(files, {}, &KernelFile::name);
  return files;
}

std::string new_kernel_name(const std::string& op, const std::string& ending) { return free_name(file_name_of(op), ending); }

std::string kernel_path(const std::string& name) { return own::kernels_folder() / name; }

void write_new_kernel(const std::string& file, const std::string& text) {
  std::error_code error;
  if (fs::exists(file, error)) throw Failure(file + ": exists already. Choose another name, or remove it first.");
  if (const fs::path folder = fs::path(file).parent_path(); !folder.empty()) fs::create_directories(folder, error);
  prof::write_whole(file, text);
}

std::string add_kernel_file(const std::string& path) {
  const OwnKernelSource source = own::read_source({{}, path, {}});
  const std::string name = free_name(file_name_of(fs::path(path).stem()), own::is_kernel_file(path) ? fs::path(path).extension().string() : ".cu");
  write_new_kernel(kernel_path(name), source.text);
  return name;
}

}  // namespace ws::app

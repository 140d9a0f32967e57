// The kernels of a person: .cu, .ptx and .py files in a folder, which runs and exercises name without a path.
#pragma once
#include <string>
#include <vector>

namespace ws::app {

struct KernelFile {
  std::string name;       // "my_relu.cu"
  std::string path;
  std::string signature;  // of the op that it was written for; empty if its first line does not say
  std::string meaning;    // its second line: "h1 = relu(z1 + b1)"
  std::string version;
};
std::vector<KernelFile> kernel_files();  // by name
// A name that no file has yet, made from the op's: "bias_relu1.cu", "bias_relu1-2.cu".
std::string new_kernel_name(const std::string& op, const std::string& ending = ".cu");
std::string kernel_path(const std::string& name);  // in the folder
void write_new_kernel(const std::string& file, const std::string& text);  // throws Failure if the file exists
// Copies a file that somebody shared into the folder. Returns its name there. Throws Failure.
std::string add_kernel_file(const std::string& path);

}  // namespace ws::app

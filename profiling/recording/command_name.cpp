#include "profiling/recording/command_name.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace ws::prof {

namespace fs = std::filesystem;

namespace {

// The script that a launcher starts, or the launcher itself.
std::string started_by(const std::string& launcher, const std::vector<std::string>& command) {
  const auto script = std::ranges::find_if(command, [](const std::string& word) { return word.ends_with(".py"); });
  return script == command.end() ? launcher : fs::path(*script).filename().string();
}

bool is_launcher(const std::string& name) {
  constexpr std::array<std::string_view, 13> kNames{
      "torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "torch.distributed.run", "torch.distributed.launch",
      "accelerate.commands.launch", "uv", "conda", "poetry", "pixi"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

std::string name_of_command(const std::vector<std::string>& command) {
  const std::string program = fs::path(command.at(0)).filename();
  if (is_launcher(program)) return started_by(program, command);
  if (!program.starts_with("python")) return program;
  for (size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "-m" && i + 1 < command.size())
      return is_launcher(command[i + 1]) ? started_by(command[i + 1], command) : command[i + 1];
    if (command[i] == "-c") break;
    if (command[i] == "-X" || command[i] == "-W" || command[i] == "--check-hash-based-pycs") {
      ++i;  // skips its value
      continue;
    }
    if (!command[i].starts_with('-')) return fs::path(command[i]).filename();
  }
  return program;
}

}  // namespace ws::prof

#include "app/cli/open_window.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "profiling/base/failure.h"
#include "profiling/base/paths.h"

namespace ws::cli {

bool asks_for_window(int argc, char** argv) {
  if (argc < 2) return true;
  const std::string_view word = argv[1];
  if (word.starts_with("ssh://") || word.starts_with("pipe:")) return true;
  std::error_code error;
  return word.find_first_of("./") != word.npos && std::filesystem::exists(word, error);
}

void open_window(char** argv) {
  const std::string window = (program_file().parent_path() / "warpsight-window").string();
  if (access(window.c_str(), X_OK) != 0)
    throw Failure("The window is not installed here (" + window + "). Build it with app/run, or install the package with the window. "
                  "The commands without a window: warpsight --help.");
  argv[0] = const_cast<char*>(window.c_str());
  execv(window.c_str(), argv);
  throw Failure(window + " cannot be started: " + std::strerror(errno) + ".");
}

}  // namespace ws::cli

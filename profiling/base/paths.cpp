#include "profiling/base/paths.h"

#include <cstdlib>

namespace ws {

namespace fs = std::filesystem;

fs::path program_file() {
  std::error_code unreadable;
  return fs::read_symlink("/proc/self/exe", unreadable);
}

fs::path collector_library(const fs::path& program) {
  std::error_code none;
  for (const char* place : {".", "../lib", "../lib/warpscope"}) {
    const fs::path library = program.parent_path() / place / "libwarpscope_inject.so";
    if (fs::exists(library, none)) return fs::canonical(library, none);
  }
  return {};
}

fs::path resources_folder() {
  if (const char* set = std::getenv("WARPSCOPE_RESOURCES")) return set;
  std::error_code error;
  const fs::path installed = program_file().parent_path() / "../share/warpscope/resources";
  return fs::exists(installed, error) ? installed : fs::path(WARPSCOPE_SOURCE_DIR) / "resources";
}

fs::path cache_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache) return fs::path(cache) / "warpscope";
  return home && *home ? fs::path(home) / ".cache/warpscope" : fs::path();
}

}  // namespace ws

#include "profiling/base/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>

#include "profiling/base/failure.h"

namespace ws {

namespace fs = std::filesystem;

fs::path program_file() {
  std::error_code unreadable;
  return fs::read_symlink("/proc/self/exe", unreadable);
}

namespace {

fs::path installed_with(const fs::path& program, const char* name) {
  std::error_code none;
  for (const char* place : {".", "../lib", "../lib/warpsight"}) {
    const fs::path file = program.parent_path() / place / name;
    if (fs::exists(file, none)) return fs::canonical(file, none);
  }
  return {};
}

}  // namespace

fs::path collector_library(const fs::path& program) { return installed_with(program, "libwarpsight_inject.so"); }
fs::path run_writer(const fs::path& program) { return installed_with(program, "warpsight-writer"); }

fs::path python_folder() {
  std::error_code error;
  const fs::path installed = program_file().parent_path() / "../share/warpsight/python";
  return fs::exists(installed, error) ? fs::canonical(installed, error)
                                      : fs::path(WARPSIGHT_SOURCE_DIR) / "profiling/python";
}

fs::path resources_folder() {
  if (const char* set = std::getenv("WARPSIGHT_RESOURCES")) return set;
  std::error_code error;
  const fs::path installed = program_file().parent_path() / "../share/warpsight/resources";
  return fs::exists(installed, error) ? installed : fs::path(WARPSIGHT_SOURCE_DIR) / "resources";
}

fs::path cache_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache) return fs::path(cache) / "warpsight";
  return home && *home ? fs::path(home) / ".cache/warpsight" : fs::path();
}

namespace {

// Without HOME, as the system knows it. A folder that anybody can make, such as /tmp, is none: another user could be first there.
fs::path home_folder() {
  if (const char* home = std::getenv("HOME"); home && *home) return home;
  const passwd* const user = getpwuid(getuid());
  if (user && user->pw_dir && *user->pw_dir == '/' && access(user->pw_dir, W_OK) == 0) return user->pw_dir;
  throw Failure("There is no home folder for the runs; set HOME, or WARPSIGHT_RUNS to a folder of yours");
}

}  // namespace

fs::path runs_folder() {
  const char *set = std::getenv("WARPSIGHT_RUNS"), *data = std::getenv("XDG_DATA_HOME");
  if (set && *set) return set;
  const fs::path user = data && *data ? fs::path(data) : home_folder() / ".local/share";
  const fs::path runs = user / "warpsight/runs", before = user / kNameBefore / "runs";
  std::error_code error;
  if (fs::exists(runs, error) || !fs::is_directory(before, error)) return runs;
  fs::create_directories(runs.parent_path(), error);
  fs::rename(before, runs, error);
  return error ? before : runs;
}

fs::path temporary_folder() {
  const char* set = std::getenv("TMPDIR");
  const fs::path folder = set && *set ? set : "/tmp";
  if (std::error_code none; fs::is_directory(folder, none)) return folder;
  throw Failure(folder.string() + ": there is no such folder; set TMPDIR to one for temporary files");
}

std::string file_name_of(const std::string& text) {
  constexpr size_t kMostBytes = 80;
  std::string name;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (name.size() >= kMostBytes && (byte & 0xC0) != 0x80) break;  // do not cut inside a UTF-8 letter
    const bool plain = byte >= 0x80 || std::isalnum(byte) || c == '-' || c == '+' || (c == '.' && !name.empty());
    name += plain ? c : '_';
  }
  return name;
}

}  // namespace ws

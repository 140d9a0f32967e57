#include "datasets/locate.h"

#include <cstdlib>
#include <filesystem>

#include "profiling/base/failure.h"
#include "profiling/base/paths.h"

namespace ws::data {
namespace fs = std::filesystem;

std::vector<std::string> data_roots() {
  std::vector<std::string> roots;
  if (const char* chosen = std::getenv("WARPSIGHT_DATA"); chosen && *chosen) roots.emplace_back(chosen);
  const fs::path program = program_file();
  if (!program.empty()) roots.push_back((program.parent_path().parent_path() / "share/warpsight/datasets").string());
  roots.emplace_back(WARPSIGHT_DATA_SOURCE);
  return roots;
}

std::string locate(const std::string& relative) {
  std::string tried;
  for (const std::string& root : data_roots()) {
    const fs::path path = fs::path(root) / relative;
    std::error_code unreadable;
    if (fs::exists(path, unreadable)) return path.string();
    tried += (tried.empty() ? "" : ", ") + root;
  }
  throw Failure("The data set " + relative + " was not found in " + tried +
                "; set WARPSIGHT_DATA to the folder that holds it");
}

}  // namespace ws::data

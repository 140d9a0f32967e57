#include "profiling/recording/claim_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "profiling/base/failure.h"
#include "profiling/base/launched_rank.h"

namespace ws::prof {

std::string stem_of(const std::string& path) {
  return path.ends_with(kRunEnding) ? path.substr(0, path.size() - kRunEnding.size()) : path;
}

std::string claim_file(const std::string& wanted) {
  const std::string own = stem_of(wanted) + "." + std::to_string(getpid());
  constexpr int kMost = 100;  // recordings of this name by processes with this number
  for (int i = 0; i <= kMost; ++i) {
    const std::string path = i == 0 ? wanted : own + (i == 1 ? "" : "-" + std::to_string(i)) + std::string(kRunEnding);
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (file < 0 && errno != EEXIST) throw Failure(path + ": cannot be created: " + std::strerror(errno));
    if (file < 0) continue;
    close(file);
    return path;
  }
  return "";
}

std::string rank_text() {
  const LaunchedRank self = launched_rank();
  return self.rank < 0 ? "" : "rank " + std::to_string(self.rank) + " of " + std::to_string(self.ranks);
}

}  // namespace ws::prof

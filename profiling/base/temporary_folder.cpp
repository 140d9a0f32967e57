#include "profiling/base/temporary_folder.h"

#include <cstdlib>
#include <string>
#include <system_error>

#include "profiling/base/failure.h"
#include "profiling/base/paths.h"

namespace ws {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (temporary_folder() / "warpsight-temporary-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw Failure(pattern + ": cannot be made. Check that the disk has space and the folder is yours.");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ws

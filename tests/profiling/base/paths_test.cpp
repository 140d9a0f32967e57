#include "profiling/base/paths.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "profiling/base/failure.h"

namespace ws {
namespace {

// A folder that anybody can make is no place for runs: another user could be there first, and read or replace them.
TEST(Paths, WithoutHomeNothingIsPutWhereOthersCanBeFirst) {
  constexpr std::array<const char*, 3> kNames{"HOME", "XDG_DATA_HOME", "WARPSIGHT_RUNS"};
  std::array<std::optional<std::string>, 3> before;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (const char* value = std::getenv(kNames[i])) before[i] = value;
    unsetenv(kNames[i]);
  }
  try {
    EXPECT_FALSE(runs_folder().string().starts_with("/tmp")) << runs_folder();
  } catch (const Failure&) {  // this user has no home
  }
  for (size_t i = 0; i < kNames.size(); ++i)
    if (before[i]) setenv(kNames[i], before[i]->c_str(), 1);
}

}  // namespace
}  // namespace ws

// Hooks that rely on the inside of other programs: which versions are known, how an unknown one is refused, and the switch.
#include "profiling/recording/layouts/known_layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "profiling/base/failure.h"
#include "profiling/recording/layouts/nccl_layout.h"
#include "profiling/recording/layouts/torch_layout.h"

namespace ws::prof {
namespace {

using testing::HasSubstr;

std::string text_of(LayoutVersion version) { return std::to_string(version.major) + "." + std::to_string(version.minor); }

TEST(KnownLayouts, TheTableHoldsEachHookOnceInItsOrder) {
  std::set<std::string> names;
  for (size_t i = 0; i < known_layouts().size(); ++i) {
    const KnownLayout& known = known_layouts()[i];
    EXPECT_EQ(static_cast<size_t>(known.hook), i);
    EXPECT_LE(known.first, known.last);
    EXPECT_EQ(hook_named(known.name), known.hook);
    names.insert(known.name);
  }
  EXPECT_EQ(names.size(), known_layouts().size());
  EXPECT_EQ(hook_named("python"), std::nullopt);
}

TEST(KnownLayouts, VersionsOutsideOfTheTableAreRefusedWithASentence) {
  for (const KnownLayout& known : known_layouts()) {
    EXPECT_EQ(why_not(known.hook, text_of(known.first), ""), "");
    EXPECT_EQ(why_not(known.hook, text_of(known.last) + ".7+cu130", ""), "") << "more numbers may follow";
    const LayoutVersion before{known.first.major - 1, 99}, after{known.last.major, known.last.minor + 1};
    for (const std::string& strange : {text_of(before), text_of(after), std::string("99.0"), std::string("nightly"), std::string("3")}) {
      const std::string why = why_not(known.hook, strange, "");
      EXPECT_THAT(why, HasSubstr(std::string(known.program) + " " + strange + " is not one that is known here"));
      EXPECT_THAT(why, HasSubstr(text_of(known.first) + " to " + text_of(known.last)));
      EXPECT_THAT(why, HasSubstr(known.loss));
    }
    EXPECT_THAT(why_not(known.hook, "", ""), HasSubstr("of unknown version"));
  }
  EXPECT_EQ(why_not(Hook::PythonFrames, "3.12.4 (main, Jun  8 2024) [GCC 12]", ""), "");
}

TEST(KnownLayouts, OneVariableSwitchesEachHookOff) {
  for (const KnownLayout& known : known_layouts()) {
    const std::string version = text_of(known.first), list = std::string("none,") + known.name + ",";
    EXPECT_THAT(why_not(known.hook, version, known.name), HasSubstr(std::string("WARPSIGHT_WITHOUT switches ") + known.name + " off"));
    EXPECT_NE(why_not(known.hook, version, list), "");
    for (const KnownLayout& other : known_layouts()) {
      if (other.hook == known.hook) continue;
      EXPECT_EQ(why_not(other.hook, text_of(other.first), known.name), "");
    }
  }
  check_without("");
  check_without("nccl,python-frames");
  try {
    check_without("nccl,pythons");
    FAIL() << "no such hook";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("there is no hook \"pythons\". Choose from python-frames,"));
  }
}

TEST(KnownLayouts, NumbersOfNcclAreVersions) {
  EXPECT_EQ(nccl_version_text(22809), "2.28");
  EXPECT_EQ(nccl_version_text(21103), "2.11");
  EXPECT_EQ(nccl_version_text(2804), "2.8");
}

TEST(TorchLayout, TheSequenceNumberIsWhereBothOpsHaveTheirs) {
  alignas(8) std::array<uint64_t, 64> function{};
  TorchSequenceSearch search;
  EXPECT_EQ(search.place(), 0u);
  function[20] = 41, function[15] = 41;
  search.see(reinterpret_cast<const char*>(function.data()), 41);
  EXPECT_EQ(search.place(), 0u) << "one op could be chance";
  function[20] = 42;
  search.see(reinterpret_cast<const char*>(function.data()), 42);
  EXPECT_EQ(search.place(), 160u);
  function[16] = 42;  // two places that agree: neither is trusted
  TorchSequenceSearch twice;
  for (const uint64_t number : {7, 8}) {
    function[20] = function[16] = number;
    twice.see(reinterpret_cast<const char*>(function.data()), number);
  }
  EXPECT_EQ(twice.place(), 0u);
}

TEST(TorchLayout, NodesCarryTheLastThreeNumbers) {
  std::array<std::array<uint64_t, 12>, 3> made{};
  const void* nodes[3];
  for (size_t i = 0; i < 3; ++i) made[i][5] = 97 + i, nodes[i] = made[i].data();
  EXPECT_EQ(torch_node_sequence_place(nodes, 100), 40u);
  EXPECT_EQ(torch_node_sequence_place(nodes, 101), 0u) << "not the newest";
}

}  // namespace
}  // namespace ws::prof

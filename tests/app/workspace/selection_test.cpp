// The table of actions: what is shown, in which role, after each sequence of them. No window.
#include "app/workspace/selection.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <sstream>
#include <string>

namespace ws::app {
namespace {

RunId id(char letter) { return static_cast<RunId>(letter - 'A' + 1); }

// The current run, the baseline and the other runs: "CAB". Each run is a capital letter.
std::string shown(const Selection& selection) {
  std::string letters;
  for (const RunId run : selection.runs()) letters += static_cast<char>('A' + static_cast<int>(run) - 1);
  return letters;
}

std::vector<RunId> ids(const std::string& letters) {
  std::vector<RunId> all;
  for (const char letter : letters) all.push_back(id(letter));
  return all;
}

void act(Selection& on, const std::string& word, const std::string& runs) {
  const RunId a = runs.empty() ? RunId::None : id(runs[0]), b = runs.size() < 2 ? RunId::None : id(runs[1]);
  if (word == "train") return on.started(a, true);
  if (word == "other") return on.started(a, false);  // a training of something else, or a recording
  if (word == "next") return on.startedInSeries(a);
  if (word == "record") return on.started(a, false);
  if (word == "end" || word == "stop") return on.ended(a, true);
  if (word == "fail") return on.ended(a, false);
  if (word == "select") return on.select(a);
  if (word == "with") return on.compareWith(a);
  if (word == "compare") return on.compare(a, b);
  if (word == "add") return static_cast<void>(on.add(a));
  if (word == "drop") return on.drop(a);
  if (word == "baseline") return on.setBaseline(a);
  if (word == "swap") return on.swap();
  if (word == "open" || word == "reopen") return on.open(ids(runs));
  if (word == "delete") return on.removed(a, b);
  if (word == "undo") return on.restored(a, b);
  if (word == "file") return on.replaced(a, b);
  FAIL() << "no such action: " << word;
}

struct Script {
  const char* actions;
  const char* shown;
};

class SelectionScript : public testing::TestWithParam<Script> {};

TEST_P(SelectionScript, ShowsTheseRuns) {
  Selection selection;
  std::istringstream words(GetParam().actions);
  for (std::string action; words >> action;) {
    const size_t colon = action.find(':');
    act(selection, action.substr(0, colon), colon == std::string::npos ? "" : action.substr(colon + 1));
  }
  EXPECT_EQ(shown(selection), GetParam().shown) << GetParam().actions;
  EXPECT_EQ(selection.current(), selection.runs().empty() ? RunId::None : selection.runs()[0]);
  EXPECT_EQ(selection.baseline(), selection.runs().size() < 2 ? RunId::None : selection.runs()[1]);
}

// clang-format off
INSTANTIATE_TEST_SUITE_P(Table, SelectionScript, testing::Values(
  // A training: it is current, and the run before it is the baseline if both can be compared. Nothing else stays.
  Script{"", ""},
  Script{"train:A", "A"},
  Script{"train:A end:A", "A"},
  Script{"train:A end:A train:B", "BA"},
  Script{"train:A end:A train:B end:B train:C", "CB"},
  Script{"train:A end:A other:B", "B"},
  Script{"open:ABCD train:E", "EA"},
  Script{"open:ABCD other:E end:E train:F", "FE"},
  Script{"train:A end:A train:B end:B select:A train:C", "CA"},
  Script{"train:A end:A train:B end:B add:C add:D train:E", "EB"},
  // Several trainings in a row: all stay.
  Script{"other:A end:A next:B end:B next:C end:C next:D", "DCBA"},
  Script{"other:A end:A next:B end:B train:C", "CB"},
  Script{"open:ABCDEFGH next:I", "IABCDEFG"},
  // A training that ends without a step leaves, and what was shown before comes back.
  Script{"train:A fail:A", ""},
  Script{"train:A end:A train:B fail:B", "A"},
  Script{"train:A end:A train:B end:B train:C fail:C", "BA"},
  Script{"open:ABCD train:E fail:E", "ABCD"},
  Script{"open:ABCD train:E select:B fail:E", "BA"},
  Script{"open:ABC train:E select:E fail:E", "ABC"},
  Script{"open:AB train:C delete:AD fail:C", "B"},
  Script{"open:ABCD other:E fail:E train:F fail:F", "ABCD"},
  Script{"other:A end:A next:B fail:B", "A"},
  // A row that is selected is current. A compared run changes places with it.
  Script{"select:A", "A"},
  Script{"open:A select:B", "B"},
  Script{"open:AB select:C", "CB"},
  Script{"open:AB select:B", "BA"},
  Script{"open:AB select:A", "AB"},
  Script{"open:ABC select:C", "CBA"},
  Script{"open:ABC select:C select:A", "ABC"},
  Script{"open:AB select:C select:D select:E", "EB"},
  Script{"train:A end:A train:B select:A end:B", "AB"},
  Script{"train:A select:B end:A", "B"},
  // "Compare with" compares exactly two.
  Script{"open:ABCD with:E", "AE"},
  Script{"open:ABCD with:C", "AC"},
  Script{"open:AB with:A", "AB"},
  Script{"open:ABCD compare:BC", "CB"},
  Script{"open:ABCD compare:EF", "FE"},
  Script{"compare:AA", "A"},
  Script{"train:A end:A train:B end:B compare:AB", "BA"},
  // Further runs, one by one.
  Script{"add:A", "A"},
  Script{"open:A add:B", "AB"},
  Script{"open:A add:B add:C", "ABC"},
  Script{"open:AB add:B", "AB"},
  Script{"open:ABCDEFGH add:I", "ABCDEFGH"},
  Script{"open:ABC drop:C", "AB"},
  Script{"open:ABC drop:B", "AC"},
  Script{"open:ABC drop:A", "BC"},
  Script{"open:A drop:A", ""},
  Script{"open:A drop:B", "A"},
  // The baseline.
  Script{"open:A baseline:B", "AB"},
  Script{"open:ABC baseline:C", "ACB"},
  Script{"open:ABC baseline:D", "ADBC"},
  Script{"open:AB baseline:A", "BA"},
  Script{"open:ABC swap", "BAC"},
  Script{"open:A swap", "A"},
  Script{"baseline:A", "A"},
  // Opened files are alone.
  Script{"open:ABC open:D", "D"},
  Script{"open:ABC open:", ""},
  Script{"open:AAB", "AB"},
  Script{"train:A open:BC end:A", "BC"},
  // A deleted run: the baseline is current then, else the newest run.
  Script{"open:ABC delete:AD", "BC"},
  Script{"open:ABC delete:BD", "AC"},
  Script{"open:A delete:AD", "D"},
  Script{"open:A delete:A", ""},
  Script{"open:A delete:BC", "A"},
  Script{"open:ABC delete:AD undo:AE", "EBC"},
  Script{"open:ABC delete:BD undo:BE", "AEC"},
  Script{"open:A delete:AD undo:AE", "E"},
  Script{"open:ABC delete:AD select:F undo:AE", "FCE"},
  Script{"open:AB delete:CD undo:CE", "AB"},
  Script{"open:ABC delete:AD delete:BD undo:BE undo:AF", "FEC"},
  // A recording that has ended, or a copy that has arrived, is another run: it takes the role.
  Script{"open:AB other:C end:C file:CD", "D"},
  Script{"train:A end:A train:B file:AC", "BC"},
  Script{"train:A end:A train:B select:A end:B file:BC", "AC"},
  Script{"open:A file:BC", "A"},
  Script{"train:A end:A train:B file:AC fail:B", "C"},
  Script{"open:AC file:AC", "C"},
  // All kinds of actions.
  Script{"record:A", "A"},
  Script{"record:A fail:A", ""},
  Script{"record:A stop:A file:AB", "B"},
  Script{"record:A stop:A file:AB train:C", "CB"},
  Script{"train:A stop:A record:B", "B"},
  Script{"train:A stop:A record:B fail:B", "A"},
  Script{"open:AB record:C fail:C", "AB"},
  Script{"open:AB record:C select:A stop:C file:CD", "A"},
  Script{"record:A compare:BC stop:A file:AD", "CB"},
  Script{"train:A stop:A reopen:A", "A"},
  Script{"train:A stop:A train:B stop:B reopen:A", "A"},
  Script{"train:A stop:A train:B stop:B delete:BA undo:BC", "CA"},
  Script{"train:A stop:A train:B stop:B delete:BA reopen:C undo:BD", "CD"},
  Script{"train:A stop:A train:B select:A delete:AB undo:AC stop:B", "CB"},
  Script{"train:A select:B compare:CD stop:A train:E", "ED"}));
// clang-format on

// Whatever is done: no run stands twice, the newest action counts, and a change is reported once, after it happened.
TEST(Selection, HoldsItsRulesOverRandomActions) {
  const char* const words[] = {"train", "other", "next",     "end",  "fail", "select", "with", "compare",
                               "add",   "drop",  "baseline", "swap", "open", "delete", "undo", "file"};
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 dice(seed);
    Selection selection;
    int reports = 0;
    selection.changed = [&reports] { ++reports; };
    for (int i = 0; i < 40; ++i) {
      const std::string word = words[dice() % std::size(words)];
      std::string runs;
      for (int n = 0; n < 2; ++n) runs += static_cast<char>('A' + dice() % 12);
      const std::vector<RunId> before = selection.runs();
      reports = 0;
      act(selection, word, runs);
      SCOPED_TRACE(word + ":" + runs);
      ASSERT_EQ(reports, before == selection.runs() ? 0 : 1);
      ASSERT_LE(selection.runs().size(), Selection::kMost);
      ASSERT_EQ(std::set(selection.runs().begin(), selection.runs().end()).size(), selection.runs().size());
      if (word == "train" || word == "other" || word == "next" || word == "select") {
        ASSERT_EQ(selection.current(), id(runs[0]));
      }
      if (word == "drop" || (word == "delete" && runs[0] != runs[1])) {
        ASSERT_FALSE(selection.has(id(runs[0])));
      }
    }
  }
}

}  // namespace
}  // namespace ws::app

// One thing has one figure, wherever a reader meets it: `stats` by all groups, `stats --by rank`, the critical path, `whatif`,
// `diff`, `check`, SQL, the advice and the page to share.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>

#include "app/core/comparison/comparison.h"
#include "app/core/comparison/comparison_text.h"
#include "app/core/gate/claims.h"
#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/run_insights.h"
#include "app/core/page/page_parts.h"
#include "app/core/report/report.h"
#include "app/core/sql/run_database.h"
#include "profiling/analysis/ranks.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/statistics.h"
#include "profiling/base/text.h"
#include "profiling/causes/what_if.h"
#include "profiling/formats/join_ranks.h"

namespace ws::app {
namespace {

using Json = nlohmann::json;

// "307.2 ± 25.6 µs > 0.0 ns": the number in front, in µs, as a share, in bytes or as it is.
double first_number(const std::string& figure) {
  size_t end = 0;
  const double value = std::stod(figure, &end);
  for (const auto& [unit, factor] : {std::pair<std::string, double>{" ns", 1e-3}, {" µs", 1}, {" ms", 1e3}, {" s", 1e6}, {" %", 0.01}, {" KiB", 1024}, {" MiB", 1048576}}) {
    const size_t noise = figure.find(" ± "), at = figure.find(unit, end);
    if (at == end || (noise == end && at < figure.find_first_of("<>") && figure.find(' ', noise + 4) == at)) return value * factor;
  }
  return value;
}

class OneRun {
 public:
  explicit OneRun(const std::string& path) : path_(path), run_(prof::import_ranks({path})), database_({path}), claims_(run_) {}

  const prof::RunData& data() const { return run_; }
  Json stats(prof::GroupBy by = prof::GroupBy::Name) const { return Json::parse(prof::to_json(prof::run_stats(run_, by), prof::to_string(by))); }
  Json ranks() const { return Json::parse(prof::to_json(prof::rank_report(run_))); }
  Json diff() const {
    const ComparedRun run = compared_run(run_);
    return Json::parse(to_json(compare(run, run)));
  }
  Json page() const {
    std::vector<PageRun> runs;
    runs.push_back({path_, prof::import_ranks({path_}), {}});
    runs.back().report = report_run_of(runs.back().data, path_);
    return Json(page_facts(runs)).at("runs").at(0);
  }
  double sql(const std::string& query) {
    const SqlCell cell = database_.query(query).rows.at(0).at(0);
    if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
    const auto* value = std::get_if<double>(&cell);
    return value ? *value : std::nan("");
  }
  std::vector<double> sql_column(const std::string& query) {
    std::vector<double> all;
    for (const auto& row : database_.query(query).rows) all.push_back(std::get<double>(row.at(0)));
    return all;
  }
  double check(const std::string& what, const std::string& least = "0") { return first_number(claims_.check(what + " >= " + least).figure); }
  prof::WhatIf what_if(const std::string& edits) const {
    return prof::what_if(prof::step_causes(run_), run_.trace, edits.empty() ? std::vector<prof::Edit>{} : prof::parse_edits(edits));
  }

 private:
  std::string path_;
  prof::RunData run_;
  RunDatabase database_;
  ClaimChecker claims_;
};

double measure_in(const Json& diff, const std::string& name) {
  for (const Json& metric : diff.at("metrics"))
    if (metric.at("name") == name) return metric.at("a").get<double>() * (metric.at("unit") == "ms" ? 1e3 : metric.at("unit") == "%" ? 0.01 : metric.at("unit") == "KiB" ? 1024 : metric.at("unit") == "MiB" ? 1048576 : 1);
  return std::nan("");
}

class OneFigure : public testing::TestWithParam<std::string> {
 protected:
  OneRun run_{WARPSIGHT_SOURCE_DIR "/resources/recorded/" + GetParam() + ".wsrun"};
};

constexpr double kShown = 2e-3;  // texts of claims have four digits

TEST_P(OneFigure, StepTime) {
  const Json stats = run_.stats();
  const double us = stats.at("step_time_us").at("median");
  EXPECT_NEAR(stats.at("step").at("median_us"), us, 0.01);
  EXPECT_NEAR(run_.sql("select step_us from runs"), us, 1e-6);
  EXPECT_NEAR(measure_in(run_.diff(), "step time, median"), us, 1e-3 * us);
  EXPECT_NEAR(run_.check("median step", "0 us"), us, kShown * us);
  EXPECT_NEAR(run_.what_if("").measured_us.value, us, 1e-6 * us);
  double sum = 0;
  const Json page = run_.page();
  for (const Json& part : page.at("split")) sum += part.at("us").get<double>();
  EXPECT_NEAR(sum, us, 0.01);
}

TEST_P(OneFigure, PartsOfAStep) {
  const Json stats = run_.stats(), parts = stats.at("step").at("median_parts_us");
  const double us = stats.at("step").at("median_us");
  const Json page = run_.page();
  ASSERT_EQ(page.at("split").size(), parts.size());
  for (const Json& part : page.at("split")) {
    const std::string name = part.at("name");
    EXPECT_NEAR(part.at("us"), parts.at(name), 1e-6) << name;
    EXPECT_NEAR(run_.check("share(" + name + ")", "0 %"), parts.at(name).get<double>() / us, 1e-3) << name;
  }
}

TEST_P(OneFigure, BusyGpuAndMemory) {
  const Json stats = run_.stats(), diff = run_.diff(), page = run_.page();
  const double busy = stats.at("gpu").at("busy");
  EXPECT_NEAR(run_.sql("select gpu_busy from runs"), busy, 1e-6);
  EXPECT_NEAR(measure_in(diff, "GPU busy"), busy, 1e-4);
  EXPECT_NEAR(run_.check("gpu busy", "0 %"), busy, 1e-3);
  for (const auto by : {prof::GroupBy::Op, prof::GroupBy::Layer, prof::GroupBy::Phase, prof::GroupBy::Shape, prof::GroupBy::Line})
    EXPECT_EQ(run_.stats(by).at("gpu").at("busy"), busy) << prof::to_string(by);
  double waits = 0, works = 0;
  for (const auto& [name, us] : stats.at("step").at("median_parts_us").items()) {
    if (name == "waits for a rank") waits += us.get<double>();
    for (const char* work : {"matrix product", "pointwise", "reduction", "loss", "optimizer", "copies", "other kernels", "communication"})
      if (name == work) works += us.get<double>();
  }
  const double us = stats.at("step").at("median_us");
  EXPECT_LE(busy, (us - waits) / us + 1e-6) << "a GPU that waits for a rank is not busy";
  if (waits > 0) {
    EXPECT_NEAR(busy, works / us, 1e-4);
  }
  const double bytes = stats.at("peak_memory_bytes");
  EXPECT_EQ(run_.sql("select peak_bytes from runs"), bytes);
  EXPECT_EQ(page.at("peak_bytes"), bytes);
  if (bytes > 0) {
    EXPECT_NEAR(measure_in(diff, "peak memory"), bytes, 1);
  }
}

TEST_P(OneFigure, StepsAndWhichAreCounted) {
  const Json stats = run_.stats();
  EXPECT_EQ(run_.sql("select count(distinct step) from steps"), stats.at("steps"));
  EXPECT_EQ(run_.sql("select steps from runs"), stats.at("steps"));
  const std::string first = " and ifnull(rank, 0) = (select ifnull(min(rank), 0) from steps)";
  EXPECT_EQ(run_.sql("select count(*) from steps where counted" + first), stats.at("step").at("steps"));
  const std::vector<double> us = run_.sql_column("select step_us from steps where counted" + first);
  if (prof::run_stats(run_.data()).step.longer_launch_us == 0) {  // longer launches count in the step time only
    EXPECT_NEAR(median(us), stats.at("step_time_us").at("median"), 0.02 * stats.at("step_time_us").at("median").get<double>());
  }
  EXPECT_NEAR(std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size()), stats.at("step").at("wall_us"), 1e-3 * stats.at("step").at("wall_us").get<double>());
}

// Numbers with a unit: "2.58 ms", "5 %", "2.1×".
size_t figures_in(const std::string& text) {
  static const std::regex figure("[0-9][0-9.]* ?(ns|µs|ms|s|%|×|B|KiB|MiB|GiB)( |[.,;:)]|$)");
  return static_cast<size_t>(std::distance(std::sregex_iterator(text.begin(), text.end(), figure), std::sregex_iterator()));
}

// The head has the saving and its share, the text one reason, the note how sure.
TEST_P(OneFigure, ACardHasFewFigures) {
  EXPECT_EQ(figures_in("it waits 2.58 ms, 22 % of 11.96 ms, 2.1× as long"), 4u);
  for (const Insight& insight : run_insights(run_.data()).found) {
    const bool acts = !action_of(insight).empty();
    EXPECT_LE(figures_in(insight.headline), acts ? 2u : 1u) << insight.headline;
    EXPECT_LE(figures_in(insight.why), 1u) << insight.why;
    const std::string sure = advice_lines(insight, ProvedPredictions({}, {})).sure;
    EXPECT_LE(figures_in(sure), 1u) << sure;
    if (insight.saves_us.known()) {
      EXPECT_TRUE(sure.starts_with("± ") && sure.ends_with(" · not checked yet")) << sure;
    }
  }
}

TEST_P(OneFigure, AdviceQuotesWhatIf) {
  for (const Insight& insight : run_insights(run_.data()).found)
    if (insight.saves_us.known()) {
      EXPECT_NEAR(run_.what_if(insight.edits).saves_us.value, insight.saves_us.value, 1e-6) << insight.headline;
    }
}

// What would help most is the advice that a person can act on, with the same figures. The split, the calls and the prediction are
// related in one sentence.
TEST_P(OneFigure, WhatWouldHelpMostIsTheAdvice) {
  const Json stats = run_.stats(), parts = stats.at("step").at("median_parts_us");
  const RunInsights all = run_insights(run_.data());
  const std::vector<Insight> can = remedies(all.found, all.facts.step_us);
  const Table table = remedy_table(can, all.facts.step_us);
  EXPECT_NEAR(all.facts.step_us, stats.at("step").at("median_us"), 0.01) << "the bars of the advice show the median step";
  ASSERT_EQ(table.rows.size(), can.size());
  size_t with_saving = 0;
  double before = INFINITY;
  bool unknown = false, small = false;
  for (const Insight& insight : all.found) {
    const std::string saving = saving_text(insight, all.facts.step_us);
    with_saving += saving.empty() ? 0 : 1;
    EXPECT_TRUE(saving.empty() || insight.headline == action_of(insight) + ": " + saving) << insight.headline;
    EXPECT_FALSE(small && !insight.changes_little) << insight.headline << " stands below what is too small to matter";
    EXPECT_FALSE(unknown && !saving.empty() && !insight.changes_little) << "a card without a saving stands before " << insight.headline;
    size_t sentences = 1;
    for (size_t at = insight.why.find(". "); at != std::string::npos; at = insight.why.find(". ", at + 1)) ++sentences;
    EXPECT_LE(sentences, 2u) << insight.why;
    const AdviceLines lines = advice_lines(insight, ProvedPredictions({}, {}));
    EXPECT_FALSE(lines.sure.empty() || (lines.how.empty() && insight.change.empty())) << insight.headline << " does not say what to do, or how sure it is";
    EXPECT_TRUE(std::ranges::count(lines.how, '`') % 2 == 0 && whole_why(insight).find('`') == std::string::npos) << whole_why(insight);
    for (const Insight& other : all.found)
      EXPECT_FALSE(&other != &insight && other.look_at == insight.look_at && other.part == insight.part && insight.of_median && action_of(insight).empty() && !action_of(other).empty())
          << insight.headline << " is a finding about the same part of the split as " << other.headline;
    unknown = unknown || saving.empty(), small = insight.changes_little;
  }
  for (size_t i = 0; i < can.size(); ++i) {
    const Insight& one = can[i];
    const std::string saving = saving_text(one, all.facts.step_us);
    if (saving.empty()) continue;
    --with_saving;
    const double shown = table.rows[i].cells[1].number();
    EXPECT_LE(shown, before) << "the largest saving comes first";
    before = shown;
    if (one.saves_us.known()) {
      EXPECT_NEAR(shown, run_.what_if(one.edits).saves_us.value, 1e-6) << one.headline;
    }
    for (const auto& [name, us] : one.gpu_waits) {
      EXPECT_NEAR(us, parts.at(name), 0.01 * us) << one.headline;
      EXPECT_NE(relation_text(one).find("“" + name + "”"), std::string::npos) << relation_text(one);
    }
  }
  EXPECT_EQ(with_saving, 0u) << "each card with a saving is a row";
}

TEST_P(OneFigure, WhatAPartSavesIfItTookNoTimeIsWhatItsEditSaves) {
  const prof::WhatIf now = run_.what_if("");
  for (const Insight& insight : run_insights(run_.data()).found)
    for (const prof::HelpRow& row : now.rows)
      if (insight.saves_us.known() && prof::edit_of(row) == insight.edits) {
        EXPECT_NEAR(row.gain_us, insight.saves_us.value, 0.01 * insight.saves_us.value) << insight.headline;
      }
  for (const prof::HelpRow& row : now.rows)
    if (row.meaning != prof::Meaning::Idle && row.kind == prof::GroupKind::Cause && row.name != "host outside CUDA") {
      EXPECT_LE(row.now_us, now.measured_us.value) << row.name << ": own time is of one rank, so that it fits into the step";
    }
}

// The card says what the host waits there. Its bar shows the split, in which the GPU works for a part of that.
TEST_P(OneFigure, ALineThatSyncsHasOneTime) {
  const RunInsights all = run_insights(run_.data());
  for (const Insight& insight : all.found)
    if (insight.rule == "sync at this line" && insight.host_waits_us > 0) {
      EXPECT_NE(insight.why.find(": its syncs take " + time_text(insight.host_waits_us, insight.replayed_us.value) + " of the "), std::string::npos) << insight.why;
      EXPECT_EQ(facts_for(insight, all.facts).part(insight.look_at), insight.rank == all.facts.rank ? all.facts.part(insight.look_at) : 0) << "the bar shows the split";
    }
}

TEST_P(OneFigure, Fp32ProductsAreAPartOfAllProducts) {
  const Json step = run_.stats().at("step");
  for (const Insight& insight : run_insights(run_.data()).found)
    if (insight.rule == "fp32 products" && insight.rank <= 0) {
      EXPECT_LE(insight.share, step.at("median_parts_us").at("matrix product").get<double>() / step.at("median_us").get<double>() + 0.005) << "they are a part of all products";
    }
}

INSTANTIATE_TEST_SUITE_P(Shipped, OneFigure, testing::Values("mnist-direct", "mnist-arena", "mnist-graph", "mnist-persistent", "pytorch-cnn", "pytorch-gpt-2-ranks", "pytorch-slow-loader"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(OneFigureOfRanks, WaitsAndTransfers) {
  OneRun run(WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-gpt-2-ranks.wsrun");
  const Json ranks = run.ranks(), parts = run.stats().at("step").at("median_parts_us"), page = run.page().at("ranks"), diff = run.diff();
  const double waits = parts.at("waits for a rank"), transfers = parts.at("communication");
  EXPECT_NEAR(ranks.at("ranks").at(0).at("wait_us"), waits, 0.01);
  EXPECT_NEAR(ranks.at("ranks").at(0).at("exposed_us"), transfers, 0.01);
  EXPECT_NEAR(ranks.at("ranks").at(1).at("caused_us"), waits, 0.01) << "rank 1 is the only one that rank 0 can wait for";
  EXPECT_EQ(page, ranks);
  EXPECT_NEAR(run.sql("select wait_us from ranks where rank = 0"), waits, 0.01);
  EXPECT_NEAR(measure_in(diff, "longest wait for a rank"), waits, 0.01 * waits);
  EXPECT_NEAR(run.check("rank wait", "0 us"), waits, kShown * waits);
  EXPECT_NEAR(ranks.at("straggler").at("cost_us"), waits, 0.01);
  for (const Insight& insight : run_insights(run.data()).found)
    if (insight.rule == "fp32 products") {
      EXPECT_EQ(insight.rank, 1) << "rank 0 waits for it";
    }
  for (const Insight& insight : run_insights(run.data()).found)
    if (insight.rule == "late rank") {
      const std::string finding = ranks.at("finding");  // "rank 0 waits 3.56 ms of the median step (30 %) for rank 1, …": the reason and the figure of the card
      EXPECT_NE(insight.why.find(finding.substr(finding.find(" for rank "))), std::string::npos) << insight.why;
      EXPECT_NE(insight.more.find(time_text(waits) + " of the median step."), std::string::npos) << insight.more;
      EXPECT_NEAR(insight.part_us, waits, 0.01);
      EXPECT_NEAR(insight.step_us, run.sql("select step_us from runs"), 0.01);
    }
}

// The critical path while no GPU works has the gaps of the split in it.
TEST(OneFigureOfLaunchGaps, TheirCausesAreNamedWhereTheySumToThem) {
  OneRun run(WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-cnn.wsrun");
  const double gaps = run.stats().at("step").at("median_parts_us").at("launch gaps");
  const prof::WhatIf now = run.what_if("");
  EXPECT_EQ(prof::launch_gaps_text(now, gaps), "The GPU waits for host outside CUDA and launch calls: these are the “launch gaps” of the split, " + time_text(gaps) + ".");
  EXPECT_EQ(prof::launch_gaps_text(now, 1.5 * gaps), "");
  EXPECT_EQ(prof::launch_gaps_text(now, 0), "");
  for (const prof::PathShare& share : now.path) EXPECT_LE(share.gpu_waits_us, share.path_us + 1e-6) << share.name;
}

TEST(OneFigureOfAllocations, TheThreeFiguresAreRelated) {
  OneRun run(WARPSIGHT_SOURCE_DIR "/resources/recorded/mnist-direct.wsrun");
  const std::vector<Insight> found = run_insights(run.data()).found;
  const auto calls = std::ranges::find(found, "no allocator calls", &Insight::edits);
  ASSERT_NE(calls, found.end());
  const prof::WhatIf now = run.what_if("");
  const auto row = std::ranges::find_if(now.rows, [](const prof::HelpRow& one) { return one.kind == prof::GroupKind::Cause && one.name == "allocator calls"; });
  ASSERT_NE(row, now.rows.end());
  EXPECT_NEAR(calls->calls_work_us, row->now_us, 1e-6) << "own time";
  const double waits = run.stats().at("step").at("median_parts_us").at("allocator calls");
  ASSERT_EQ(calls->gpu_waits.size(), 1u);
  EXPECT_NEAR(calls->gpu_waits[0].second, waits, 0.01);
  EXPECT_LT(calls->calls_work_us, calls->calls_us) << "the calls also wait for the GPU";
  EXPECT_LT(waits, calls->calls_us) << "the GPU still works during the rest of the calls";
  const std::string text = relation_text(*calls);
  for (const double us : {calls->calls_us, calls->calls_work_us, waits}) EXPECT_NE(text.find(time_text(us)), std::string::npos) << text;
}

TEST(Relation, AStepSavesMoreOrLessThanItShows) {
  Insight insight;
  insight.saves_us = {100, 10}, insight.gpu_waits = {{"sync", 95}};
  EXPECT_EQ(relation_text(insight), "“sync” takes 95.0 µs in the split. A step saves about that.");
  insight.saves_us = {80, 30};
  EXPECT_EQ(relation_text(insight), "“sync” takes 95.0 µs in the split. A step saves 80.0 ± 30.0 µs.");
  insight.saves_us = {100, 10};
  insight.gpu_waits = {{"sync", 50}, {"launch gaps", 20}};
  EXPECT_EQ(relation_text(insight), "“sync” and “launch gaps” take 70.0 µs in the split. A step saves more, because what follows begins earlier.");
  insight.host_waits_us = 300;
  EXPECT_EQ(relation_text(insight), "The host waits 300.0 µs there, but the GPU works for most of it: a step saves 100.0 µs.");
  insight.saves_us = {200, 10};
  EXPECT_EQ(relation_text(insight), "The host waits 300.0 µs there, but the GPU works for a part of it: a step saves 200.0 µs.");
  insight.saves_us = {290, 10};
  EXPECT_EQ(relation_text(insight), "The host waits 300.0 µs there. A step saves about that.");
  insight.host_waits_us = 0, insight.saves_us = {40, 10};
  EXPECT_EQ(relation_text(insight), "“sync” and “launch gaps” take 70.0 µs in the split. A step saves 40.0 µs of that: for the rest it then waits for something else.");
  insight.changes_little = true, insight.replayed_us = {300, 50};
  EXPECT_TRUE(relation_text(insight).ends_with("else. This run cannot measure so small a saving: its median step is known to ± 50.0 µs.")) << relation_text(insight);
  insight.saves_us = {};
  EXPECT_EQ(relation_text(insight), "");
}

TEST(OneFigureOfRanks, AFigureOfOneRankNamesIt) {
  OneRun run(WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-gpt-2-ranks.wsrun");
  int named = 0;
  for (const Insight& insight : run_insights(run.data()).found) {
    EXPECT_TRUE(insight.rule == "late rank" || insight.rank >= 0) << insight.headline;
    if (insight.rank < 0) continue;
    ++named;
    EXPECT_NE((insight.headline + insight.why).find("ank " + std::to_string(insight.rank) + ": "), std::string::npos) << insight.headline << insight.why;
  }
  EXPECT_GE(named, 2);
}

// All are of the median step: the table of collectives sums to the waits and to the exposed transfers of the ranks.
TEST(OneFigureOfRanks, CollectivesSumToTheWaitOfTheRank) {
  OneRun run(WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-gpt-2-ranks.wsrun");
  const Json ranks = run.ranks();
  const double wait = ranks.at("ranks").at(0).at("wait_us");
  double sum = 0, exposed = 0;
  for (const Json& row : ranks.at("collectives")) sum += row.at("wait_us").get<double>(), exposed += row.at("exposed_us").get<double>();
  EXPECT_NEAR(sum, wait, 0.1) << "rank 1 waits for nobody";
  EXPECT_NEAR(exposed, ranks.at("exposed_us").get<double>(), 0.1);
  const std::string finding = ranks.at("finding");
  EXPECT_TRUE(finding.starts_with("rank 0 waits " + time_text(wait) + " of the median step (")) << finding;
  for (const Insight& insight : run_insights(run.data()).found)
    if (insight.rule == "late rank") {
      ASSERT_EQ(insight.gpu_waits.size(), 1u);
      EXPECT_NEAR(insight.gpu_waits[0].second, wait, 0.01);
    }
}

// Rank 1 has more work, and that is why it is late.
TEST(OneFigureOfRanks, TheReasonIsNamed) {
  OneRun run(WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-gpt-2-ranks.wsrun");
  const double ratio = run.sql("select max(computes_us) / min(computes_us) from ranks");
  EXPECT_GT(ratio, 1.5);
  EXPECT_NE(run.ranks().at("finding").get<std::string>().find(" for rank 1, which computes " + fixed(ratio, 1) + "× as long"), std::string::npos) << run.ranks().at("finding");
}

}  // namespace
}  // namespace ws::app

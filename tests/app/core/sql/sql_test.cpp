// SQL about runs: answers, refusals, bounds, and queries made at random.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <time.h>

#include <filesystem>
#include <random>

#include "app/core/sql/sql_examples.h"
#include "app/core/sql/sql_text.h"
#include "profiling/base/failure.h"
#include "profiling/formats/join_ranks.h"
#include "tests/support/failure_text.h"
#include "tests/support/machine.h"
#include "tests/support/made_stalls.h"
#include "tests/support/sanitizers.h"

namespace ws::app {
namespace {

using testing::HasSubstr;

// Calls and the kernels that they launch, `steps` times.
SqlRun made_run(const std::string& name, uint32_t steps, uint32_t kernels_each = 3) {
  SqlRun run{name, name + ".wsrun", {}};
  prof::Trace& trace = run.data.trace;
  const auto stream = trace.track(prof::TrackKind::Stream, "stream 7", "GPU 0");
  const auto calls = trace.track(prof::TrackKind::Api, "thread 1 calls", "CPU"), marks = trace.track(prof::TrackKind::Steps, "steps", "CPU");
  trace.ops.push_back({.name = "dW1", .detail = "gemm", .layer = "fc1", .phase = "backward", .meaning = prof::Meaning::Matrix});
  for (uint32_t step = 0; step < steps; ++step) {
    prof::TimeNs at = int64_t{step} * 10'000;
    for (uint32_t k = 0; k < kernels_each; ++k, at += 1000) {
      prof::Span span;
      span.step = step + 1, span.correlation = step * kernels_each + k + 1, span.op = 1;
      span.start = at, span.duration = 400, span.kind = static_cast<uint8_t>(prof::SpanKind::Api), span.name = trace.intern("cudaLaunchKernel");
      trace.append(calls, span);
      span.start = at + 600, span.duration = 300 + k, span.kind = static_cast<uint8_t>(prof::SpanKind::Kernel), span.name = trace.intern("kernel_" + std::to_string(k));
      trace.append(stream, span);
    }
    prof::Span mark;
    mark.start = int64_t{step} * 10'000, mark.duration = 9000, mark.step = step + 1, mark.kind = static_cast<uint8_t>(prof::SpanKind::Step), mark.name = trace.intern("step");
    trace.append(marks, mark);
    run.data.metrics.push_back({step, step * 1e-5, 2.0 / (step + 1), 0.5});
  }
  run.data.summary.steps = steps;
  return run;
}

SqlRuns two_runs() {
  SqlRuns runs;
  runs.push_back(made_run("a", 4)), runs.push_back(made_run("b", 2));
  return runs;
}

SqlRuns shipped(const std::string& name) {
  SqlRuns runs;
  runs.push_back({name, name + ".wsrun", prof::import_ranks({WARPSIGHT_SOURCE_DIR "/resources/recorded/" + name + ".wsrun"})});
  return runs;
}

std::string refusal(RunDatabase& database, const std::string& sql, const SqlBounds& bounds = {}) {
  return test::failure_text([&] { database.query(sql, bounds); });
}

TEST(Sql, AnswersFromSeveralRuns) {
  RunDatabase database(two_runs());
  EXPECT_EQ(to_csv(database.query("select run, count(*) as n, sum(duration_ns) as ns from kernels group by run")), "run,n,ns\na,12,3612\nb,6,1806\n");
  EXPECT_EQ(to_csv(database.query("select short_name, op, module, phase from kernels where run = 'a' and step = 2 order by start_ns limit 1")),
            "short_name,op,module,phase\nkernel_0,dW1,fc1,backward\n");
  EXPECT_EQ(to_csv(database.query("select round(loss, 2) from losses where run = 'a' and \"of\" = 'train' and step = 3")), "\"round(loss, 2)\"\n0.5\n");
}

// A program of others marks its steps, and not which span belongs to which.
TEST(Sql, KernelsOfAnyProgramHaveTheirStep) {
  const std::string path = WARPSIGHT_SOURCE_DIR "/resources/recorded/pytorch-cnn.wsrun";
  SqlRuns runs;
  runs.push_back({"cnn", path, prof::import_ranks({path})});
  RunDatabase database(std::move(runs));
  EXPECT_EQ(to_csv(database.query("select count(*) as steps, min(n) as least, max(n) as most from (select count(*) as n from kernels where step is not null group by step)")),
            "steps,least,most\n40,80,80\n");
}

// The files were recorded before some of these kernels were known.
TEST(Sql, ConvolutionsAndNormsOfShippedRunsHaveTheirMeaning) {
  for (const char* name : {"pytorch-cnn", "pytorch-slow-loader"}) {
    RunDatabase database(shipped(name));
    EXPECT_EQ(database.query("select name from kernels join spans using (run, start_ns, name) where meaning = 'other kernels'").rows.size(), 0U) << name;
    EXPECT_EQ(to_csv(database.query("select distinct meaning from spans where kind = 'kernel' and (name like '%wgrad%' or name like '%dgrad%' or name like '%fprop%')")), "meaning\nmatrix product\n");
  }
}

// One kernel makes the gradients and passes them to the optimizer. Older files count it as optimizer.
TEST(Sql, GradientsOfAShippedRunAreMatrixProducts) {
  RunDatabase database(shipped("mnist-graph"));
  EXPECT_EQ(to_csv(database.query("select distinct meaning from spans where kind = 'kernel' and name like '%grad_update%'")), "meaning\nmatrix product\n");
}

TEST(Sql, FindsWhatACallLaunched) {
  RunDatabase database(two_runs());
  const SqlTable table = database.query("select k.start_ns - c.start_ns from kernels k join spans c on c.run = k.run and c.correlation = k.correlation and c.kind = 'call'");
  ASSERT_EQ(table.rows.size(), 18U);
  for (const auto& row : table.rows) EXPECT_EQ(std::get<int64_t>(row[0]), 600);
  EXPECT_EQ(database.query("select * from kernels where correlation = '1'").rows.size(), 0U);
  EXPECT_EQ(database.query("select * from kernels where correlation = 1.0").rows.size(), 2U);
  EXPECT_EQ(database.query("select * from kernels where correlation = 1.5").rows.size(), 0U);
}

TEST(Sql, EachViewCanBeRead) {
  RunDatabase database(two_runs());
  for (const SqlView& view : sql_views()) {
    const SqlTable table = database.query("select * from " + view.name);
    ASSERT_EQ(table.columns.size(), view.columns.size()) << view.name;
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), view.columns.size());
    EXPECT_THAT(views_text(), HasSubstr(view.name + ": "));
  }
}

TEST(Sql, SamplesByKernelAndLine) {
  SqlRuns runs;
  runs.push_back({"x", "x.wsrun", prof::MadeStalls().run});
  RunDatabase database(std::move(runs));
  const SqlTable table = database.query("select place, reason, grp, sum(samples) from stalls where kernel like 'bias%' group by place, reason order by 4 desc limit 2");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0], (std::vector<SqlCell>{"my.cu:18", "global memory", "waits for memory", int64_t{600}}));
  EXPECT_EQ(table.rows[1], (std::vector<SqlCell>{"my.cu:12", "barrier", "barrier", int64_t{200}}));
  EXPECT_EQ(database.query("select sum(samples) from stalls").rows[0][0], SqlCell(int64_t{1900}));
  EXPECT_EQ(database.query("select count(*) from stalls where line_number is null").rows[0][0], SqlCell(int64_t{2})) << "a library without line info";
}

TEST(Sql, OnlyReads) {
  RunDatabase database(two_runs());
  const auto folder = std::filesystem::temp_directory_path() / "sql_only_reads";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string file = (folder / "written.db").string();
  for (const std::string& sql : std::vector<std::string>{"insert into runs values (1)", "delete from kernels", "update steps set step = 1", "create table t(a)", "drop table runs",
                                "attach '" + file + "' as other", "vacuum into '" + file + "'", "pragma journal_mode = wal", "pragma temp_store_directory = '/'",
                                "begin", "create virtual table t using fts5(x)", "explain select 1", "select load_extension('" + file + "')",
                                "create temp table t as select * from runs", "reindex", "analyze", "with x as (select 1) insert into runs select * from x"})
    EXPECT_NE(refusal(database, sql), "") << sql;
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_EQ(database.query("select count(*) from runs").rows[0][0], SqlCell(int64_t{2})) << "and it still answers";
}

TEST(Sql, ReportsWhatIsWrong) {
  RunDatabase database(two_runs());
  EXPECT_THAT(refusal(database, ""), HasSubstr("empty"));
  EXPECT_THAT(refusal(database, "select 1; select 2"), HasSubstr("one statement"));
  EXPECT_THAT(refusal(database, "select * from no_such"), HasSubstr("The views are runs, steps, spans"));
  EXPECT_THAT(refusal(database, "create table t(a)"), HasSubstr("only read"));
  EXPECT_THROW(RunDatabase(std::vector<std::string>{"/no/such.wsrun"}), Failure);
}

TEST(Sql, IsBounded) {
  RunDatabase database(two_runs());
  const SqlBounds brief{.time = std::chrono::milliseconds(50), .rows = 100};
  EXPECT_THAT(refusal(database, "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n", brief), HasSubstr("took longer"));
  EXPECT_THAT(refusal(database, "select a.start_ns from spans a, spans b, spans c", brief), HasSubstr("more than 100 rows"));
  const SqlBounds small{.time = std::chrono::seconds(20), .bytes = 8 << 20};
  EXPECT_THAT(refusal(database, "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select group_concat(hex(randomblob(1000))) from n", small),
              testing::AnyOf(HasSubstr("memory"), HasSubstr("too large")));
  EXPECT_THAT(refusal(database, "select zeroblob(2000000000)"), HasSubstr("too large"));
  EXPECT_EQ(database.query("select count(*) from runs").rows.size(), 1U);
}

TEST(Sql, RandomQueriesNeitherCrashNorWrite) {
  RunDatabase database(two_runs());
  const std::vector<std::string> words{"select", "*", "from", "where", "group by", "order by", "limit", "(", ")", ",", "=", "<", "like", "in", "join", "on", "left", "with", "recursive",
                                       "as", "union all", "count(*)", "sum(", "max(", "lead(", "over (", "partition by", "null", "1", "-1", "1e308", "''", "'x'", "x'00'", "a", "b", "runs", "steps",
                                       "spans", "kernels", "ops", "modules", "lines", "losses", "memory", "allocations", "choices", "insights", "run", "step", "name", "duration_ns", "start_ns",
                                       "correlation", "case", "when", "then", "end", "distinct", "having", "cast(", "as text", "json_extract(", "printf(", "'%s'", "glob", "is not", ";", "--", "/*",
                                       "insert into", "attach", "pragma", "values", "rowid", "\"of\"", "desc", "exists", "between", "and", "not", "||", "collate nocase", "\xff", "\xe2\x80\xae"};
  const std::vector<std::string> whole{"select run, count(*) from kernels group by run", "select * from steps join losses on losses.step = steps.step and losses.run = steps.run",
                                       "with t as (select * from spans) select name, sum(duration_ns) from t group by name order by 2 desc limit 3",
                                       "select step, lead(start_ns) over (partition by lane order by start_ns) from kernels"};
  const auto before = std::filesystem::current_path(), folder = std::filesystem::temp_directory_path() / "sql_random_queries";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::filesystem::current_path(folder);
  std::mt19937 random(50);
  const auto any = [&random](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
  const SqlBounds brief{.time = std::chrono::milliseconds(20), .rows = 1000, .bytes = 16 << 20};
  size_t answered = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string sql;
    if (i % 2 == 0) {
      sql = "select ";
      for (size_t k = 0; k < 2 + any(14); ++k) sql += words[any(words.size())] + " ";
    } else {
      sql = whole[any(whole.size())];
      for (size_t k = 0; k < 1 + any(3); ++k) sql.replace(any(sql.size()), any(6), any(3) == 0 ? "" : words[any(words.size())]);
    }
    if (refusal(database, sql, brief).empty()) ++answered;
  }
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "no query makes a file";
  EXPECT_GT(answered, 100U) << "most are nonsense, but not all";
  EXPECT_EQ(database.query("select count(*) from runs").rows[0][0], SqlCell(int64_t{2}));
}

TEST(Sql, StopsWhenAsked) {
  RunDatabase database(two_runs());
  const auto cancelled = std::make_shared<std::atomic<bool>>(true);
  const SqlBounds bounds{.cancelled = cancelled};
  EXPECT_THAT(refusal(database, "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n", bounds), HasSubstr("was stopped"));
  *cancelled = false;
  EXPECT_EQ(database.query("select count(*) from runs", bounds).rows.size(), 1U);
}

TEST(Sql, TheAnswerItselfIsBounded) {
  RunDatabase database(two_runs());
  const SqlBounds small{.bytes = 4 << 20};
  EXPECT_THAT(refusal(database, "with recursive n(i) as (select 1 union all select i + 1 from n where i < 900) select printf('%10000d', i) from n", small), HasSubstr("memory"));
}

TEST(Sql, ATableHasOneKindAColumn) {
  const Table table = to_table({{"name", "count", "share", "mixed", "none"},
                                {{std::string("a"), int64_t{3}, 0.5, int64_t{1}, {}}, {std::string("b"), {}, int64_t{2}, std::string("x"), {}}}});
  using Kind = Table::Kind;
  const std::vector<Kind> kinds{Kind::Text, Kind::Count, Kind::Number, Kind::Text, Kind::Count};
  for (size_t c = 0; c < kinds.size(); ++c) EXPECT_EQ(table.columns[c].kind, kinds[c]) << c;
  EXPECT_FALSE(table.rows[1].cells[1].known());
  EXPECT_EQ(cell_text(table, 0, 3), "1");
}

TEST(Sql, ExamplesEqualTheManual) {
  const auto made = sql_examples("### 1. What?\n\n```console\n$ warpsight sql a.wsrun b.wsrun \"select 'x'\n> from runs\"\nanswer\n```\n### 2. No query\n");
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].question, "What?");
  EXPECT_EQ(made[0].query, "select 'x'\nfrom runs");
  RunDatabase database(two_runs());
  ASSERT_EQ(shipped_sql_examples().size(), 20U);
  for (const SqlExample& example : shipped_sql_examples()) EXPECT_EQ(refusal(database, example.query), "") << example.question;
}

// Processor time, because the machine may do something else. The first query on a view makes its rows.
TEST(Sql, AMillionSpans) {
  SqlRuns runs;
  runs.push_back(made_run("large", 10'000, 50));
  RunDatabase database(std::move(runs));
  for (const SqlExample& example : shipped_sql_examples()) {
    const double begin = test::cpu_seconds();
    database.query(example.query);
    const double took = test::cpu_seconds() - begin;
    std::printf("%.2f s  %s\n", took, example.question.c_str());
    EXPECT_LT(took, test::kSanitized ? 60.0 : test::busy()) << example.query;
  }
}

}  // namespace
}  // namespace ws::app

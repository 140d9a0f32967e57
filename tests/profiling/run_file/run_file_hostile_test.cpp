// Run files that somebody made to exhaust the reader: refused or cut short in a moment, with a sentence.
#include <gmock/gmock.h>

#include <fstream>

#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "profiling/run_file/sqlite.h"
#include "tests/profiling/run_file/run_file_support.h"
#include "tests/support/failure_text.h"
#include "tests/support/machine.h"

namespace ws::prof {
namespace {

using ::testing::HasSubstr;

class HostileRunFile : public RunFile {
 protected:
  void SetUp() override {
    RunFile::SetUp();
    write_run(path, MadeTrace(100).trace);
  }
  void change(const char* sql) { Database(path, Database::Mode::Update).exec(sql); }
  std::string refusal() const { return test::failure_text([&] { RunFileReader(path).metrics(); }); }
};

TEST_F(HostileRunFile, TagsOfAnyDepth) {
  change(("INSERT OR REPLACE INTO meta VALUES('tags', '" + std::string(300'000, '[') + "'), ('time_marks', '" +
          std::string(300'000, '[') + "'), ('machine', '" + std::string(300'000, '{') + "')")
             .c_str());
  EXPECT_TRUE(read_run_summary(path).tags.empty());
  change(("UPDATE meta SET value = '" + std::string(300'000, '[') + std::string(300'000, ']') + "' WHERE key = 'tags'").c_str());
  EXPECT_TRUE(read_run_summary(path).tags.empty());
}

TEST_F(HostileRunFile, ColumnsThatAreComputed) {
  change("ALTER TABLE meta RENAME TO old; CREATE TABLE meta(key TEXT PRIMARY KEY, small TEXT, value TEXT GENERATED ALWAYS "
         "AS (printf('%.*c', 3000000, small)) VIRTUAL); INSERT INTO meta(key, small) SELECT key, 'x' FROM old");
  EXPECT_THAT(refusal(), HasSubstr("columns that are computed; it is refused"));
  EXPECT_THROW(read_run_summary(path), Failure);
}

TEST_F(HostileRunFile, TablesThatRunCode) {
  change("DROP TABLE metrics; CREATE VIRTUAL TABLE metrics USING rtree(id, a, b)");
  EXPECT_THAT(refusal(), HasSubstr("runs code when it is read; it is refused"));
}

// Interior pages whose cells all lead to one next page: a few pages are read as billions of rows.
TEST_F(HostileRunFile, PagesThatShareTheirChildren) {
  for (int i = 0; i < 40; ++i) change("INSERT INTO metrics(step, wall_s, loss, accuracy) VALUES(1, 1, 1, 1)");
  Database db(path, Database::Mode::Update);
  db.exec("CREATE TABLE room(x); INSERT INTO room VALUES(zeroblob(100000))");
  const auto page_size = static_cast<size_t>(db.integer("PRAGMA page_size"));
  const auto leaf = static_cast<uint32_t>(db.integer("SELECT rootpage FROM sqlite_master WHERE name = 'metrics'"));
  const auto first_page = static_cast<uint32_t>(db.integer("SELECT rootpage FROM sqlite_master WHERE name = 'room'"));
  constexpr uint32_t kLevels = 6;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (uint32_t level = 0; level < kLevels; ++level) {  // the blob's overflow pages stand behind its root
    const uint32_t here = first_page + 1 + level, below = level == 0 ? leaf : here - 1;
    std::string page(page_size, '\0');
    constexpr size_t kCells = 400, kCell = 5;
    const auto put = [&page](size_t at, size_t bytes, uint32_t value) {
      for (size_t i = 0; i < bytes; ++i) page[at + i] = static_cast<char>(value >> 8 * (bytes - 1 - i));
    };
    put(0, 1, 5), put(3, 2, kCells), put(5, 2, static_cast<uint32_t>(page_size - kCells * kCell)), put(8, 4, below);
    for (size_t i = 0; i < kCells; ++i) {
      const size_t cell = page_size - (i + 1) * kCell;
      put(12 + 2 * i, 2, static_cast<uint32_t>(cell)), put(cell, 4, below), put(cell + 4, 1, 1);
    }
    file.seekp(static_cast<std::streamoff>((here - 1) * page_size));
    file.write(page.data(), static_cast<std::streamsize>(page.size()));
  }
  file.close();
  sqlite3* plain = nullptr;  // our own connections may not change the schema
  ASSERT_EQ(sqlite3_open(path.c_str(), &plain), SQLITE_OK);
  const std::string change_root = "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = " +
                                  std::to_string(first_page + kLevels) + " WHERE name = 'metrics'";
  EXPECT_EQ(sqlite3_exec(plain, change_root.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(plain);
  const double before = test::cpu_seconds();
  RunFileReader reader(path);
  EXPECT_LT(reader.metrics().size(), std::filesystem::file_size(path));
  ASSERT_FALSE(reader.problems().empty());
  EXPECT_THAT(reader.problems().front(), HasSubstr("more rows than fit into its pages"));
  EXPECT_LT(test::cpu_seconds() - before, 5);
}

TEST_F(HostileRunFile, ASmallBlockThatClaimsMuch) {
  set_memory_limit(1 << 20);
  RunFileReader reader(path);
  Trace trace = reader.trace();
  change("UPDATE blocks SET count = 65000");
  RunFileReader again(path);
  Trace claimed = again.trace();
  again.fill(claimed);
  set_memory_limit(0);
  ASSERT_FALSE(again.problems().empty());
  EXPECT_THAT(again.problems().front(), HasSubstr("--limit allows more"));
}

// Whoever renames a run writes into its tables, whose conditions come from the file.
TEST_F(HostileRunFile, AConditionThatComputesALongValue) {
  change("ALTER TABLE meta RENAME TO old; CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT, CHECK(length(hex(zeroblob("
         "50000000))) > 0))");
  EXPECT_THROW(rename_run(path, "a"), Failure);
}

TEST_F(HostileRunFile, RowsKeepToTheMemoryLimit) {
  const std::string numbers = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 30000) ";
  change(("INSERT INTO metrics(step, wall_s, loss, accuracy) " + numbers + "SELECT i, i, 1, 1 FROM c; INSERT INTO "
          "evaluations(step, epoch, wall_s, test_loss, test_accuracy) " + numbers + "SELECT i, 1, i, 1, 1 FROM c; INSERT INTO "
          "marks(step, wall_s, text) " + numbers + "SELECT i, i, 'lr' FROM c; INSERT INTO step_windows(first_step, steps, begin, "
          "\"end\", matrix_ns, pointwise_ns, loss_ns, optimizer_ns, copy_ns, allocation_ns, sync_ns, launch_ns, idle_ns, other_ns, "
          "communication_ns, allocations, frees) " + numbers + "SELECT i, 1, i, i + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM c")
             .c_str());
  set_memory_limit(1 << 20);
  RunFileReader reader(path);
  const size_t metrics = reader.metrics().size(), evaluations = reader.evaluations().size();
  const size_t marks = reader.marks().size(), windows = reader.step_windows().size();
  set_memory_limit(0);
  for (const size_t rows : {metrics, evaluations, marks, windows}) EXPECT_LT(rows, 30'000u);
  ASSERT_FALSE(reader.problems().empty());
  EXPECT_THAT(reader.problems().front(), HasSubstr("--limit allows more"));
}

// A curve's axis ends at the largest time.
TEST_F(HostileRunFile, TimesAreNumbers) {
  change("INSERT INTO metrics(step, wall_s, loss, accuracy) VALUES(1, 9e999, 1, 1), (2, -9e999, 1, 1), (3, 1e300, 1, 1); INSERT "
         "INTO evaluations(step, epoch, wall_s, test_loss, test_accuracy) VALUES(1, 9e999, 9e999, 1, 1); INSERT INTO "
         "marks(step, wall_s, text) VALUES(1, 9e999, 'lr')");
  RunFileReader reader(path);
  std::vector<double> times;
  for (const Metric& metric : reader.metrics()) times.push_back(metric.wall_s);
  EXPECT_THAT(times, testing::ElementsAre(0, 0, testing::Gt(1e9)));
  EXPECT_LT(times.back(), 1e12);
  ASSERT_EQ(reader.evaluations().size(), 1u);
  EXPECT_EQ(reader.evaluations().front().wall_s, 0);
  EXPECT_EQ(reader.evaluations().front().epoch, 0);
  ASSERT_EQ(reader.marks().size(), 1u);
  EXPECT_EQ(reader.marks().front().wall_s, 0);
}

// A table looks at the name of each span.
TEST_F(HostileRunFile, ALongNameIsCut) {
  change("UPDATE names SET value = printf('%.*c', 3000000, 'n')");
  RunFileReader reader(path);
  const Trace trace = reader.trace();
  for (size_t i = 0; i < trace.name_count(); ++i) EXPECT_LE(trace.name(NameId{static_cast<uint32_t>(i)}).size(), size_t{1} << 16);
}

// The number of a track becomes a part of the numbers of its blocks.
TEST_F(HostileRunFile, ATrackOfAnyNumber) {
  change("INSERT INTO tracks VALUES(9223372036854775807, 1, 'far', 'GPU 0', 0, -1, 1), (-5, 1, 'below', 'GPU 0', 0, -1, 1)");
  RunFileReader reader(path);
  Trace trace = reader.trace();
  for (const Track& track : trace.tracks()) EXPECT_THAT(track.name, testing::AllOf(testing::Ne("far"), testing::Ne("below")));
  EXPECT_GT(reader.fill(trace), 0u);
  EXPECT_THAT(reader.problems(), testing::IsEmpty());
}

TEST_F(HostileRunFile, AnIdIsNoSize) {
  change("INSERT INTO names VALUES(4000000, 'far')");
  RunFileReader reader(path);
  EXPECT_LT(reader.trace().name_count(), 10'000u);
}

}  // namespace
}  // namespace ws::prof

// One table in four forms: printed, CSV, HTML and JSON.
#include "profiling/base/table.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace ws {
namespace {

using Kind = Table::Kind;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

Table some_table() {
  Table table{{{"us", "mean", "µs", Kind::Time, 2, 8, ""},
               {"share", "time", "%", Kind::Percent, 1, 7, ""},
               {"bytes", "size", "", Kind::Bytes, 0, 9, "", false, true},
               {"place", "on", "", Kind::Text, 0, 6, ""},
               {"name", "kernel", "", Kind::Text, 0, 1, ""},
               {"calls", "calls", "", Kind::Count, 0, 0, ""}}, {}};
  table.rows.push_back({{1234.5, 0.25, 2048, "SM 1", "gemm<float>", 3}});
  table.rows.push_back({{kUnknown, 0.75, {}, "SM 20", "a \"b\", c\n", 40}});
  return table;
}

TEST(Table, IsPrintedInColumns) {
  EXPECT_EQ(to_text(some_table()),
            " mean µs  time %      size  on     kernel\n"
            " 1234.50    25.0   2.0 KiB  SM 1   gemm<float>\n"
            "       –    75.0         –  SM 20  a \"b\", c \n");
}

TEST(Table, ColumnsWithoutAnyValueAreNotPrinted) {
  Table table = some_table();
  table.rows[0].cells[2] = {};
  EXPECT_TRUE(to_text(table, 2).starts_with("   mean µs  time %  on     kernel\n   1234.50    25.0  SM 1   gemm<float>\n"));
  table.rows.clear();
  EXPECT_EQ(to_text(table), " mean µs  time %  on     kernel\n");
}

TEST(Table, ATextMayStandForAValueAndBeMarked) {
  Table table{{{"limit", "limit", "", Kind::Percent, 1, 14, ""}}, {}};
  Table::Cell cell(0.5);
  cell.text = "50.0 % threads", cell.noted = true;
  table.rows.push_back({{cell}});
  EXPECT_EQ(to_text(table), "         limit\n50.0 % threads*\n");
  EXPECT_EQ(to_csv(table), "limit\n0.5\n");
}

TEST(Table, SignsAndDecimals) {
  Table table{{{"d", "d", "", Kind::Number, 3, 8, "", true}, {"n", "n", "", Kind::Number, 1, 8, ""}, {"s", "s", "", Kind::Significant, 1, 8, ""}}, {}};
  table.rows = {{{0.5, 12.25, 0.01934}}, {{-0.25, 1.5, 2'360'000.0}}};
  choose_decimals(table);
  EXPECT_EQ(table.columns[1].decimals, 1);
  EXPECT_EQ(cell_text(table, 0, 0), "+0.50");
  EXPECT_EQ(cell_text(table, 1, 0), "-0.25");
  EXPECT_EQ(cell_text(table, 0, 2), "0.0193");
  EXPECT_EQ(cell_text(table, 1, 2), "2.36 M");
  table.rows = {{{3.0, 1200.5, 1}}};
  choose_decimals(table);
  EXPECT_EQ(table.columns[0].decimals, 0) << "whole numbers";
  EXPECT_EQ(cell_text(table, 0, 1), "1200") << "large numbers";
}

TEST(Table, CsvHasWholeNumbersAndQuotesWhatNeedsIt) {
  EXPECT_EQ(to_csv(some_table()),
            "us,share,bytes,place,name,calls\n1234.5,0.25,2048,SM 1,gemm<float>,3\n,0.75,,SM 20,\"a \"\"b\"\", c\n\",40\n");
}

TEST(Table, CsvHasNoFormulaAndKeepsNegativeNumbers) {
  Table table{{{"name", "kernel", "", Kind::Text, 0, 1, ""}, {"delta_us", "delta", "µs", Kind::Time, 2, 8, ""}}, {}};
  table.rows = {{{"=1+1", -1.5}}, {{"-x", int64_t{-3}}}};
  EXPECT_EQ(to_csv(table), "name,delta_us\n\"'=1+1\",-1.5\n\"'-x\",-3\n");
}

TEST(Table, JsonHasNullWhereNothingIsKnown) {
  EXPECT_EQ(rows_json(some_table()).dump(),
            R"([{"us":1234.5,"share":0.25,"bytes":2048,"place":"SM 1","name":"gemm<float>","calls":3},)"
            R"({"us":null,"share":0.75,"bytes":null,"place":"SM 20","name":"a \"b\", c\n","calls":40}])");
}

TEST(Table, HtmlEscapesAndMarksTheSum) {
  Table table = with_columns(some_table(), {"name", "us"});
  table.rows.push_back({{"all", 7}, Table::Row::Part::Sum});
  EXPECT_EQ(to_html(table),
            "<table class=\"kernels\"><tr><th>kernel</th><th>mean</th></tr>\n<tr><td>gemm&lt;float&gt;</td><td>1234.50</td></tr>\n"
            "<tr><td>a &quot;b&quot;, c\n</td><td>–</td></tr>\n<tr><th>all</th><th>7.00</th></tr></table>\n");
}

TEST(Table, ColumnsAreChosenByTheirKeys) {
  const Table table = with_columns(some_table(), {"calls", "no such column", "us"});
  ASSERT_EQ(table.columns.size(), 2u);
  EXPECT_EQ(table.columns[0].key, "calls");
  EXPECT_EQ(cell_text(table, 1, 0), "40");
  EXPECT_FALSE(table.rows[1].cells[1].known());
}

}  // namespace
}  // namespace ws

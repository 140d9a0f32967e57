#include "app/pages/kernel_editor/kernel_tables.h"

#include "app/core/kernels/kernel_plan.h"

namespace ws::app {

Table check_table(const std::vector<ShapeResult>& results) {
  using Kind = Table::Kind;
  Table table;
  table.columns = {{.key = "shape", .name = "shape", .kind = Kind::Text},
                   {.key = "result", .name = "result", .kind = Kind::Text},
                   {.key = "max_error", .name = "max error", .kind = Kind::Significant, .tip = "largest difference to the op, relative to the size of its results"},
                   {.key = "same_bits", .name = "bit-identical", .kind = Kind::Text, .tip = "to the built-in kernel"}};
  for (const ShapeResult& r : results) {
    Table::Cell result(r.good() ? "right" : std::string(r.verdict.good() ? "not checked" : to_string(r.verdict.fault)));
    result.tip = r.sentence;
    table.rows.push_back({{r.shape, result, r.good() ? Table::Cell(r.verdict.error) : Table::Cell(), r.good() ? r.verdict.same_bits ? "yes" : "no" : Table::Cell()}});
  }
  return table;
}

Table time_table(const OwnKernelVerdict& v, Precision precision) {
  using Kind = Table::Kind;
  Table table;
  table.columns = {{.key = "what", .name = "kernel", .kind = Kind::Text},
                   {.key = "us", .name = "time", .unit = "µs", .kind = Kind::Time, .decimals = 2, .tip = "of a launch in a graph, median"},
                   {.key = "of_limit", .name = "× of the limit", .kind = Kind::Number, .decimals = 1}};
  if (!(v.own_us > 0)) return table;
  const KernelLimits limits = kernel_limits(v, precision);
  const double limit = limits.us();
  const auto add = [&](const char* what, double us) { table.rows.push_back({{what, us > 0 ? Table::Cell(us) : Table::Cell(), us > 0 && limit > 0 ? Table::Cell(us / limit) : Table::Cell()}}); };
  add("yours", v.own_us), add("built in", v.built_in_us);
  add("limit by bytes", limits.memory_us), add("limit by arithmetic", limits.arithmetic_us), add("empty kernel", v.empty_us);
  return table;
}

}  // namespace ws::app

// Expressions that a person types into the laboratory.
#include <cmath>
#include <string_view>

#include "engine/workloads/expression.h"
#include "engine/workloads/expression_source.h"
#include "tests/fuzz/fuzz.h"

namespace {

using ws::fuzz::require;
using ws::lab::Expression;
using ws::lab::Interval;

constexpr float kValues[] = {0.f, -0.f, 1.f, -1.f, 0.5f, -2.75f, 3.1415927f, 1e-30f, -1e6f, 3e38f};

// The compiled kernels take a short sine where the range says that they may, so it must be right.
void check_range(const Expression& expression, const Interval& range, double x, double y) {
  const double value = expression.at(x, y);
  if (std::isnan(value) || std::isnan(range.low) || std::isnan(range.high)) return;
  const double slack = 1e-9 * std::abs(value);
  require(value >= range.low - slack && value <= range.high + slack, "a value lies where the range says");
}

void check_values(const Expression& expression) {
  const auto known = ws::lab::ranges(expression);
  require(known.size() == expression.steps().size(), "every step has a range");
  require(short_steps(expression).size() == expression.steps().size(), "every step is short or not");
  for (const float x : kValues)
    for (const float y : kValues) {
      check_range(expression, known.back(), x, y);
      float out = 0;
      expression.evaluate({&x, 1}, {&y, 1}, {&out, 1});
    }
}

}  // namespace

FUZZ_TARGET(expression) {
  try {
    const auto expression = Expression::parse({reinterpret_cast<const char*>(bytes), count});
    require(!expression.steps().empty() && expression.steps().size() <= 256, "at most 256 operations");
    require(expression.stack_depth() >= 1 && expression.stack_depth() <= 64, "at most 64 values at once");
    require(identity(Expression::parse(expression.text())) == identity(expression), "its own text means the same");
    require(cuda_source(expression, "kernel").find("kernel(") != std::string::npos, "the source holds the kernel");
    check_values(expression);
  } catch (const ws::Failure&) {
  }
  return 0;
}

// Bounds the error of a float32 evaluation of an expression: the rounding of each operation, and how later operations
// change it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/workloads/expression.h"

namespace ws::lab {
namespace {

constexpr double kUnit = 0x1p-24;  // half a unit in the last place of a float
constexpr double kUnknown = std::numeric_limits<double>::infinity();

struct Rounded {
  double value = 0, error = 0;
};

// Returns how much the errors of the operands change the result.
double passed_on(Fn fn, const Rounded& a, const Rounded& b, double value) {
  // Lower bounds of |a| and |b|.
  const double left_a = std::abs(a.value) - a.error, left_b = std::abs(b.value) - b.error;
  switch (fn) {
    case Fn::Multiply:
      return std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
    case Fn::Divide:
      return left_b > 0 ? (a.error + std::abs(value) * b.error) / left_b : kUnknown;
    case Fn::Sin:
    case Fn::Cos:
    case Fn::Tanh:
      return std::min(a.error, 2.0);
    case Fn::Sigmoid:
      return std::min(a.error / 4, 1.0);
    case Fn::Exp:
      return value * std::expm1(a.error);
    case Fn::Log:
      return left_a > 0 ? -std::log1p(-a.error / std::abs(a.value)) : kUnknown;
    case Fn::Sqrt:
      if (a.error == 0) return 0;
      return left_a > 0 && a.value > 0 ? a.error / std::sqrt(left_a) : kUnknown;
    case Fn::Min:
    case Fn::Max:
      return std::max(a.error, b.error);
    case Fn::Pow:
      if (a.error == 0 && b.error == 0) return 0;
      if (a.value == 0 || left_a < std::abs(a.value) / 2) return kUnknown;
      if (a.value < 0 && b.error > 0) return kUnknown;  // the result is undefined near a whole exponent
      return std::abs(value) * std::expm1(2 * std::abs(b.value) * a.error / std::abs(a.value) +
                                          std::abs(std::log(std::abs(a.value))) * b.error);
    default:
      return a.error + b.error;
  }
}

// Error of the operation itself in any library, in half units in the last place.
double own_units(Fn fn) {
  switch (fn) {
    case Fn::X:
    case Fn::Y:
    case Fn::Constant:
    case Fn::Negate:
    case Fn::Abs:
    case Fn::Relu:
    case Fn::Min:
    case Fn::Max:
      return 0;
    case Fn::Add:
    case Fn::Subtract:
    case Fn::Multiply:
    case Fn::Divide:
    case Fn::Sqrt:
      return 1;
    case Fn::Pow:
      return 32;
    default:
      return 8;
  }
}

Rounded constant(double value) {
  if (static_cast<double>(static_cast<float>(value)) == value) return {value, 0};
  return {value, kUnit * std::abs(value) + static_cast<double>(std::numeric_limits<float>::min())};
}

Rounded after(Fn fn, const Rounded& a, const Rounded& b) {
  const double value = value_of(fn, a.value, b.value), own = own_units(fn);
  double error = passed_on(fn, a, b, value) + own * kUnit * std::abs(value);
  if (own > 0) error += std::numeric_limits<float>::min();  // smaller values may become zero
  const bool held = std::abs(value) + error < static_cast<double>(std::numeric_limits<float>::max());
  const bool known = std::isfinite(a.error) && std::isfinite(b.error) && std::isfinite(error);
  return {value, held && known ? error : kUnknown};
}

}  // namespace

double rounding_at(const Expression& expression, double x, double y) {
  std::vector<Rounded> stack;
  for (const Step& step : expression.steps()) {
    if (operands(step.fn) == 0) {
      stack.push_back(step.fn == Fn::Constant ? constant(step.constant) : Rounded{step.fn == Fn::X ? x : y, 0});
      continue;
    }
    Rounded b;
    if (operands(step.fn) == 2) b = stack.back(), stack.pop_back();
    stack.back() = after(step.fn, stack.back(), b);
  }
  return stack.back().error;
}

}  // namespace ws::lab

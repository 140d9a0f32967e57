// An expression that a user typed, such as sin(sin(x))*2+y: parsed safely and evaluated on the CPU.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/base/failure.h"

namespace ws::lab {

enum class Fn : uint8_t {
  X,
  Y,
  Constant,
  Add,
  Subtract,
  Multiply,
  Divide,
  Negate,
  Sin,
  Cos,
  Exp,
  Log,
  Sqrt,
  Tanh,
  Abs,
  Relu,
  Sigmoid,
  Min,
  Max,
  Pow
};

// One instruction of a stack machine. A list of them is the expression in postfix order.
struct Step {
  Fn fn;
  double constant = 0;
};

class Expression {
 public:
  // Throws Failure that names the problem and the character position. The limits are 64 levels and 256 operations.
  static Expression parse(std::string_view text);
  static Expression nested_sine(int depth);

  const std::vector<Step>& steps() const { return steps_; }
  const std::string& text() const { return text_; }
  bool uses_y() const;
  int operations() const;   // without x, y and constants
  int stack_depth() const;  // maximum number of values on the stack

  double at(double x, double y) const;
  void evaluate(std::span<const float> x, std::span<const float> y, std::span<float> out) const;  // y may be empty

 private:
  std::vector<Step> steps_;
  std::string text_;
};

// Returns a first-order bound of the float32 rounding error against expression.at(x, y). The bound is infinite if a
// float cannot hold an intermediate value, or if rounding alone decides the result.
double rounding_at(const Expression& expression, double x, double y);

int operands(Fn fn);
double value_of(Fn fn, double a, double b);  // result of one operation
std::string_view name_of(Fn fn);             // "sin", "+"

}  // namespace ws::lab

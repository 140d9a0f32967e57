// An expression that a person typed, such as sin(sin(x))*2+y: parsed safely and run on the CPU.
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

// One instruction of a stack machine; the list is the expression in postfix order.
struct Step {
  Fn fn;
  double constant = 0;
};

class Expression {
 public:
  // Throws Failure that says what is wrong and at which character. At most 64 deep and 256 operations.
  static Expression parse(std::string_view text);
  static Expression nested_sine(int depth);

  const std::vector<Step>& steps() const { return steps_; }
  const std::string& text() const { return text_; }
  bool uses_y() const;
  int operations() const;   // without x, y and constants
  int stack_depth() const;  // most values held at once

  double at(double x, double y) const;
  void evaluate(std::span<const float> x, std::span<const float> y, std::span<float> out) const;  // y may be empty

 private:
  std::vector<Step> steps_;
  std::string text_;
};

// How far float32 may end from expression.at(x, y), rounding by rounding to first order. Infinite where a float cannot
// hold a value on the way, or where rounding can make anything of the result.
double rounding_at(const Expression& expression, double x, double y);

int operands(Fn fn);
double value_of(Fn fn, double a, double b);  // of one operation
std::string_view name_of(Fn fn);             // "sin", "+"

}  // namespace ws::lab

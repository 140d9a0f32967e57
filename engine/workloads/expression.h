// An expression that a person typed, such as sin(sin(x))*2+y: parsed safely, run on the CPU, written out as CUDA
// source.
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

// What a value can be, whatever x and y are.
struct Interval {
  double low, high;
};

// sin and cos for |x| <= 1, as the compiled kernels compute them: within two units in the last place.
float short_sine(float x);
float short_cosine(float x);

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
  // How far float32 may end from that, rounding by rounding to first order; infinite
  // where a float cannot hold a value on the way or where rounding can make anything of the result.
  double rounding_at(double x, double y) const;
  void evaluate(std::span<const float> x, std::span<const float> y, std::span<float> out) const;  // y may be empty

  std::vector<Interval> ranges() const;                         // of each step's value
  std::vector<bool> short_steps() const;                        // sines and cosines of arguments known to be small
  std::string cuda_source(std::string_view kernel_name) const;  // one kernel: everything in registers
  std::string identity() const;                                 // equal for equal meaning; cache key

 private:
  std::vector<Step> steps_;
  std::string text_;
};

int operands(Fn fn);
double value_of(Fn fn, double a, double b);  // of one operation
std::string_view name_of(Fn fn);             // "sin", "+"

}  // namespace ws::lab

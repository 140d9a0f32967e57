#include "engine/workloads/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace ws::lab {
namespace {

constexpr int kMostDepth = 64;
constexpr size_t kMostSteps = 256;
constexpr size_t kMostText = 4096;

struct Function {
  std::string_view name;
  Fn fn;
};
constexpr Function kFunctions[] = {{"sin", Fn::Sin},         {"cos", Fn::Cos},   {"exp", Fn::Exp}, {"log", Fn::Log},
                                   {"sqrt", Fn::Sqrt},       {"tanh", Fn::Tanh}, {"abs", Fn::Abs}, {"relu", Fn::Relu},
                                   {"sigmoid", Fn::Sigmoid}, {"min", Fn::Min},   {"max", Fn::Max}, {"pow", Fn::Pow}};

// Recursive descent over: sum = product {(+|-) product}; product = unary {(*|/) unary}; unary = - unary | atom.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Step> run() {
    if (text_.size() > kMostText) throw Failure("expression: longer than 4 096 characters");
    sum();
    skip_space();
    if (at_ < text_.size()) fail("unexpected “" + std::string(1, text_[at_]) + "”");
    return std::move(steps_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Failure("expression: " + what + " at character " + std::to_string(at_ + 1));
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void push(Fn fn, double constant = 0) {
    if (steps_.size() >= kMostSteps) fail("more than 256 operations");
    steps_.push_back({fn, constant});
  }

  void sum() {
    product();
    for (;;) {
      if (take('+'))
        product(), push(Fn::Add);
      else if (take('-'))
        product(), push(Fn::Subtract);
      else
        return;
    }
  }

  void product() {
    unary();
    for (;;) {
      if (take('*'))
        unary(), push(Fn::Multiply);
      else if (take('/'))
        unary(), push(Fn::Divide);
      else
        return;
    }
  }

  void unary() {
    if (++depth_ > kMostDepth) fail("nested more than 64 deep");
    if (take('-'))
      unary(), push(Fn::Negate);
    else
      atom();
    --depth_;
  }

  void atom() {
    skip_space();
    if (at_ >= text_.size()) fail("something is missing");
    const char c = text_[at_];
    if (take('(')) {
      sum();
      return close();
    }
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return number();
    if (std::isalpha(static_cast<unsigned char>(c))) return word();
    fail("unexpected “" + std::string(1, c) + "”");
  }

  void close() {
    if (!take(')')) fail("a closing parenthesis is missing");
  }

  void number() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value) || std::abs(value) > 1e30)
      fail("not a number that a float can hold");
    at_ = static_cast<size_t>(end - text_.data());
    push(Fn::Constant, value);
  }

  void word() {
    const size_t begin = at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "x") return push(Fn::X);
    if (name == "y") return push(Fn::Y);
    if (name == "pi") return push(Fn::Constant, 3.14159265358979323846);
    const auto found = std::ranges::find(kFunctions, name, &Function::name);
    if (found == std::end(kFunctions)) {
      at_ = begin;
      fail("“" + std::string(name.substr(0, 24)) + "” is neither x, y, pi nor a function; functions are " + known());
    }
    call(found->fn);
  }

  void call(Fn fn) {
    if (!take('(')) fail("“(” expected after " + std::string(name_of(fn)));
    sum();
    if (operands(fn) == 2) {
      if (!take(',')) fail(std::string(name_of(fn)) + " takes two values");
      sum();
    }
    close();
    push(fn);
  }

  static std::string known() {
    std::string names;
    for (const Function& f : kFunctions) names += (names.empty() ? "" : ", ") + std::string(f.name);
    return names;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<Step> steps_;
};

template <class Real>
Real apply(Fn fn, Real a, Real b) {
  switch (fn) {
    case Fn::Add:
      return a + b;
    case Fn::Subtract:
      return a - b;
    case Fn::Multiply:
      return a * b;
    case Fn::Divide:
      return a / b;
    case Fn::Negate:
      return -a;
    case Fn::Sin:
      return std::sin(a);
    case Fn::Cos:
      return std::cos(a);
    case Fn::Exp:
      return std::exp(a);
    case Fn::Log:
      return std::log(a);
    case Fn::Sqrt:
      return std::sqrt(a);
    case Fn::Tanh:
      return std::tanh(a);
    case Fn::Abs:
      return std::abs(a);
    case Fn::Relu:
      return a > 0 ? a : Real(0);
    case Fn::Sigmoid:
      return 1 / (1 + std::exp(-a));
    case Fn::Min:
      return std::min(a, b);
    case Fn::Max:
      return std::max(a, b);
    case Fn::Pow:
      return std::pow(a, b);
    default:
      return a;
  }
}

}  // namespace

double value_of(Fn fn, double a, double b) { return apply(fn, a, b); }

int operands(Fn fn) {
  switch (fn) {
    case Fn::X:
    case Fn::Y:
    case Fn::Constant:
      return 0;
    case Fn::Add:
    case Fn::Subtract:
    case Fn::Multiply:
    case Fn::Divide:
    case Fn::Min:
    case Fn::Max:
    case Fn::Pow:
      return 2;
    default:
      return 1;
  }
}

std::string_view name_of(Fn fn) {
  constexpr std::string_view names[] = {"x",      "y",    "constant", "+",   "-",   "*",    "/",
                                        "negate", "sin",  "cos",      "exp", "log", "sqrt", "tanh",
                                        "abs",    "relu", "sigmoid",  "min", "max", "pow"};
  return names[static_cast<size_t>(fn)];
}

Expression Expression::parse(std::string_view text) {
  Expression made;
  made.steps_ = Parser(text).run();
  made.text_ = text;
  return made;
}

Expression Expression::nested_sine(int depth) {
  if (depth < 1 || depth > kMostDepth)
    throw Failure("nested sine: the depth must be from 1 to 64, got " + std::to_string(depth));
  Expression made;
  made.steps_.assign(static_cast<size_t>(depth) + 1, {Fn::Sin, 0});
  made.steps_[0] = {Fn::X, 0};
  for (int i = 0; i < depth; ++i) made.text_ += "sin(";
  made.text_ += "x" + std::string(static_cast<size_t>(depth), ')');
  return made;
}

bool Expression::uses_y() const { return std::ranges::count(steps_, Fn::Y, &Step::fn) > 0; }

int Expression::operations() const {
  return static_cast<int>(std::ranges::count_if(steps_, [](const Step& s) { return operands(s.fn) > 0; }));
}

int Expression::stack_depth() const {
  int held = 0, most = 0;
  for (const Step& step : steps_) most = std::max(most, held += 1 - operands(step.fn));
  return most;
}

double Expression::at(double x, double y) const {
  double stack[kMostSteps];
  size_t top = 0;
  for (const Step& step : steps_) {
    if (operands(step.fn) == 0) {
      stack[top++] = step.fn == Fn::X ? x : step.fn == Fn::Y ? y : step.constant;
      continue;
    }
    const double b = operands(step.fn) == 2 ? stack[--top] : 0;
    stack[top - 1] = apply(step.fn, stack[top - 1], b);
  }
  return stack[0];
}

void Expression::evaluate(std::span<const float> x, std::span<const float> y, std::span<float> out) const {
  // Evaluates the expression on one strip at a time: each step is a plain loop, and the strips stay in the cache.
  constexpr size_t kStrip = 512;
  std::vector<float> stack(kStrip * static_cast<size_t>(stack_depth()));
  for (size_t begin = 0; begin < out.size(); begin += kStrip) {
    const size_t n = std::min(kStrip, out.size() - begin);
    float* top = stack.data();
    for (const Step& step : steps_) {
      if (operands(step.fn) == 0) {
        if (step.fn == Fn::Constant)
          std::fill_n(top, n, static_cast<float>(step.constant));
        else
          std::copy_n((step.fn == Fn::X ? x : y).data() + begin, n, top);
        top += kStrip;
        continue;
      }
      const bool two = operands(step.fn) == 2;
      if (two) top -= kStrip;
      float* a = top - kStrip;
      for (size_t i = 0; i < n; ++i) a[i] = apply(step.fn, a[i], two ? top[i] : 0.0f);
    }
    std::copy_n(stack.data(), n, out.data() + begin);
  }
}

}  // namespace ws::lab

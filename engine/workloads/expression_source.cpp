#include "engine/workloads/expression_source.h"

#include <algorithm>
#include <cmath>

#include "profiling/base/text.h"

namespace ws::lab {
namespace {

// Best approximations of (sin x - x) / x³ and (cos x - 1) / x² in x² over |x| <= 1.0001, relative error under 1e-9.
constexpr float kSine[] = {-0.166666672F, 0.008333317F, -0.000198362104F, 2.69530074e-06F};
constexpr float kCosine[] = {-0.49999997F, 0.0416664816F, -0.00138833374F, 2.41381149e-05F};
constexpr double kShort = 1.0001;  // slightly more than 1, so that rounded arguments stay inside

float polynomial(const float (&c)[4], float t) { return std::fma(std::fma(std::fma(c[3], t, c[2]), t, c[1]), t, c[0]); }

std::string literal(double value) {
  std::string out = formatted("{:.9g}f", value);
  if (out.find_first_of(".en") == std::string::npos) out.insert(out.size() - 1, ".0");
  return out;
}

std::string polynomial_source(const char* name, const float (&c)[4], const char* result) {
  std::string sum = literal(static_cast<double>(c[3]));
  for (int i = 2; i >= 0; --i) sum = "fmaf(" + sum + ", t, " + literal(static_cast<double>(c[i])) + ")";
  return std::string("__device__ __forceinline__ float ") + name +
         "(float x) {  // |x| <= 1\n  const float t = x * x;\n" + "  return " + result + sum +
         (name == std::string("short_sine") ? ", x)" : ", 1.0f)") + ";\n}\n";
}

constexpr double kInfinity = INFINITY;
Interval everything() { return {-kInfinity, kInfinity}; }
bool bounded(Interval i) { return std::isfinite(i.low) && std::isfinite(i.high); }

// Float arithmetic rounds, so a computed interval must be slightly wider.
Interval widened(double low, double high) {
  const double space = 1e-6 * std::max(std::abs(low), std::abs(high)) + 1e-37;
  if (!(std::max(std::abs(low), std::abs(high)) < 3e38)) return everything();
  return {low - space, high + space};
}

Interval product(Interval a, Interval b) {
  if (!bounded(a) || !bounded(b)) return everything();
  const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return widened(low, high);
}

Interval quotient(Interval a, Interval b) {
  if (!bounded(b) || (b.low <= 1e-30 && b.high >= -1e-30)) return everything();
  return product(a, {1 / b.high, 1 / b.low});
}

Interval magnitude(Interval a) {
  const double most = std::max(std::abs(a.low), std::abs(a.high));
  return {a.low > 0 || a.high < 0 ? std::min(std::abs(a.low), std::abs(a.high)) : 0, most};
}

// Each of these can return NaN. The polynomials pass NaN on as the library functions do.
Interval range_of(Fn fn, Interval a, Interval b) {
  switch (fn) {
    case Fn::Add:
      return bounded(a) && bounded(b) ? widened(a.low + b.low, a.high + b.high) : everything();
    case Fn::Subtract:
      return bounded(a) && bounded(b) ? widened(a.low - b.high, a.high - b.low) : everything();
    case Fn::Multiply:
      return product(a, b);
    case Fn::Divide:
      return quotient(a, b);
    case Fn::Negate:
      return {-a.high, -a.low};
    case Fn::Sin:
    case Fn::Cos:
    case Fn::Tanh:
      return {-1, 1};
    case Fn::Sigmoid:
      return {0, 1};
    case Fn::Exp:
      return a.high < 80 ? widened(0, std::exp(a.high)) : everything();
    case Fn::Sqrt:
      return std::isfinite(a.high) ? widened(0, std::sqrt(std::max(a.high, 0.0))) : everything();
    case Fn::Abs:
      return magnitude(a);
    case Fn::Relu:
      return {std::max(a.low, 0.0), std::max(a.high, 0.0)};
    case Fn::Min:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Fn::Max:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    default:
      return everything();
  }
}

bool is_short(Fn fn, Interval argument) {
  return (fn == Fn::Sin || fn == Fn::Cos) && argument.low >= -kShort && argument.high <= kShort;
}

std::string cuda_call(Fn fn, const std::string& a, const std::string& b, bool small) {
  switch (fn) {
    case Fn::Add:
      return a + " + " + b;
    case Fn::Subtract:
      return a + " - " + b;
    case Fn::Multiply:
      return a + " * " + b;
    case Fn::Divide:
      return a + " / " + b;
    case Fn::Negate:
      return "-" + a;
    case Fn::Sin:
    case Fn::Cos:
      if (small) return (fn == Fn::Sin ? "short_sine(" : "short_cosine(") + a + ")";
      return std::string(name_of(fn)) + "f(" + a + ")";
    case Fn::Relu:
      return "fmaxf(" + a + ", 0.0f)";
    case Fn::Sigmoid:
      return "1.0f / (1.0f + expf(-" + a + "))";
    case Fn::Abs:
      return "fabsf(" + a + ")";
    case Fn::Min:
      return "fminf(" + a + ", " + b + ")";
    case Fn::Max:
      return "fmaxf(" + a + ", " + b + ")";
    case Fn::Pow:
      return "powf(" + a + ", " + b + ")";
    default:
      return std::string(name_of(fn)) + "f(" + a + ")";
  }
}

// Long arrays: a thread loads four groups of four values before it uses any, to keep enough loads in flight. Short
// arrays: one group per thread, so that all multiprocessors have work.
constexpr const char* kLoop =
    "(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, unsigned long long n, int "
    "each) {\n"
    "  const unsigned long long groups = n / 4, first = (unsigned long long)each * blockIdx.x * blockDim.x + "
    "threadIdx.x;\n"
    "  const float4 *xs = reinterpret_cast<const float4*>(x), *ys = reinterpret_cast<const float4*>(y);\n"
    "  float4 a[4], b[4];\n"
    "#pragma unroll\n"
    "  for (int k = 0; k < 4; ++k) {\n"
    "    const unsigned long long i = first + k * blockDim.x;\n"
    "    const bool here = k < each && i < groups;\n"
    "    a[k] = here ? xs[i] : make_float4(0, 0, 0, 0);\n"
    "    b[k] = here && y ? ys[i] : make_float4(0, 0, 0, 0);\n"
    "  }\n"
    "#pragma unroll\n"
    "  for (int k = 0; k < 4; ++k) {\n"
    "    const unsigned long long i = first + k * blockDim.x;\n"
    "    if (k < each && i < groups)\n"
    "      reinterpret_cast<float4*>(out)[i] = make_float4(value(a[k].x, b[k].x), value(a[k].y, b[k].y),\n"
    "                                                      value(a[k].z, b[k].z), value(a[k].w, b[k].w));\n"
    "  }\n"
    "  if (blockIdx.x == 0 && threadIdx.x < n % 4) {\n"
    "    const unsigned long long last = 4 * groups + threadIdx.x;\n"
    "    out[last] = value(x[last], y ? y[last] : 0.0f);\n"
    "  }\n"
    "}\n";

}  // namespace

float short_sine(float x) { return std::fma(x * (x * x), polynomial(kSine, x * x), x); }
float short_cosine(float x) { return std::fma(x * x, polynomial(kCosine, x * x), 1.0F); }

std::vector<Interval> ranges(const Expression& expression) {
  std::vector<Interval> stack, found;
  for (const Step& step : expression.steps()) {
    Interval range = everything();
    if (step.fn == Fn::Constant) range = widened(step.constant, step.constant);
    Interval b = range;
    if (operands(step.fn) == 2) b = stack.back(), stack.pop_back();
    if (operands(step.fn) > 0) range = range_of(step.fn, stack.back(), b), stack.pop_back();
    stack.push_back(range);
    found.push_back(range);
  }
  return found;
}

std::vector<bool> short_steps(const Expression& expression) {
  const std::vector<Step>& steps = expression.steps();
  const std::vector<Interval> known = ranges(expression);
  std::vector<bool> small(steps.size());
  for (size_t i = 1; i < steps.size(); ++i) small[i] = is_short(steps[i].fn, known[i - 1]);
  return small;
}

std::string cuda_source(const Expression& expression, std::string_view kernel_name) {
  const std::vector<Step>& steps = expression.steps();
  const std::vector<bool> small = short_steps(expression);
  std::string body;
  std::vector<std::string> stack;
  int next = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (operands(step.fn) == 0) {
      const std::string operand = step.fn == Fn::X ? "x" : step.fn == Fn::Y ? "y" : literal(step.constant);
      stack.push_back(operand);
      continue;
    }
    std::string b;
    if (operands(step.fn) == 2) b = stack.back(), stack.pop_back();
    const std::string name = "v" + std::to_string(next++);
    body += "  const float " + name + " = " + cuda_call(step.fn, stack.back(), b, small[i]) + ";\n";
    stack.back() = name;
  }
  std::string source = "// " + expression.text() + "\n";
  if (body.find("short_sine") != std::string::npos) source += polynomial_source("short_sine", kSine, "fmaf(x * t, ");
  if (body.find("short_cosine") != std::string::npos) source += polynomial_source("short_cosine", kCosine, "fmaf(t, ");
  return source + "__device__ __forceinline__ float value(float x, float y) {\n" + body + "  return " + stack.back() +
         ";\n}\n\nextern \"C\" __global__ void " + std::string(kernel_name) + kLoop;
}

std::string identity(const Expression& expression) {
  std::string out;
  for (const Step& step : expression.steps())
    out += std::string(name_of(step.fn)) + (step.fn == Fn::Constant ? literal(step.constant) : "") + " ";
  return out;
}

}  // namespace ws::lab

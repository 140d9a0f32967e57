#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/workloads/lab_spec.h"
#include "profiling/base/json_fields.h"

namespace ws::lab {

using nlohmann::json;

namespace {

constexpr int kMostDepth = 64;
constexpr Operation kOperations[] = {Operation::MatMul,  Operation::Sine,    Operation::Add,
                                     Operation::Reduce,  Operation::Softmax, Operation::Copy};

Operation operation(const JsonInput& value) {
  const std::string name = value.text();
  for (Operation o : kOperations)
    if (name == to_string(o)) return o;
  value.refuse("one of matmul, sine, add, reduce, softmax, copy");
}

std::vector<Way> way_list(const JsonInput& value) {
  std::vector<Way> list;
  for (const JsonInput& item : value.items()) {
    const auto found = std::ranges::find(ways(), item.text(), &WayInfo::name);
    if (found == ways().end()) item.refuse("a name such as cpu, gpu, gpu-pinned");
    list.push_back(found->way);
  }
  return list;
}

std::vector<int64_t> size_list(const JsonInput& value) {
  std::vector<int64_t> list;
  for (const JsonInput& item : value.items()) list.push_back(item.whole(0, 1, int64_t{1'000'000'000'000}));
  if (list.size() > 1000) value.refuse("at most 1,000 sizes");
  return list;
}

std::vector<OwnKernelSource> kernel_list(const JsonInput& value) {
  std::vector<OwnKernelSource> list;
  for (const JsonInput& item : value.items()) list.push_back({item.required("file").text(), item.at("text").text()});
  if (list.size() > kMostKernels) value.refuse("at most " + std::to_string(kMostKernels) + " kernels");
  return list;
}

// The depth of sin(sin(x)); 0: it is no nested sine.
int sine_depth(std::string expression) {
  std::erase(expression, ' ');
  int depth = 0;
  std::string_view inside = expression;
  for (; inside.starts_with("sin(") && inside.ends_with(')'); ++depth) inside = inside.substr(4, inside.size() - 5);
  return inside == "x" && depth <= kMostDepth ? depth : 0;
}

// Older files may have an expression. A nested sine is an operation now; anything else is a kernel to write.
json without_expression(json object) {
  if (!object.is_object() || !object.contains("expression")) return object;
  const std::string expression = JsonInput(object, "lab").at("expression").text();
  object.erase("expression");
  if (object.value("operation", json()) != "expression") return object;
  const int depth = sine_depth(expression);
  if (depth == 0)
    throw Failure("This sweep measures the expression “" + expression.substr(0, 80) +
                  "”. Expressions are no operation any more: write it as a kernel of your own (warpsight lab add --new-kernel FILE).");
  object["operation"] = "sine", object["depth"] = depth;
  return object;
}

// Files may have texts beside the choices.
constexpr std::string_view kTexts[] = {"title", "text", "measured"};

void list(JsonFields& f, LabSpec& s) {
  json names = json::array();
  for (const Way way : s.ways) names.push_back(info(way).name);
  json kernels = json::array();
  for (const OwnKernelSource& kernel : s.kernels) kernels.push_back({{"file", kernel.file}, {"text", kernel.text}});
  f("name", s.name);
  f.as("operation", to_string(s.operation), [&s](const JsonInput& in) {
    if (in.there()) s.operation = operation(in);
  });
  f.as("sizes", s.sizes, [&s](const JsonInput& in) { s.sizes = size_list(in); });
  f.as("ways", names, [&s](const JsonInput& in) { s.ways = way_list(in); });
  f("m", s.m, 0, 1 << 20), f("k", s.k, 0, 1 << 20), f("depth", s.depth, 1, kMostDepth);
  f.as("kernels", kernels, [&s](const JsonInput& in) { s.kernels = kernel_list(in); });
  f("repeats", s.repeats, 3, 10000), f("warm_up", s.warm_up, 0, 1000);
  f("seconds_per_point", s.seconds_per_point, 0, 3600), f("longest_call_s", s.longest_call_s, 0, 3600);
  f("cold_cache", s.cold_cache), f("seed", s.seed, 0);
}

}  // namespace

LabSpec lab_spec_from_json(const json& given) {
  const json object = without_expression(given);
  const JsonInput in(object, "lab");
  const json known = to_json(LabSpec{});
  for (const auto& [key, value] : in.entries())
    if (std::ranges::find(kTexts, key) != std::end(kTexts)) value.text();
    else if (!known.contains(key)) throw Failure(value.path() + ": there is no such setting");
  return read_from<LabSpec>(in, list);
}

json to_json(const LabSpec& spec) { return written(spec, list); }

}  // namespace ws::lab

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/workloads/lab_spec.h"
#include "profiling/base/json_fields.h"

namespace ws::lab {

using nlohmann::json;

namespace {

constexpr Operation kOperations[] = {Operation::MatMul,  Operation::Sine, Operation::Add,       Operation::Reduce,
                                     Operation::Softmax, Operation::Copy, Operation::Expression};

Operation operation(const JsonInput& value) {
  const std::string name = value.text();
  for (Operation o : kOperations)
    if (name == to_string(o)) return o;
  value.refuse("one of matmul, sine, add, reduce, softmax, copy, expression");
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

// Files may have texts beside the choices.
constexpr std::string_view kTexts[] = {"title", "text", "measured"};

void list(JsonFields& f, LabSpec& s) {
  json names = json::array();
  for (const Way way : s.ways) names.push_back(info(way).name);
  f("name", s.name);
  f.as("operation", to_string(s.operation), [&s](const JsonInput& in) {
    if (in.there()) s.operation = operation(in);
  });
  f.as("sizes", s.sizes, [&s](const JsonInput& in) { s.sizes = size_list(in); });
  f.as("ways", names, [&s](const JsonInput& in) { s.ways = way_list(in); });
  f("m", s.m, 0, 1 << 20), f("k", s.k, 0, 1 << 20), f("depth", s.depth, 1, 64);
  f.as("expression", s.expression, [&s](const JsonInput& in) {
    if (in.there()) s.expression = Expression::parse(in.text()).text();
  });
  f("repeats", s.repeats, 3, 10000), f("warm_up", s.warm_up, 0, 1000);
  f("seconds_per_point", s.seconds_per_point, 0, 3600), f("longest_call_s", s.longest_call_s, 0, 3600);
  f("cold_cache", s.cold_cache), f("seed", s.seed, 0);
}

}  // namespace

LabSpec lab_spec_from_json(const json& object) {
  LabSpec spec;
  const JsonInput in(object, "lab");
  const json known = to_json(spec);
  for (const auto& [key, value] : in.entries())
    if (std::ranges::find(kTexts, key) != std::end(kTexts)) value.text();
    else if (!known.contains(key)) throw Failure(value.path() + ": there is no such choice");
  JsonFields fields(in);
  list(fields, spec);
  return spec;
}

json to_json(const LabSpec& s) {
  LabSpec spec = s;
  json to;
  JsonFields fields(to);
  list(fields, spec);
  return to;
}

}  // namespace ws::lab

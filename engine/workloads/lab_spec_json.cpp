#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/workloads/lab_spec.h"
#include "profiling/base/json_input.h"

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

void read(LabSpec& spec, const std::string& key, const JsonInput& value) {
  if (key == "name")
    spec.name = value.text();
  else if (key == "title" || key == "text" || key == "measured")
    value.text();
  else if (key == "operation")
    spec.operation = operation(value);
  else if (key == "sizes")
    spec.sizes = size_list(value);
  else if (key == "ways")
    spec.ways = way_list(value);
  else if (key == "m")
    spec.m = value.whole(0, 0, 1 << 20);
  else if (key == "k")
    spec.k = value.whole(0, 0, 1 << 20);
  else if (key == "depth")
    spec.depth = static_cast<int>(value.whole(0, 1, 64));
  else if (key == "expression")
    spec.expression = Expression::parse(value.text()).text();
  else if (key == "repeats")
    spec.repeats = static_cast<int>(value.whole(0, 3, 10000));
  else if (key == "warm_up")
    spec.warm_up = static_cast<int>(value.whole(0, 0, 1000));
  else if (key == "seconds_per_point")
    spec.seconds_per_point = value.number(0, 0, 3600);
  else if (key == "longest_call_s")
    spec.longest_call_s = value.number(0, 0, 3600);
  else if (key == "cold_cache")
    spec.cold_cache = value.flag(false);
  else if (key == "seed")
    spec.seed = static_cast<uint64_t>(value.whole(0, 0));
  else
    throw Failure(value.path() + ": there is no such choice");
}

}  // namespace

LabSpec lab_spec_from_json(const json& object) {
  LabSpec spec;
  for (const auto& [key, value] : JsonInput(object, "lab").entries()) read(spec, key, value);
  return spec;
}

json to_json(const LabSpec& s) {
  json list = json::array();
  for (Way w : s.ways) list.push_back(info(w).name);
  return {{"name", s.name},
          {"operation", to_string(s.operation)},
          {"sizes", s.sizes},
          {"ways", list},
          {"m", s.m},
          {"k", s.k},
          {"depth", s.depth},
          {"expression", s.expression},
          {"repeats", s.repeats},
          {"warm_up", s.warm_up},
          {"seconds_per_point", s.seconds_per_point},
          {"longest_call_s", s.longest_call_s},
          {"cold_cache", s.cold_cache},
          {"seed", s.seed}};
}

}  // namespace ws::lab

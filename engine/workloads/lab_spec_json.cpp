#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/workloads/lab_spec.h"

namespace ws::lab {

using nlohmann::json;

namespace {

constexpr Operation kOperations[] = {Operation::MatMul,  Operation::Sine, Operation::Add,       Operation::Reduce,
                                     Operation::Softmax, Operation::Copy, Operation::Expression};

[[noreturn]] void refuse(const std::string& key, const std::string& expected, const json& got) {
  throw Failure("lab." + key + ": expected " + expected + ", got " +
                got.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 60));
}

double number(const std::string& key, const json& value, double least, double most) {
  if (!value.is_number() || value.get<double>() < least || value.get<double>() > most)
    refuse(key,
           "a number from " + std::to_string(static_cast<int64_t>(least)) + " to " +
               std::to_string(static_cast<int64_t>(most)),
           value);
  return value.get<double>();
}
int64_t whole(const std::string& key, const json& value, double least, double most) {
  return static_cast<int64_t>(number(key, value, least, most));
}

std::string text(const std::string& key, const json& value) {
  if (!value.is_string()) refuse(key, "text", value);
  return value.get<std::string>();
}

Operation operation(const json& value) {
  for (Operation o : kOperations)
    if (value == std::string(to_string(o))) return o;
  refuse("operation", "one of matmul, sine, add, reduce, softmax, copy, expression", value);
}

std::vector<Way> way_list(const json& value) {
  if (!value.is_array()) refuse("ways", "a list of names", value);
  std::vector<Way> list;
  for (const json& item : value) {
    const auto found = std::ranges::find_if(ways(), [&](const WayInfo& w) { return item == std::string(w.name); });
    if (found == ways().end()) refuse("ways", "names such as cpu, gpu, gpu-pinned", item);
    list.push_back(found->way);
  }
  return list;
}

std::vector<int64_t> size_list(const json& value) {
  if (!value.is_array() || value.size() > 1000) refuse("sizes", "a list of whole numbers", value);
  std::vector<int64_t> list;
  for (const json& item : value) list.push_back(whole("sizes", item, 1, 1e12));
  return list;
}

void read(LabSpec& spec, const std::string& key, const json& value) {
  if (key == "name")
    spec.name = text(key, value);
  else if (key == "title" || key == "text" || key == "measured")
    text(key, value);
  else if (key == "operation")
    spec.operation = operation(value);
  else if (key == "sizes")
    spec.sizes = size_list(value);
  else if (key == "ways")
    spec.ways = way_list(value);
  else if (key == "m")
    spec.m = whole(key, value, 0, 1 << 20);
  else if (key == "k")
    spec.k = whole(key, value, 0, 1 << 20);
  else if (key == "depth")
    spec.depth = static_cast<int>(whole(key, value, 1, 64));
  else if (key == "expression")
    spec.expression = Expression::parse(text(key, value)).text();
  else if (key == "repeats")
    spec.repeats = static_cast<int>(whole(key, value, 3, 10000));
  else if (key == "warm_up")
    spec.warm_up = static_cast<int>(whole(key, value, 0, 1000));
  else if (key == "seconds_per_point")
    spec.seconds_per_point = number(key, value, 0, 3600);
  else if (key == "longest_call_s")
    spec.longest_call_s = number(key, value, 0, 3600);
  else if (key == "cold_cache")
    spec.cold_cache = value.is_boolean() ? value.get<bool>() : (refuse(key, "true or false", value), false);
  else if (key == "seed")
    spec.seed = static_cast<uint64_t>(whole(key, value, 0, 9e15));
  else
    throw Failure("lab." + key + ": there is no such choice");
}

}  // namespace

LabSpec lab_spec_from_json(const json& object) {
  if (!object.is_object()) refuse("", "an object", object);
  LabSpec spec;
  for (const auto& [key, value] : object.items()) read(spec, key, value);
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

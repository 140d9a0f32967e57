// Writes results of sweeps as JSON and CSV, and reads them. The input may come from an older version or the PyTorch
// script.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "engine/lab/ceilings.h"
#include "profiling/base/json_fields.h"

namespace ws::lab {

using nlohmann::json;

namespace {

// A script may write a count as 1e9.
void list_count(JsonFields& f, const char* key, int64_t& value) {
  f.as(key, value, [&value](const JsonInput& in) { value = std::llround(std::clamp(in.number(0), 0.0, 9e18)); });
}

void list(JsonFields& f, LabPoint& p) {
  f("size", p.size, 0), f("ok", p.ok), f("median_s", p.median_s);
  if (f.reads()) p.low_s = p.high_s = p.median_s;
  f("p5_s", p.low_s), f("p95_s", p.high_s);
  f("device_s", p.device_s), f("device_p5_s", p.device_low_s), f("device_p95_s", p.device_high_s);
  f("copy_s", p.copy_s), f("compute_s", p.compute_s), f("bound_s", p.bound_s), f("repeats", p.repeats, 0, 1'000'000'000);
  list_count(f, "flops", p.flops), list_count(f, "bytes", p.bytes);
  f("error", p.error), f("note", p.note);
}

void list_recorded(JsonFields& f, LabPoint& p) {
  f.numbers("recorded", {&p.recorded.first_step, &p.recorded.steps, &p.recorded.begin_ns, &p.recorded.end_ns});
}

json point_json(const LabPoint& p) {
  json point = written(p, list, {{"way", info(p.way).name}});
  return p.recorded.steps > 0 ? written(p, list_recorded, std::move(point)) : point;
}

json crossings_json(const LabResult& r) {
  json crossings = json::array();
  for (const Crossover& c : crossovers(r))
    crossings.push_back({{"slower_below", info(c.slower_below).name},
                         {"faster_above", info(c.faster_above).name},
                         {"size", c.size},
                         {"seconds", c.seconds}});
  return crossings;
}

// Returns nullopt if this version does not know the way.
std::optional<LabPoint> read_point(const JsonInput& p) {
  const auto way = std::ranges::find(ways(), p.required("way").text(), &WayInfo::name);
  if (way == ways().end()) return {};
  for (const char* key : {"size", "median_s"}) (void)p.required(key);
  auto point = read_from<LabPoint>(p, list);
  point.way = way->way;
  JsonFields fields(p);
  if (p.at("recorded").there()) list_recorded(fields, point);
  return point;
}

// Reads the spec. The script of another framework writes only some of its fields.
LabSpec read_spec(const JsonInput& object) {
  if (object.at("spec").there()) return lab_spec_from_json(object.at("spec").value());
  json said = json::object();
  for (const char* key : {"operation", "expression", "depth", "m", "k", "warm_up", "cold_cache", "seed"})
    if (const JsonInput value = object.at(key); value.there()) said[key] = value.value();
  return lab_spec_from_json(said);
}

// What a script measured, if it does not say what it was asked for.
void add_measured(LabSpec& spec, const std::vector<LabPoint>& points) {
  for (const LabPoint& p : points) {
    if (std::ranges::find(spec.sizes, p.size) == spec.sizes.end()) spec.sizes.push_back(p.size);
    if (std::ranges::find(spec.ways, p.way) == spec.ways.end()) spec.ways.push_back(p.way);
  }
  std::ranges::sort(spec.sizes);
}

}  // namespace

json to_json(const LabResult& r) {
  json points = json::array();
  for (const LabPoint& p : r.points) points.push_back(point_json(p));
  json object = {{"spec", to_json(r.spec)},        {"device", r.device}, {"message", r.message},
                 {"cancelled", r.cancelled},       {"points", points},   {"crossovers", crossings_json(r)},
                 {"ceilings", to_json(r.ceilings)}};
  if (!r.source.empty()) object["framework"] = r.source;
  if (!r.unsaved.empty()) object["unsaved"] = r.unsaved;
  return object;
}

LabResult lab_result_from_json(const json& object) {
  const JsonInput input(object, "result");
  LabResult result;
  result.spec = read_spec(input);
  for (const JsonInput& p : input.required("points").items())
    if (auto point = read_point(p)) result.points.push_back(std::move(*point));
  if (!input.at("spec").there()) add_measured(result.spec, result.points);
  if (const JsonInput ceilings = input.at("ceilings"); ceilings.there())
    result.ceilings = ceilings_from_json(ceilings.value());
  result.device = input.at("device").text();
  result.message = input.at("message").text();
  result.cancelled = input.at("cancelled").flag(false);
  result.source = input.at("framework").text();
  result.unsaved = input.at("unsaved").text();
  return result;
}

std::string to_csv(const LabResult& r) {
  std::ostringstream out;
  out << "way,size,median_s,p5_s,p95_s,device_s,device_p5_s,device_p95_s,copy_s,compute_s,bound_s,repeats,flops,bytes,"
         "error,ok\n";
  for (const LabPoint& p : r.points)
    out << info(p.way).name << ',' << p.size << ',' << p.median_s << ',' << p.low_s << ',' << p.high_s << ','
        << p.device_s << ',' << p.device_low_s << ',' << p.device_high_s << ',' << p.copy_s << ',' << p.compute_s << ','
        << p.bound_s << ',' << p.repeats << ',' << p.flops << ',' << p.bytes << ',' << p.error << ',' << (p.ok ? 1 : 0)
        << '\n';
  return out.str();
}

}  // namespace ws::lab

// Writes results of sweeps as JSON and CSV, and reads them. The input may come from an older version or the PyTorch
// script.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/lab/ceilings.h"
#include "profiling/base/json_input.h"

namespace ws::lab {

using nlohmann::json;

namespace {

json point_json(const LabPoint& p) {
  json point = {{"way", info(p.way).name},
                {"size", p.size},
                {"ok", p.ok},
                {"median_s", p.median_s},
                {"p5_s", p.low_s},
                {"p95_s", p.high_s},
                {"device_s", p.device_s},
                {"device_p5_s", p.device_low_s},
                {"device_p95_s", p.device_high_s},
                {"copy_s", p.copy_s},
                {"compute_s", p.compute_s},
                {"bound_s", p.bound_s},
                {"repeats", p.repeats},
                {"flops", p.flops},
                {"bytes", p.bytes},
                {"error", p.error},
                {"note", p.note}};
  if (p.recorded.steps > 0)
    point["recorded"] = {p.recorded.first_step, p.recorded.steps, p.recorded.begin_ns, p.recorded.end_ns};
  return point;
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
  const auto number = [&p](const char* key, double fallback = 0) { return p.at(key).number(fallback); };
  LabPoint point;
  point.way = way->way;
  point.size = p.required("size").whole(0, 0);
  point.ok = p.at("ok").flag(true);
  point.median_s = p.required("median_s").number(0);
  point.low_s = number("p5_s", point.median_s);
  point.high_s = number("p95_s", point.median_s);
  point.device_s = number("device_s");
  point.device_low_s = number("device_p5_s");
  point.device_high_s = number("device_p95_s");
  point.copy_s = number("copy_s");
  point.compute_s = number("compute_s");
  point.bound_s = number("bound_s");
  point.repeats = static_cast<int>(p.at("repeats").whole(0, 0, 1'000'000'000));
  point.flops = std::llround(std::clamp(number("flops"), 0.0, 9e18));
  point.bytes = std::llround(std::clamp(number("bytes"), 0.0, 9e18));
  point.error = number("error");
  point.note = p.at("note").text();
  if (const JsonInput recorded = p.at("recorded"); recorded.there()) {
    const auto range = recorded.items();
    if (range.size() != 4) recorded.refuse("four whole numbers");
    point.recorded = {range[0].whole(0), range[1].whole(0), range[2].whole(0), range[3].whole(0)};
  }
  return point;
}

// Reads the spec. The script of another framework writes only some of its fields.
LabSpec read_spec(const JsonInput& object) {
  if (object.at("spec").there()) return lab_spec_from_json(object.at("spec").value());
  json said = json::object();
  for (const char* key : {"operation", "depth", "m", "k", "warm_up", "cold_cache", "seed"})
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

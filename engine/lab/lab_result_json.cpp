// Results of sweeps as JSON and CSV. What is read may come from an older version or from the PyTorch script.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/lab/ceilings.h"

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

// A way that this version does not know gives no point.
std::optional<LabPoint> read_point(const json& p) {
  const auto name = p.at("way").get<std::string>();
  const auto way = std::ranges::find(ways(), name, &WayInfo::name);
  if (way == ways().end()) return {};
  LabPoint point;
  point.way = way->way;
  point.size = p.at("size").get<int64_t>();
  point.ok = p.value("ok", true);
  point.median_s = p.at("median_s").get<double>();
  point.low_s = p.value("p5_s", point.median_s);
  point.high_s = p.value("p95_s", point.median_s);
  point.device_s = p.value("device_s", 0.0);
  point.device_low_s = p.value("device_p5_s", 0.0);
  point.device_high_s = p.value("device_p95_s", 0.0);
  point.copy_s = p.value("copy_s", 0.0);
  point.compute_s = p.value("compute_s", 0.0);
  point.bound_s = p.value("bound_s", 0.0);
  point.repeats = p.value("repeats", 0);
  point.flops = p.value("flops", int64_t{0});
  point.bytes = p.value("bytes", int64_t{0});
  point.error = p.value("error", 0.0);
  point.note = p.value("note", "");
  if (const auto r = p.find("recorded"); r != p.end())
    point.recorded = {r->at(0).get<int64_t>(), r->at(1).get<int64_t>(), r->at(2).get<int64_t>(),
                      r->at(3).get<int64_t>()};
  return point;
}

// The script of another framework says only what it ran.
LabSpec read_spec(const json& object) {
  LabSpec spec;
  if (object.contains("spec")) return lab_spec_from_json(object.at("spec"));
  if (object.contains("operation")) spec = lab_spec_from_json({{"operation", object.at("operation")}});
  if (object.contains("depth")) spec.depth = object.at("depth").get<int>();
  spec.m = object.value("m", int64_t{0});
  spec.k = object.value("k", int64_t{0});
  spec.warm_up = object.value("warm_up", spec.warm_up);
  spec.cold_cache = object.value("cold_cache", false);
  spec.seed = object.value("seed", spec.seed);
  return spec;
}

}  // namespace

json to_json(const LabResult& r) {
  json points = json::array();
  for (const LabPoint& p : r.points) points.push_back(point_json(p));
  json object = {{"spec", to_json(r.spec)},        {"device", r.device}, {"message", r.message},
                 {"cancelled", r.cancelled},       {"points", points},   {"crossovers", crossings_json(r)},
                 {"ceilings", to_json(r.ceilings)}};
  if (!r.source.empty()) object["framework"] = r.source;
  return object;
}

LabResult lab_result_from_json(const json& object) {
  try {
    LabResult result;
    result.spec = read_spec(object);
    for (const json& p : object.at("points"))
      if (auto point = read_point(p)) result.points.push_back(std::move(*point));
    if (const auto found = object.find("ceilings"); found != object.end()) result.ceilings = ceilings_from_json(*found);
    result.device = object.value("device", "");
    result.message = object.value("message", "");
    result.cancelled = object.value("cancelled", false);
    result.source = object.value("framework", "");
    return result;
  } catch (const json::exception&) {
    throw Failure("this is no result of the laboratory: expected a list of points with way, size and median_s");
  }
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

#include "engine/lab/ceilings.h"

#include <nlohmann/json.hpp>

#include "engine/devices/device_workloads.h"
#include "engine/devices/devices.h"
#include "engine/workloads/workload.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"
#include "profiling/base/whole_file.h"

namespace ws::lab {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct CeilingName {
  const char* name;
  double Ceilings::*value;
};
constexpr CeilingName kCeilings[] = {
    {"memory_bytes_s", &Ceilings::read_write_bytes_s}, {"l2_bytes_s", &Ceilings::l2_bytes_s}, {"fp32_flops_s", &Ceilings::fp32_flops_s},
    {"tf32_flops_s", &Ceilings::tf32_flops_s},         {"fp16_flops_s", &Ceilings::fp16_flops_s},
    {"pinned_bytes_s", &Ceilings::pinned_bytes_s},     {"sine_per_s", &Ceilings::sine_per_s},
    {"short_sine_per_s", &Ceilings::short_sine_per_s}};

// Returns an empty object if the file cannot be read or has a different form.
json read_cards(const fs::path& file) {
  try {
    json cards = read_json(file);
    if (cards.is_object()) return cards;
  } catch (const Failure&) {
  }
  return json::object();
}

// Ranks of a run rarely use another number of GPUs.
std::vector<BusRate> all_bus_rates(int gpus, const std::atomic<bool>& cancel) {
  std::vector<BusRate> all;
  for (int count = 2; count <= gpus && !cancel; count = count < gpus ? std::min(2 * count, gpus) : gpus + 1)
    for (const BusRate& rate : measure_bus_rates(count, cancel)) all.push_back(rate);
  return all;
}

}  // namespace

json to_json(const Ceilings& ceilings) {
  json object;
  for (const CeilingName& c : kCeilings) object[c.name] = ceilings.*c.value;
  if (!ceilings.bus_rates.empty()) object["bus_rates"] = ws::to_json(ceilings.bus_rates);
  return object;
}

Ceilings ceilings_from_json(const json& object) {
  Ceilings ceilings;
  for (const CeilingName& c : kCeilings) {
    const auto found = object.find(c.name);
    if (found != object.end() && found->is_number()) ceilings.*c.value = found->get<double>();
  }
  if (const auto rates = object.find("bus_rates"); rates != object.end()) ceilings.bus_rates = bus_rates_from_json(*rates);
  return ceilings;
}

fs::path ceilings_file() {
  const fs::path cache = cache_folder();
  return cache.empty() ? cache : cache / "ceilings.json";
}

Ceilings remembered_ceilings(const std::string& device, const std::string& driver) {
  const json cards = read_cards(ceilings_file());
  const auto card = cards.find(device);
  if (card == cards.end() || !card->is_object()) return {};
  if (!driver.empty() && card->value("driver", json()) != driver) return {};
  return ceilings_from_json(*card);
}

void remember_ceilings(const std::string& device, const std::string& driver, const Ceilings& ceilings) {
  const fs::path file = ceilings_file();
  if (file.empty()) return;
  json cards = read_cards(file);
  json card = to_json(ceilings);
  card["driver"] = driver;
  cards[device] = card;
  prof::write_shared(file.string(), cards.dump(1) + "\n");
}

Ceilings measure_ceilings(const std::atomic<bool>& cancel, std::string* missing) {
  const DeviceInfo& device = device_info();
  if (!device.cuda) throw Failure("There is no GPU to measure: " + device.why_not);
  Ceilings measured;
  for (const Operation operation : {Operation::MatMul, Operation::Sine}) {
    LabSpec all;
    all.operation = operation;
    all.ways = {Way::GpuResident, Way::GpuTf32, Way::GpuFp16};
    measure_device_ceilings(measured, all, cancel);
  }
  release_device_memory();
  try {
    measured.bus_rates = all_bus_rates(device.gpus, cancel);
  } catch (const Failure& failure) {
    if (missing) *missing = std::string("The bandwidth between the GPUs was not measured: ") + failure.what();
  }
  if (!cancel) remember_ceilings(device.name, device.driver, measured);
  return measured;
}

}  // namespace ws::lab

#include "profiling/analysis/card.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "profiling/base/json_input.h"

namespace ws::prof {

namespace {

// Only for names that identify the card uniquely. A part of a card (MIG) has fewer multiprocessors.
int multiprocessors_by_name(std::string_view name) {
  struct Known {
    std::string_view part;
    int count;
  };
  static constexpr Known kKnown[] = {
      {"H200", 132}, {"H100 80GB HBM3", 132}, {"H100 NVL", 132}, {"H100 PCIe", 114}, {"A100", 108},
      {"V100", 80},  {"Tesla T4", 40},        {"B200", 148}};
  if (name.find("MIG") != name.npos) return 0;
  for (const Known& known : kKnown)
    if (names_card(name, known.part)) return known.count;
  return 0;
}

}  // namespace

Card card_of(const RunSummary& run) {
  Card card;
  card.name = run.device;
  const auto machine = parse_json_or_null(run.machine);
  const auto said = [&](const char* key) {
    return machine.is_object() ? machine.value(key, nlohmann::json()) : nlohmann::json();
  };
  const nlohmann::json compute = said("compute"), count = said("multiprocessors");
  const std::string capability = compute.is_string() ? compute.get<std::string>() : std::string();
  if (const auto known = capability_of(capability)) card.major = known->major, card.minor = known->minor;
  card.limits = limits_of_card(run.device, capability);
  if (count.is_number_integer())
    card.multiprocessors = static_cast<int>(std::clamp<int64_t>(count.get<int64_t>(), 0, 4096));
  if (card.multiprocessors == 0) card.multiprocessors = multiprocessors_by_name(run.device);
  return card;
}

std::string machine_text(const Card& card) {
  nlohmann::json machine = nlohmann::json::object();
  if (!card.name.empty()) machine["gpu"] = card.name;
  if (card.major > 0) machine["compute"] = std::to_string(card.major) + '.' + std::to_string(card.minor);
  if (card.multiprocessors > 0) machine["multiprocessors"] = card.multiprocessors;
  if (machine.empty()) return {};
  return machine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<CardFill> fill_of(const Detail& kernel, const Card& card) {
  const auto product = [](const int(&v)[3]) { return static_cast<double>(v[0]) * v[1] * v[2]; };
  const double blocks = product(kernel.grid), threads = product(kernel.block);
  if (card.multiprocessors <= 0 || blocks <= 0 || threads <= 0) return std::nullopt;
  CardFill fill;
  fill.blocks_per_sm = blocks / card.multiprocessors;
  fill.warps_per_sm = fill.blocks_per_sm * threads / 32;
  if (!card.limits) return fill;
  const Occupancy most = occupancy_of(kernel, *card.limits);
  if (most.blocks > 0)
    fill.occupancy = std::min<double>(most.blocks, fill.blocks_per_sm) * threads / card.limits->threads_per_sm;
  return fill;
}

}  // namespace ws::prof

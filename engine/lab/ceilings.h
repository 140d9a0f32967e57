// What a card can do at most, as it was measured, kept between programs: measuring takes seconds and heats the card.
#pragma once
#include <filesystem>

#include "engine/lab/lab.h"

namespace ws::lab {

std::filesystem::path ceilings_file();  // in the user's cache; empty where there is none

// By the device's name and, if given, its driver. Zero is what is not known.
Ceilings remembered_ceilings(const std::string& device, const std::string& driver = {});
// A new driver's replace the old one's. Where nothing can be written nothing is remembered.
void remember_ceilings(const std::string& device, const std::string& driver, const Ceilings& ceilings);

// All of this machine's card, anew, and remembered unless cancelled; takes seconds. Throws Failure without a GPU.
Ceilings measure_ceilings(const std::atomic<bool>& cancel);

nlohmann::json to_json(const Ceilings& ceilings);
Ceilings ceilings_from_json(const nlohmann::json& object);

}  // namespace ws::lab

// The measured limits of a GPU, kept in a file between programs because measuring takes seconds and heats the card.
#pragma once
#include <filesystem>

#include "engine/lab/lab.h"

namespace ws::lab {

std::filesystem::path ceilings_file();  // in the user's cache; empty if there is none

// Returns the ceilings for a device name and, if given, a driver. Zero means unknown.
Ceilings remembered_ceilings(const std::string& device, const std::string& driver = {});
// Saves the ceilings. A new driver replaces the values of the old one. Does nothing if the file cannot be written.
void remember_ceilings(const std::string& device, const std::string& driver, const Ceilings& ceilings);

// Measures all ceilings of this machine's GPUs again and saves them unless cancelled. Takes seconds. Throws Failure
// without a GPU. `missing`: gets a sentence on what could not be measured.
Ceilings measure_ceilings(const std::atomic<bool>& cancel, std::string* missing = nullptr);

nlohmann::json to_json(const Ceilings& ceilings);
Ceilings ceilings_from_json(const nlohmann::json& object);

}  // namespace ws::lab

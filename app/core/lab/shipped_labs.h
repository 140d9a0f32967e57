// The sweeps that come with the program, each with a text. The window and the command line show the same. No Qt here.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/lab/lab.h"

namespace ws::app {

struct ShippedLab {
  std::string name, title, path;  // name: file name without extension; title: first words
};
std::vector<ShippedLab> shipped_labs();  // by name

// Reads a file of choices as JSON, shipped or the user's own. Throws Failure.
nlohmann::json read_lab_file(const std::string& path);

// What a shipped sweep measured on the GPU that its file names; nullopt if there is no such file.
std::optional<lab::LabResult> measured_lab(const ShippedLab& shipped);

// Returns the text of such a file: what is done and what to expect, then what was measured elsewhere.
std::string lab_page(const nlohmann::json& object);

}  // namespace ws::app

// The sweeps that come with the program, each with a text. The window and the command line show the same. No Qt here.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ws::app {

struct ShippedLab {
  std::string name, title, path;  // name: file name without extension; title: first words
};
std::vector<ShippedLab> shipped_labs();  // by name

// Reads a file of choices as JSON, shipped or the user's own. Throws Failure.
nlohmann::json read_lab_file(const std::string& path);

// Returns the text of such a file: what is done and what to expect, then what was measured elsewhere.
std::string lab_page(const nlohmann::json& object);

}  // namespace ws::app

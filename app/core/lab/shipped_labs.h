// The shipped sweeps, each with a page of text: the same in the window and on the command line. No Qt in here.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ws::app {

struct ShippedLab {
  std::string name, title, path;  // the file's name without its ending; its first words; the file
};
std::vector<ShippedLab> shipped_labs();  // by name

// A file of choices as JSON, shipped or a person's own. Throws Failure.
nlohmann::json read_lab_file(const std::string& path);

// What such a file says about itself: what is done and what to expect, then what was measured elsewhere.
std::string lab_page(const nlohmann::json& object);

}  // namespace ws::app

// The shipped sweeps, each with a page of text.
#pragma once
#include <QString>
#include <vector>

namespace ws::app {

struct LabPreset {
  QString title, path;
};
std::vector<LabPreset> lab_presets();

}  // namespace ws::app

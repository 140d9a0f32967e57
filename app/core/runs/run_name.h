// Names a run by what it is: its data, its network, and the choices that differ from the plain preset of its data. The
// window, run files, reports and the command line share it.
#pragma once
#include <string>

#include "engine/plan/run_spec.h"

namespace ws::app {

std::string data_label(const data::DataSpec& spec);  // "MNIST", "moons.csv"
std::string network_label(const RunSpec& spec);      // "784-128-10", "y = wx + b"
// The plain preset of the data set, else the default choices for this data: a run is described by what differs from it.
const RunSpec& plain_choices(const RunSpec& spec);

std::string value_label(const FieldChange& change);   // "direct", "30 epochs", "lr 0.01"
std::string change_label(const FieldChange& change);  // "arena → direct", "lr 0.1 → 0.01"
// "arena → direct, lr 0.1 → 0.01 + 3 more"; empty if nothing differs. `most`: the number of changes by name.
std::string changes_label(const RunSpec& before, const RunSpec& spec, size_t most);

// "MNIST 784-128-10 · direct, 30 epochs"
std::string run_name(const RunSpec& spec);

}  // namespace ws::app

// What is known of a data set before it is loaded: enough for the live estimate beside the choices.
#pragma once
#include <cstdint>

#include "engine/plan/run_spec.h"

namespace ws::app {

struct DataShape {
  int64_t features = 0, outputs = 0, train = 0, test = 0;  // train 0: not known before loading
  bool known() const { return train > 0; }
};
DataShape data_shape(const data::DataSpec& spec);
double rows_of_a_step(const RunSpec& spec);  // NaN: not known before loading

// Whether a choice has an effect with the others as they are; the window hides the rest.
bool relevant(const RunSpec& spec, std::string_view key);
// Choices that most people never change: shown under "More".
bool advanced(std::string_view key);

}  // namespace ws::app

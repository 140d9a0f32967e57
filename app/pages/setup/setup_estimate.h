// What the choices of a run will cost, as the Setup dock says it. Pure.
#pragma once
#include <QString>

#include "engine/plan/run_spec.h"

namespace ws::app {

struct SetupEstimate {
  explicit SetupEstimate(const RunSpec& spec);

  QString rows, data;          // "120 train · 30 test", "MNIST · batch 64"
  QString chain, short_chain;  // of the layers
  QString parameters, cost;    // empty until the rows are known
  QString steps, training;
};

}  // namespace ws::app

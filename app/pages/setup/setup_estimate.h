// The estimated cost of the choices, as shown in the Setup dock. Pure.
#pragma once
#include <QString>

#include "engine/plan/run_spec.h"

namespace ws::app {

struct SetupEstimate {
  explicit SetupEstimate(const RunSpec& spec);

  QString rows, data;          // "120 train · 30 test", "MNIST · batch 64"
  QString chain, short_chain;  // the layers
  QString parameters, cost;    // empty until the rows are known
  QString steps, training;
};

}  // namespace ws::app

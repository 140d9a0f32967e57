// Holds back losses and epochs until the first progress report arrives. A viewer needs that report first: it has the
// steps per epoch and the last epoch.
#pragma once
#include "app/core/runs/traced_training.h"

namespace ws::app {

class FirstProgress {
 public:
  // Holds them back until then, or until the training is over.
  void order(RunUpdate& update, bool over);

 private:
  bool known_ = false;
  RunUpdate early_;
};

}  // namespace ws::app

// Losses and epochs may come before the first word of how far a training is. Whoever shows them needs that first: how many
// steps an epoch has, and which epoch is the last.
#pragma once
#include "app/core/runs/traced_training.h"

namespace ws::app {

class FirstProgress {
 public:
  // Keeps them back until then, or until the training is over.
  void order(RunUpdate& update, bool over);

 private:
  bool known_ = false;
  RunUpdate early_;
};

}  // namespace ws::app

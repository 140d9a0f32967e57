// The interface for whoever trains for the window: this machine, on its own thread, or another machine.
#pragma once
#include <string>

#include "app/core/runs/traced_training.h"

namespace ws::app {

class TrainingWorker {
 public:
  virtual ~TrainingWorker() = default;
  virtual void pause() = 0;
  virtual void resume() = 0;
  virtual void stepOnce() = 0;
  virtual void stop() = 0;
  virtual void change(const std::string& key, const std::string& value) = 0;  // throws Failure
  virtual void setTraceLevel(prof::TraceLevel level) = 0;
  virtual RunUpdate take() = 0;
  virtual bool over() = 0;             // True if it ended; call take() once more
  virtual bool wait(int most_ms) = 0;  // returns true if it is over
  virtual std::string failure() const = 0;  // why it ended without a result; valid once it is over
  virtual prof::CollectorStatus traceStatus() const { return {}; }
  virtual TrainControl* control() { return nullptr; }  // only for a training on this machine
};

}  // namespace ws::app

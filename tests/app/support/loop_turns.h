// How long the window's thread works without a turn of its event loop, in time of its core: a busy machine changes it
// little. As long as that, nothing is drawn and no key is handled.
#pragma once
#include <QAbstractEventDispatcher>
#include <QObject>
#include <algorithm>

#include "tests/support/machine.h"

namespace ws::test {

class LoopTurns : public QObject {
 public:
  LoopTurns() {
    const auto* loop = QAbstractEventDispatcher::instance();
    connect(loop, &QAbstractEventDispatcher::awake, this, [this] { begin(); });
    connect(loop, &QAbstractEventDispatcher::aboutToBlock, this, [this] { end(); });
  }
  double longest_ms() const { return longest_ms_; }

 private:
  void begin() { end(); began_ms_ = thread_cpu_ms(); }
  void end() {
    if (began_ms_ > 0) longest_ms_ = std::max(longest_ms_, thread_cpu_ms() - began_ms_);
    began_ms_ = 0;
  }
  double began_ms_ = 0, longest_ms_ = 0;
};

}  // namespace ws::test

// The advice for a run of the window, with predictions. The pages Advice and What if show the same advice.
#pragma once
#include <QObject>

#include "app/pages/insights/run_facts.h"
#include "app/workspace/report_reader.h"

namespace ws::app {

class RunAdvice : public QObject {
  Q_OBJECT
 public:
  explicit RunAdvice(QObject* parent = nullptr);
  void setRun(Run* run, bool compare);  // compare: also its ranks and multiprocessors, on another thread
  RunInsights found(bool predicted) const;  // predicted: replays the steps, which takes up to 0.1 s
  Run* run() const { return ranks_.run(); }

 signals:
  void changed();  // a comparison is ready

 private:
  MultiprocessorReader inside_;
  RankReader ranks_;
};

}  // namespace ws::app

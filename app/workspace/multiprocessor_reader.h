// Compares the multiprocessors of a run on another thread. The pages that show the comparison read the same one.
#pragma once
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <memory>
#include <optional>

#include "app/workspace/job.h"
#include "app/workspace/selection.h"
#include "profiling/analysis/multiprocessors.h"

namespace ws::app {

class MultiprocessorReader : public QObject {
  Q_OBJECT
 public:
  using Report = std::shared_ptr<const prof::MultiprocessorReport>;

  explicit MultiprocessorReader(QObject* parent = nullptr);
  void setRun(Run* run);
  void refresh();      // reads the run again if it has more spans than the report
  void refreshSoon();  // the same, but a live run is not read all the time
  Run* run() const { return run_; }
  bool reading() const { return job_.running(); }
  const Report& report() const { return report_; }  // never null
  // The span of a bar of the report. Reads it from the run file if needed.
  std::optional<SpanChoice> spanOf(const prof::InnerBar& bar) const;

 signals:
  void changed();  // the report
  void failed(const QString& problem);

 private:
  QPointer<Run> run_;
  Report report_;
  size_t spans_ = 0;  // inside kernels, when the report was begun
  bool live_ = false;
  bool again_ = false;  // the run grew while it was read
  QTimer soon_;
  Job job_;  // last member, so that it ends first
};

}  // namespace ws::app

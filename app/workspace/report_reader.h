// Compares the parts of a run, such as its ranks, on another thread. Each page that shows a comparison has a reader.
#pragma once
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <functional>
#include <memory>
#include <optional>

#include "app/workspace/job.h"
#include "app/workspace/selection.h"
#include "app/workspace/trace_source.h"

namespace ws::app {

class ReportReader : public QObject {
  Q_OBJECT
 public:
  explicit ReportReader(QObject* parent = nullptr);
  void setRun(Run* run);
  void refresh();      // reads the run again if it has more spans than the report
  void refreshSoon();  // the same, but a live run is not read all the time
  Run* run() const { return run_; }
  bool reading() const { return job_.running(); }

 signals:
  void changed();  // the report
  void failed(const QString& problem);

 protected:
  struct Work {
    std::function<void(const TraceSource::Cancelled&)> read;  // on another thread
    std::function<void()> take;                               // then, on the window's thread
  };
  virtual size_t spansOf(const prof::Trace& trace) const = 0;  // that the report is made of; 0: there is no report
  virtual Work workOn(TraceSource source) = 0;
  virtual void clear() = 0;

 private:
  QPointer<Run> run_;
  size_t spans_ = 0;  // when the report was begun
  bool live_ = false;
  bool again_ = false;  // the run grew while it was read
  QTimer soon_;
  Job job_;  // last member, so that it ends first
};

template <class R, R (TraceSource::*read)(const TraceSource::Cancelled&) const>
class ReaderOf : public ReportReader {
 public:
  using ReportReader::ReportReader;
  using Report = std::shared_ptr<const R>;
  const Report& report() const { return report_; }  // never null

 protected:
  Work workOn(TraceSource source) override {
    const auto found = std::make_shared<R>();
    return {[source, found](const TraceSource::Cancelled& cancelled) { *found = (source.*read)(cancelled); },
            [this, found] { report_ = found; }};
  }
  void clear() override { report_ = std::make_shared<R>(); }

 private:
  Report report_ = std::make_shared<R>();
};

class MultiprocessorReader : public ReaderOf<prof::MultiprocessorReport, &TraceSource::multiprocessors> {
 public:
  using ReaderOf::ReaderOf;
  // The span of a bar of the report. Reads it from the run file if needed.
  std::optional<SpanChoice> spanOf(const prof::InnerBar& bar) const;

 protected:
  size_t spansOf(const prof::Trace& trace) const override;
};

bool several_ranks(const prof::Trace& trace);  // True if at least two ranks left a span

class RankReader : public ReaderOf<prof::RankReport, &TraceSource::ranks> {
 public:
  using ReaderOf::ReaderOf;
  TimeRange timeOf(size_t step) const;  // of an index into report()->steps, which must have its begin
  // The step as a row of the timeline shows it. Only in the part of the trace that is in memory.
  std::optional<SpanChoice> spanOf(size_t step) const;

 protected:
  size_t spansOf(const prof::Trace& trace) const override;
};

}  // namespace ws::app

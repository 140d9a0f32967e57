// Compares the parts of a run, such as its ranks, on another thread. Each page that shows a comparison has a
// reader. The readers of one run share the work.
#pragma once
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "app/workspace/job.h"
#include "app/workspace/focus.h"
#include "app/workspace/trace_source.h"

namespace ws::app {

// The comparison of one run. All pages that show the run share it.
class ReportJob : public QObject {
  Q_OBJECT
 public:
  explicit ReportJob(Run* run);
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

 private:
  QPointer<Run> run_;
  size_t spans_ = 0;  // when the report was begun
  bool live_ = false;
  bool again_ = false;  // the run grew while it was read
  QTimer soon_;
  Job job_;  // last member, so that it ends first
};

// What a page holds: the comparison of the run that it shows.
class ReportReader : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  void setRun(Run* run);
  void refresh();
  void refreshSoon();
  Run* run() const { return job_ ? job_->run() : nullptr; }
  bool reading() const { return job_ && job_->reading(); }

 signals:
  void changed();
  void failed(const QString& problem);

 protected:
  virtual std::shared_ptr<ReportJob> jobOf(Run* run) const = 0;
  const ReportJob* job() const { return job_.get(); }

 private:
  std::shared_ptr<ReportJob> job_;  // null: no run
};

template <class R, R (TraceSource::*read)(const TraceSource::Cancelled&) const>
class JobOf : public ReportJob {
 public:
  using Spans = size_t (*)(const prof::Trace&);
  JobOf(Run* run, Spans spans) : ReportJob(run), spans_of_(spans) {}
  const std::shared_ptr<const R>& report() const { return report_; }

 protected:
  size_t spansOf(const prof::Trace& trace) const override { return spans_of_(trace); }
  Work workOn(TraceSource source) override {
    const auto found = std::make_shared<R>();
    return {[source, found](const TraceSource::Cancelled& cancelled) { *found = (source.*read)(cancelled); },
            [this, found] { report_ = found; }};
  }

 private:
  Spans spans_of_;
  std::shared_ptr<const R> report_ = std::make_shared<R>();
};

template <class R, R (TraceSource::*read)(const TraceSource::Cancelled&) const, size_t (*spans)(const prof::Trace&)>
class ReaderOf : public ReportReader {
 public:
  using ReportReader::ReportReader;
  using Report = std::shared_ptr<const R>;
  const Report& report() const {  // never null
    static const Report none = std::make_shared<R>();
    return job() ? static_cast<const JobOf<R, read>*>(job())->report() : none;
  }

 protected:
  std::shared_ptr<ReportJob> jobOf(Run* run) const override {
    static std::map<const Run*, std::weak_ptr<JobOf<R, read>>> jobs;
    std::erase_if(jobs, [](const auto& each) { return each.second.expired(); });
    auto known = jobs[run].lock();
    if (!known || known->run() != run) jobs[run] = known = std::make_shared<JobOf<R, read>>(run, spans);
    return known;
  }
};

size_t spans_of_ranks(const prof::Trace& trace);
size_t spans_inside_kernels(const prof::Trace& trace);

class MultiprocessorReader
    : public ReaderOf<prof::MultiprocessorReport, &TraceSource::multiprocessors, &spans_inside_kernels> {
 public:
  using ReaderOf::ReaderOf;
  // The span of a bar of the report. Reads it from the run file if needed.
  std::optional<SpanChoice> spanOf(const prof::InnerBar& bar) const;
};

class RankReader : public ReaderOf<prof::RankReport, &TraceSource::ranks, &spans_of_ranks> {
 public:
  using ReaderOf::ReaderOf;
  TimeRange timeOf(size_t step) const;  // of an index into report()->steps, which must have its begin
  // The step as a row of the timeline shows it. Only in the part of the trace that is in memory.
  std::optional<SpanChoice> spanOf(size_t step) const;
};

}  // namespace ws::app

#include "app/pages/insights/run_advice.h"

#include <algorithm>

#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/trace_insights.h"
#include "app/workspace/compared_live_run.h"

namespace ws::app {

RunAdvice::RunAdvice(QObject* parent) : QObject(parent) {
  for (ReportReader* reader : {static_cast<ReportReader*>(&inside_), static_cast<ReportReader*>(&ranks_)})
    connect(reader, &ReportReader::changed, this, &RunAdvice::changed);
}

void RunAdvice::setRun(Run* run, bool compare) {
  for (ReportReader* reader : {static_cast<ReportReader*>(&inside_), static_cast<ReportReader*>(&ranks_)}) {
    reader->setRun(run);
    if (compare) reader->refresh();
  }
}

// The reports know the steps, and the readers the spans that show them.
RunInsights RunAdvice::found(bool predicted) const {
  if (!run()) return {};
  RunInsights all = insights_of(judged_run(*run()), *ranks_.report(), *inside_.report());
  const auto show = [&](const char* rule, const std::optional<SpanChoice>& span, prof::TimeRange around) {
    for (Insight& one : all.found)
      if (one.rule == rule) {
        if (span) one.place = prof::FoundSpan{span->track, span->span};
        if (around.end > around.begin) one.around = around;
      }
  };
  if (!inside_.report()->late.empty()) show("late multiprocessor", inside_.spanOf(bar_of(*inside_.report(), inside_.report()->late[0])), {});
  if (const auto step = latest_step(*ranks_.report()))
    for (const char* rule : {"late rank", "ranks late in turn", "exposed transfers"}) show(rule, ranks_.spanOf(*step), ranks_.timeOf(*step));
  if (predicted) predict_savings(all.found, [this] { return causes_of(*run()); }, run()->trace, all.facts);
  return all;
}

}  // namespace ws::app

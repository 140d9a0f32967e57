#include "app/window/status_text.h"

#include <unistd.h>

#include <fstream>

#include "app/text/units.h"
#include "app/widgets/theme.h"
#include "profiling/analysis/trace_stats.h"

namespace ws::app {
namespace {

// Memory of this process in bytes.
double memory_in_use() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// The header says how far it is.
QString training_text(const Run& run, bool paused) {
  const QString state = QObject::tr("%1 %2").arg(paused ? QObject::tr("Paused") : QObject::tr("Training"), run_letter(std::max(0, run.letter)));
  if (!run.progress) return QObject::tr("%1 · no loss was read yet").arg(state);
  return QObject::tr("%1 · %2 elapsed").arg(state, duration_text(run.progress->elapsed_s));
}

void add_trace(const Run& run, std::vector<StatusPart>& parts) {
  const auto& losses = run.trace.losses;
  if (run.live() || losses.dropped_records > 0)
    parts.push_back({QObject::tr("records %1 · %2 dropped")
                         .arg(count_text(static_cast<int64_t>(run.trace.span_count() + losses.evicted_spans)),
                              count_text(static_cast<int64_t>(losses.dropped_records))),
                     losses.dropped_records > 0});
  if (const auto missing = prof::losses_text(losses); !missing.empty())
    parts.push_back({QString::fromStdString(missing), true});
  if (run.live()) parts.push_back({QObject::tr("history %1").arg(bytes_text(static_cast<double>(run.trace.resident_bytes()))), false});
}

}  // namespace

void show_status(StatusLine& line, Workspace& workspace) {
  const TrainingSession& session = *workspace.session();
  const Run* run = workspace.shownRun();
  if (session.busy())
    line.setState(training_text(*session.run(), session.paused()), session.paused() ? theme().quiet : theme().focus);
  else if (run && run->recording && run->live())
    line.setState(QObject::tr("Recording %1").arg(run_letter(std::max(0, run->slot))), theme().focus);
  else
    line.setState(QObject::tr("Ready"), theme().better);
  std::vector<StatusPart> parts;
  if (const QString work = workspace.jobs()->text(); !work.isEmpty()) parts.push_back({work, false});
  if (run && run->trace.span_count() > 0) add_trace(*run, parts);
  if (run && !run->counters_note.isEmpty()) parts.push_back({run->counters_note, run->counters_refused});
  line.setParts(std::move(parts));
  line.setToolTip(QObject::tr("This program uses %1 of memory.").arg(bytes_text(memory_in_use())));
}

}  // namespace ws::app

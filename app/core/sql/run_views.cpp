#include "app/core/sql/run_views.h"

#include <cmath>
#include <algorithm>
#include <map>

#include "app/core/comparison/compared_run.h"
#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/run_insights.h"
#include "app/core/runs/data_shape.h"
#include "app/core/runs/spec_line.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/memory_curves.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/analysis/ranks.h"
#include "profiling/analysis/stalls.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::app {
namespace {

// Rows that were computed as a whole. They are few beside the spans.
class ListedRows : public SqlRows {
 public:
  explicit ListedRows(std::vector<std::vector<SqlCell>> rows) : rows_(std::move(rows)) {}
  size_t count() const override { return rows_.size(); }
  SqlValue cell(size_t row, size_t column) const override {
    return std::visit([](const auto& value) -> SqlValue {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) return std::string_view(value);
      else return value;
    }, rows_[row][column]);
  }

 private:
  std::vector<std::vector<SqlCell>> rows_;
};

using Row = std::vector<SqlCell>;
using AddRow = std::function<void(Row)>;

// A view whose rows a function lists, run by run.
template <class List>
std::function<std::unique_ptr<SqlRows>(const SqlRuns&)> listed(List list) {
  return [list](const SqlRuns& runs) {
    std::vector<Row> rows;
    for (const SqlRun& run : runs)
      list(run, [&rows, &run](Row row) {
        row.insert(row.begin(), SqlCell(run.name));
        rows.push_back(std::move(row));
      });
    return std::make_unique<ListedRows>(std::move(rows));
  };
}

SqlCell number(double value) { return std::isfinite(value) ? SqlCell(value) : SqlCell(); }
SqlCell text(const std::string& value) { return value.empty() ? SqlCell() : SqlCell(value); }
SqlCell whole(auto value) { return static_cast<int64_t>(value); }
SqlCell known(auto value) { return value > 0 ? whole(value) : SqlCell(); }
SqlValue shown(SqlCell cell) {
  return std::visit([](auto&& value) -> SqlValue { return std::move(value); }, std::move(cell));
}
SqlCell step_of(uint32_t step) { return step > 0 ? whole(step - 1) : SqlCell(); }
SqlCell rank_of(int rank) { return rank >= 0 ? whole(rank) : SqlCell(); }

const char* kind_of(prof::SpanKind kind) {
  constexpr const char* kNames[] = {"kernel", "copy",  "memset", "call", "allocation", "free",   "wait", "graph launch",
                                    "graph",  "phase", "step",   "op",   "overhead",   "inside", "other"};
  const auto at = static_cast<size_t>(kind);
  return at < std::size(kNames) ? kNames[at] : "other";
}

const char* meaning_of(prof::Meaning meaning) {
  return prof::meaning_name(static_cast<size_t>(meaning) < prof::kMeanings ? meaning : prof::Meaning::Other);
}

// The step of what happened at a time. Own trainings know the step of each span; in other programs a span belongs to the step in
// which it begins.
class StepsByTime {
 public:
  explicit StepsByTime(const prof::Trace& trace) {
    for (const prof::Track& track : trace.tracks())
      if (track.kind == prof::TrackKind::Steps)
        prof::each_span(track, -prof::kAlways, prof::kAlways, [&](const prof::Span& span) { steps_[track.rank].push_back(&span); });
    for (auto& [rank, steps] : steps_) std::ranges::sort(steps, {}, &prof::Span::start);
  }
  SqlCell of(uint32_t known, int rank, prof::TimeNs at) const {
    const auto steps = steps_.find(rank);
    if (known > 0 || steps == steps_.end()) return step_of(known);
    const auto after = std::ranges::upper_bound(steps->second, at, {}, &prof::Span::start);
    if (after == steps->second.begin() || at >= (*std::prev(after))->end()) return {};
    return number_of(*std::prev(after), after - steps->second.begin());
  }
  // `count`: of the steps up to this one.
  static SqlCell number_of(const prof::Span* step, std::ptrdiff_t count) { return step->step > 0 ? step_of(step->step) : whole(count - 1); }

 private:
  std::map<int, std::vector<const prof::Span*>> steps_;  // by rank
};

// Spans stay where they are; a row is a place in a trace.
class SpanRows : public SqlRows {
 public:
  SpanRows(const SqlRuns& runs, bool (*wanted)(const prof::Track&, const prof::Span&)) : runs_(runs) {
    for (uint32_t r = 0; r < runs.size(); ++r) {
      steps_.emplace_back(runs[r].data.trace);
      const auto& tracks = runs[r].data.trace.tracks();
      for (uint32_t t = 0; t < tracks.size(); ++t)
        for (const prof::SpanBlock& block : tracks[t].blocks)
          for (const prof::Span& span : block.spans)
            if (wanted(tracks[t], span)) places_.push_back({&span, r, t});
    }
  }
  size_t count() const override { return places_.size(); }

 protected:
  struct Place {
    const prof::Span* span;
    uint32_t run, track;
  };
  const prof::Trace& trace(const Place& p) const { return runs_[p.run].data.trace; }
  prof::OpInfo op(const Place& p) const { return prof::charged_op(trace(p), p.span->span_meaning(), p.span->op); }
  SqlValue name(const Place& p) const {
    const prof::CodeStack* stack = trace(p).stack(p.span->name);
    return stack ? SqlValue(prof::stack_text(*stack)) : SqlValue(std::string_view(trace(p).name(p.span->name)));
  }
  SqlCell step(const Place& p) const { return steps_[p.run].of(p.span->step, trace(p).tracks()[p.track].rank, p.span->start); }
  const SqlRuns& runs_;
  std::vector<StepsByTime> steps_;  // by run
  std::vector<Place> places_;
};

class AllSpans : public SpanRows {
 public:
  explicit AllSpans(const SqlRuns& runs) : SpanRows(runs, [](const prof::Track&, const prof::Span&) { return true; }) {}
  SqlValue cell(size_t row, size_t column) const override {
    const Place& p = places_[row];
    const prof::Track& track = trace(p).tracks()[p.track];
    switch (column) {
      case 0: return std::string_view(runs_[p.run].name);
      case 1: return p.span->start;
      case 2: return static_cast<int64_t>(p.span->duration);
      case 3: return name(p);
      case 4: return std::string_view(kind_of(p.span->span_kind()));
      case 5: return std::string_view(meaning_of(p.span->span_meaning()));
      case 6: return std::string_view(track.name);
      case 7: return std::string_view(track.group);
      case 8: return shown(rank_of(track.rank));
      case 9: return shown(step(p));
      case 10: return shown(text(op(p).name));
      case 11: return shown(text(op(p).layer));
      case 12: return shown(text(op(p).phase));
      case 13: return shown(text(prof::line_of(op(p))));
      case 14: return shown(known(trace(p).detail(p.span->detail).bytes));
      default: return shown(known(p.span->correlation));
    }
  }
};

class Kernels : public SpanRows {
 public:
  explicit Kernels(const SqlRuns& runs)
      : SpanRows(runs, [](const prof::Track& track, const prof::Span& span) { return prof::on_gpu(track) && prof::is_kernel(span); }) {}
  SqlValue cell(size_t row, size_t column) const override {
    const Place& p = places_[row];
    const prof::Detail& d = trace(p).detail(p.span->detail);
    switch (column) {
      case 0: return std::string_view(runs_[p.run].name);
      case 1: return p.span->start;
      case 2: return static_cast<int64_t>(p.span->duration);
      case 3: return name(p);
      case 4: return std::string_view(short_name(p));
      case 5: return std::string_view(trace(p).tracks()[p.track].name);
      case 6: return shown(rank_of(trace(p).tracks()[p.track].rank));
      case 7: return shown(step(p));
      case 8: return shown(text(op(p).name));
      case 9: return shown(text(op(p).layer));
      case 10: return shown(text(op(p).phase));
      case 11: return shown(text(prof::line_of(op(p))));
      case 12: return shown(known(int64_t{d.grid[0]} * d.grid[1] * d.grid[2]));
      case 13: return shown(known(int64_t{d.block[0]} * d.block[1] * d.block[2]));
      case 14: return shown(known(d.registers));
      case 15: return d.block[0] > 0 ? SqlValue(int64_t{d.static_shared} + d.dynamic_shared) : SqlValue();
      default: return shown(known(p.span->correlation));
    }
  }

 private:
  const std::string& short_name(const Place& p) const {
    std::string& known = short_names_[{p.run, static_cast<uint32_t>(p.span->name)}];
    if (known.empty()) known = prof::short_kernel_name(trace(p).name(p.span->name));
    return known;
  }
  mutable std::map<std::pair<uint32_t, uint32_t>, std::string> short_names_;  // by run and name: they are few
};

SqlCell spec_text_of(const prof::RunSummary& run) {
  const auto spec = spec_of(run);
  return spec ? SqlCell(spec_line(*spec)) : SqlCell();
}

void list_runs(const SqlRun& run, const AddRow& add) {
  const prof::RunSummary& s = run.data.summary;
  const prof::StepSample sample = prof::StepsOfRun::of(run.data).sample();
  const prof::StepTime time = prof::step_time(run.data, sample);
  add({run.path, text(s.name), text(s.device), text(s.created), s.status, s.origin, known(s.steps), number(time.known() ? time.us.value : NAN),
       number(time.p5_us), number(time.p95_us), number(s.wall_s > 0 ? s.wall_s : NAN), number(s.train_loss), number(s.test_loss),
       number(s.final_accuracy), known(prof::peak_memory(run.data)), whole(run.data.trace.span_count()), spec_text_of(s),
       sample.parts.busy > 0 ? number(sample.busy_share()) : SqlCell()});
}

void list_steps(const SqlRun& run, const AddRow& add) {
  const prof::StepsOfRun steps = prof::StepsOfRun::of(run.data);
  for (const prof::ListedStep& step : steps.list(steps.sample(), run.data.summary.steps))
    add({whole(step.number), rank_of(step.rank), step.start, step.duration, whole(step.counted), number(step.us), whole(step.together)});
}

void list_ops(const SqlRun& run, const AddRow& add) {
  const prof::Trace& trace = run.data.trace;
  for (const prof::KernelRow& row : prof::work_table(trace, -prof::kAlways, prof::kAlways, prof::GroupBy::Op)) {
    const prof::OpInfo& op = trace.ops[row.op < trace.ops.size() ? row.op : 0];
    add({row.key, text(op.detail), text(op.layer), text(op.phase), text(prof::line_of(op)), std::string(meaning_of(row.meaning)), whole(row.time.count),
         row.time.total, number(row.time.mean), row.time.median, row.time.p99, row.share, known(op.flops), known(op.bytes)});
  }
}

void list_lines(const SqlRun& run, const AddRow& add) {
  for (const prof::KernelRow& row : prof::work_table(run.data.trace, -prof::kAlways, prof::kAlways, prof::GroupBy::Line))
    add({row.key, whole(row.time.count), row.time.total, number(row.time.mean), row.share, known(row.with_calls)});
}

void list_modules(const SqlRun& run, const AddRow& add) {
  for (const prof::ModuleNode& node : prof::module_tree(run.data.trace, prof::counted_steps(prof::StepsOfRun::of(run.data).sample())))
    add({node.path, whole(node.depth), node.all.forward_ns, node.all.backward_ns, node.all.other_ns, node.all.gpu_ns(), node.all.host_ns,
         whole(node.all.kernels), whole(node.own.kernels), known(node.all.peak_bytes)});
}

void list_losses(const SqlRun& run, const AddRow& add) {
  for (const prof::Metric& m : run.data.metrics) add({m.step, number(m.wall_s), SqlCell("train"), number(m.loss), number(m.accuracy)});
  for (const prof::Evaluation& e : run.data.evaluations) add({e.step, number(e.wall_s), SqlCell("test"), number(e.test_loss), number(e.test_accuracy)});
}

void list_counter(const prof::CounterTrack& counter, const AddRow& add) {
  for (const prof::CounterPoint& point : counter.points) add({counter.name, text(counter.unit), point.time, number(point.value)});
}

void list_counters(const SqlRun& run, const AddRow& add) {
  for (const prof::CounterTrack& counter : run.data.trace.counters()) list_counter(counter, add);
}

void list_memory(const SqlRun& run, const AddRow& add) {
  prof::MemoryCurves curves;
  curves.update(run.data.trace);
  for (const prof::CounterTrack* curve : {&curves.used(), &curves.reserved()})
    for (const prof::CounterPoint& point : curve->points)
      add({point.time, SqlCell(curve == &curves.used() ? "used" : "reserved"), whole(point.value)});
}

const char* action_name(prof::MemoryAction action) {
  switch (action) {
    case prof::MemoryAction::Allocate: return "allocate";
    case prof::MemoryAction::Free: return "free";
    case prof::MemoryAction::Reserve: return "reserve";
    case prof::MemoryAction::Release: return "release";
  }
  return "other";
}

void list_allocations(const SqlRun& run, const AddRow& add) {
  const prof::Trace& trace = run.data.trace;
  const StepsByTime steps(trace);
  const SqlCell rank = rank_of(prof::rank_of_steps(trace));  // of several ranks, the memory of one is recorded
  for (const prof::MemoryEvent& e : trace.memory()) {
    const prof::OpInfo& op = trace.ops[e.op < trace.ops.size() ? e.op : 0];
    const std::string source = e.source < trace.memory_sources.size() ? trace.memory_sources[e.source] : "";
    add({e.time, rank, SqlCell(action_name(e.kind)), SqlCell(static_cast<int64_t>(e.address)), whole(e.bytes), text(source), steps.of(e.step, -1, e.time), text(op.name),
         text(op.layer), text(prof::line_of(op))});
  }
}

void list_collectives(const SqlRun& run, const AddRow& add) {
  const prof::RankReport report = prof::rank_report(run.data);
  for (const prof::CollectiveRow& row : report.collectives)
    add({row.name, known(row.bytes), whole(row.ranks > 0 ? row.ranks : static_cast<int>(report.ranks.size())), number(row.count), number(row.wait),
         number(row.transfer), number(row.exposed), number(row.bus_gb_s > 0 ? row.bus_gb_s : NAN)});
}

void list_ranks(const SqlRun& run, const AddRow& add) {
  for (const prof::RankRow& row : prof::rank_report(run.data).ranks)
    add({whole(row.rank), text(row.host), number(row.step), number(row.computes), number(row.wait), number(row.exposed), number(row.late), number(row.transfer), number(row.caused)});
}

void list_choices(const SqlRun& run, const AddRow& add) {
  const auto spec = spec_of(run.data.summary);
  if (!spec) return;
  for (const Field& field : fields())
    if (relevant(*spec, field.key))
      add({SqlCell(std::string(field.key)), SqlCell(std::string(field.group)), SqlCell(std::string(field.label)), field_text(*spec, field.key)});
}

void list_insights(const SqlRun& run, const AddRow& add) {
  for (const Insight& insight : run_insights(run.data).found)
    add({insight.headline, whole_why(insight), SqlCell(meaning_of(insight.look_at)), insight.place ? whole(insight.place->span.start) : SqlCell(),
         insight.place ? whole(insight.place->span.duration) : SqlCell()});
}

void list_stalls(const SqlRun& run, const AddRow& add) {
  const prof::Trace& trace = run.data.trace;
  for (const prof::SampledInstruction& one : trace.stalls.instructions())
    for (size_t i = 0; i < prof::kStalls; ++i) {
      if (one.samples[i] == 0) continue;
      const auto reason = static_cast<prof::Stall>(i);
      const prof::StallRow place{.file = trace.name(one.file), .line = one.line};
      add({trace.name(one.function), whole(one.offset), text(place.file), known(one.line), text(place.place()), SqlCell(prof::stall_name(reason)),
           SqlCell(prof::stall_group_name(prof::group_of(reason))), whole(one.samples[i]), whole(one.module)});
    }
}

// Starts the disassembler for each sampled kernel.
void list_instructions(const SqlRun& run, const AddRow& add) {
  const prof::Trace& trace = run.data.trace;
  for (const prof::StallRow& kernel : prof::stalls_by_kernel(trace)) {
    std::vector<prof::Disassembly> texts;
    for (const prof::SampledCode& code : prof::code_of(trace, kernel.kernel)) texts.push_back(prof::disassembled(code));
    for (const prof::StallRow& row : prof::stalls_by_instruction(trace, kernel.kernel, texts)) {
      const auto reason = prof::main_reason(row);
      add({kernel.kernel, whole(row.offset), text(row.file), known(row.line), text(row.place()), text(row.instruction), whole(row.samples),
           reason ? SqlCell(prof::stall_name(reason->reason)) : SqlCell()});
    }
  }
}

const SqlColumn kRun{"run", "name of the run file, without its ending"};
const SqlColumn kStart{"start_ns", "begin, ns on the clock of the run"}, kDuration{"duration_ns", "ns"};
const SqlColumn kRank{"rank", "rank; null: the run has no ranks"}, kStep{"step", "number of the step, from 0; null: outside of steps", true};
const SqlColumn kOp{"op", "op that launched it"}, kModule{"module", "layer or module"}, kPhase{"phase", "forward, backward, …"};
const SqlColumn kLine{"line", "source line: net.py:12 in Net.forward"}, kTotal{"total_ns", "sum, ns"}, kCount{"count", "calls"}, kMean{"mean_ns", "ns"};
const SqlColumn kCorrelation{"correlation", "the same number on a call and on what it launched", true};

template <class Rows>
std::unique_ptr<SqlRows> made(const SqlRuns& runs) {
  return std::make_unique<Rows>(runs);
}

std::vector<SqlView> make_views() {
  return {
      {"runs", "a row a run", {kRun, {"path", "file"}, {"name", "title"}, {"device", "GPU or CPU"}, {"created", "date, UTC"}, {"status", "finished, stopped, …"},
       {"origin", "run, or the program that wrote the trace"}, {"steps", "steps"}, {"step_us", "median step time, µs"}, {"p5_us", "P5, µs"},
       {"p95_us", "P95, µs"}, {"wall_s", "duration, s"}, {"train_loss", "of the last batch"}, {"test_loss", "of the last test"},
       {"test_accuracy", "of the last test, 0 to 1"}, {"peak_bytes", "most memory in use"}, {"spans", "spans of its trace"}, {"spec", "its settings as a line for train --spec"},
       {"gpu_busy", "share of the median step in which a kernel or a copy runs and does not wait for a rank, 0 to 1; with several ranks, of the lowest one"}}, listed(list_runs)},
      {"steps", "a row a step and rank, as the program marked it, or as the GPU ran it where the host runs ahead",
       {kRun, kStep, kRank, kStart, kDuration, {"counted", "1: measured, as all figures of a step are; 0: warm-up, the last one, pauses and evaluations"},
        {"step_us", "until the next step begins, µs; null: not counted. Its median is the step time if all launches run as many steps"}, {"together", "steps that one launch runs; its time is divided among them"}}, listed(list_steps)},
      {"spans", "everything that has a begin and an end: kernels, copies, calls, phases, ops, ranges, samples",
       {kRun, kStart, kDuration, {"name", "whole name"}, {"kind", "kernel, copy, memset, call, allocation, free, wait, graph launch, graph, phase, step, op, overhead, inside, other"},
        {"meaning", "matrix product, pointwise, reduction, …: the colour in the window"}, {"lane", "stream 7, thread 4322, …"}, {"place", "GPU 0, CPU, …"}, kRank, kStep, kOp,
        kModule, kPhase, kLine, {"bytes", "of a copy, memset, allocation or collective"}, kCorrelation}, made<AllSpans>},
      {"kernels", "kernels, and graphs that were recorded as a whole",
       {kRun, kStart, kDuration, {"name", "whole name"}, {"short_name", "without namespaces and arguments"}, {"lane", "stream"}, kRank, kStep, kOp, kModule, kPhase, kLine,
        {"blocks", "blocks of the grid"}, {"threads", "threads of a block"}, {"registers", "of a thread"}, {"shared_bytes", "shared memory of a block"}, kCorrelation}, made<Kernels>},
      {"ops", "a row an op, with the time of its kernels",
       {kRun, kOp, {"detail", "what it computes"}, kModule, kPhase, kLine, {"meaning", "of most of its time"}, kCount, kTotal, kMean, {"p50_ns", "ns"}, {"p99_ns", "ns"},
        {"share", "of the time of all ops, 0 to 1"}, {"flops", "of one call"}, {"bytes", "of one call"}}, listed(list_ops)},
      {"modules", "a row a module, with the modules inside it; sums over the measured steps",
       {kRun, kModule, {"depth", "0: outermost"}, {"forward_ns", "kernels, ns"}, {"backward_ns", "kernels, ns"}, {"other_ns", "kernels, ns"}, {"gpu_ns", "all kernels, ns"},
        {"host_ns", "inside its ranges, ns"}, {"kernels", "calls"}, {"own_kernels", "without the modules inside"}, {"peak_bytes", "live when the most bytes were"}}, listed(list_modules)},
      {"lines", "a row a source line that launched work",
       {kRun, kLine, kCount, kTotal, kMean, {"share", "of all lines, 0 to 1"}, {"with_calls_ns", "with all that was launched while the line waited for its calls"}}, listed(list_lines)},
      {"stalls", "a row an instruction and a reason to wait, after --xray",
       {kRun, {"kernel", "whole name"}, {"offset", "of the instruction in the kernel, bytes"}, {"file", "source file"}, {"line_number", "in the file"}, {"place", "my.cu:14"},
        {"reason", "global memory, barrier, …"}, {"grp", "waits for memory, waits for arithmetic, barrier, next instruction, issues"}, {"samples", "warps that were seen there"},
        {"module", "checksum of the machine code"}}, listed(list_stalls)},
      {"instructions", "a row a machine instruction of a sampled kernel, also of those without samples",
       {kRun, {"kernel", "whole name"}, {"offset", "in the kernel, bytes"}, {"file", "source file"}, {"line_number", "in the file"}, {"place", "my.cu:14"},
        {"instruction", "as nvdisasm names it; null: it is not installed"}, {"samples", "warps that were seen there"}, {"reason", "why they wait most"}}, listed(list_instructions)},
      {"losses", "losses of training batches and of tests",
       {kRun, kStep, {"wall_s", "since the begin, s"}, {"of", "train or test"}, {"loss", "loss"}, {"accuracy", "0 to 1"}}, listed(list_losses)},
      {"counters", "points of counters: hardware counters, memory, values that a program logged",
       {kRun, {"name", "counter"}, {"unit", "unit"}, {"time_ns", "ns on the clock of the run"}, {"value", "until the next point"}}, listed(list_counters)},
      {"memory", "memory in use and reserved, from the allocations", {kRun, {"time_ns", "ns on the clock of the run"}, {"curve", "used or reserved"}, {"bytes", "until the next point"}},
       listed(list_memory)},
      {"allocations", "events of allocators",
       {kRun, {"time_ns", "ns on the clock of the run"}, {"rank", "rank; null: the run has no ranks. Of several ranks, the memory of the first is recorded"}, {"action", "allocate, free, reserve, release"}, {"address", "address"}, {"bytes", "bytes"},
        {"allocator", "cudaMalloc, caching, PyTorch, …"}, kStep, kOp, kModule, kLine}, listed(list_allocations)},
      {"collectives", "collectives of several ranks in the median step, means over all ranks",
       {kRun, {"name", "collective"}, {"bytes", "of one call"}, {"ranks", "that take part"}, {"count", "calls per step"}, {"wait_us", "for the last rank, µs"},
        {"transfer_us", "µs"}, {"exposed_us", "transfer that no computation hides, µs"}, {"bus_gb_s", "bus bandwidth, GB/s"}}, listed(list_collectives)},
      {"ranks", "what the GPU of each rank does in the median step",
       {kRun, kRank, {"host", "machine"}, {"step_us", "the median step, µs"}, {"computes_us", "kernels without communication run, µs"}, {"wait_us", "it only waits for the last rank, µs"},
        {"exposed_us", "transfers that no computation hides, µs"}, {"late_us", "latest arrival after the first rank, µs"}, {"transfer_us", "µs"},
        {"caused_us", "what another rank waits for this one, µs"}}, listed(list_ranks)},
      {"choices", "the settings of a run of Warpsight", {kRun, {"key", "exec.allocator"}, {"grp", "Data, Model, Training, Execution"}, {"label", "allocator"}, {"value", "caching"}},
       listed(list_choices)},
      {"insights", "what costs time, the most important first",
       {kRun, {"headline", "one sentence"}, {"why", "the reason, and what to try"}, {"meaning", "of the spans that show it"}, kStart, kDuration}, listed(list_insights)},
  };
}

}  // namespace

const std::vector<SqlView>& sql_views() {
  static const std::vector<SqlView> views = make_views();
  return views;
}

}  // namespace ws::app

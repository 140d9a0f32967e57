#include "app/pages/what_if/step_pictures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "profiling/analysis/kernel_table.h"

namespace ws::app {
namespace {

constexpr size_t kMostBars = 4000, kMostRows = 6;

// A step of usual length in the second half of the window, where a host that runs ahead does so.
prof::TimeRange usual_step(const prof::StepCauses& causes, double usual_us) {
  prof::TimeRange usual = causes.graph.window;
  double least = -1;
  for (size_t at = causes.cuts.size() / 2; at + 1 < causes.cuts.size(); ++at) {
    const prof::TimeRange step{causes.cuts[at], causes.cuts[at + 1]};
    const double off = std::abs(static_cast<double>(step.length()) * 1e-3 - usual_us);
    if (least < 0 || off < least) usual = step, least = off;
  }
  return usual;
}

std::vector<uint32_t> nodes_of_a_step(const prof::StepCauses& causes, double usual_us) {
  const prof::CauseGraph& graph = causes.graph;
  const prof::TimeRange step = usual_step(causes, usual_us);
  std::vector<uint32_t> nodes;
  for (uint32_t node = 0; node < graph.nodes.size(); ++node)
    if (step.contains(graph.nodes[node].start) && graph.nodes[node].kind != prof::NodeKind::Meeting) nodes.push_back(node);
  return nodes;
}

// A wait for data has no name of its own: its node has the name of the op which took the batch.
QString name_of(const prof::CauseNode& node, const prof::Trace& trace) {
  if (const prof::PathCauseId cause = prof::cause_of_node(node); cause.cause == prof::PathCause::WaitsForData) return text(prof::path_cause_name(cause));
  const prof::OpTag op = node.kind == prof::NodeKind::Kernel || node.kind == prof::NodeKind::CpuOp ? prof::charged_tag(trace, node.meaning, node.op) : prof::kNoOp;
  return text(op != prof::kNoOp && !trace.ops[op].name.empty() ? trace.ops[op].name : prof::plain_kernel_name(trace.name(node.name)));
}

// A row of the host that also waits for data is more than calls of CUDA.
QString row_name(const prof::Track& track, bool several_ranks, bool waits_for_data) {
  const QString calls = track.kind == prof::TrackKind::Api ? QObject::tr("CUDA API") : text(track.name), name = waits_for_data ? QObject::tr("host") : calls;
  return several_ranks && track.rank >= 0 ? QObject::tr("rank %1: %2").arg(track.rank).arg(name) : name;
}

using RowKey = std::pair<bool, uint32_t>;  // the host's above the GPU's
using Rows = std::map<RowKey, PathPicture::Row>;

// A replay: its path, and the times at which its nodes are drawn.
struct Replayed {
  prof::CriticalPath path;
  std::vector<prof::TimeNs> times;
  std::set<int> on_time;  // ranks whose work is made to fit
};

struct Shown {
  prof::TimeNs first, last;
  // Nothing if the bar lies outside.
  std::optional<std::pair<double, double>> us(prof::TimeNs begin, prof::TimeNs end) const {
    if (end <= std::max(begin, first) || begin >= last) return std::nullopt;
    return std::pair{std::max(0.0, static_cast<double>(begin - first) * 1e-3), static_cast<double>(std::min(end, last) - first) * 1e-3};
  }
};

// The path also leads through times without a bar: the host is outside CUDA, a kernel waits for its launch.
void add_gaps(Rows& rows, const prof::CauseGraph& graph, const prof::CriticalPath& path, const Shown& shown) {
  for (const prof::PathPiece& piece : path.pieces) {
    const prof::CauseEdge& edge = graph.edges[piece.edge];
    if (edge.kind == prof::EdgeKind::Work || edge.kind == prof::EdgeKind::Transfer) continue;
    const prof::CauseNode& node = graph.nodes[piece.to / 2];
    const auto row = rows.find({!prof::runs_on_host(node.kind), node.row});
    const auto us = shown.us(piece.begin, piece.end);
    if (row == rows.end() || !us) continue;
    const prof::PathCauseId cause = prof::cause_of_edge(graph, piece.to, edge);
    row->second.bars.push_back({.begin = us->first, .end = us->second, .meaning = cause.meaning, .name = text(prof::path_cause_name(cause)), .path = {piece.end - piece.begin, piece.end - piece.begin, 0}, .is_gap = true});
  }
}

bool runs_on_gpu(const prof::CauseNode& node) { return !prof::runs_on_host(node.kind) && node.kind != prof::NodeKind::Meeting; }

// When the launch of a kernel or copy begins; nullopt if the graph has none.
std::optional<prof::TimeNs> launch_of(const prof::CauseGraph& graph, const std::vector<prof::TimeNs>& times, uint32_t node) {
  for (uint32_t edge = graph.first_edge[prof::start_of(node)]; edge < graph.first_edge[prof::end_of(node)]; ++edge)
    if (graph.edges[edge].kind == prof::EdgeKind::Launch) return times[prof::start_of(graph.edges[edge].from / 2)];
  return std::nullopt;
}

// A step begins with the launch of its first kernel if the GPU was idle until then.
prof::TimeNs begin_with_launch(const prof::CauseGraph& graph, const std::vector<prof::TimeNs>& times, const std::vector<uint32_t>& nodes, prof::TimeNs first) {
  const auto node = std::ranges::find_if(nodes, [&](uint32_t each) { return runs_on_gpu(graph.nodes[each]) && times[prof::start_of(each)] == first; });
  const auto launch = node == nodes.end() ? std::nullopt : launch_of(graph, times, *node);
  if (!launch) return first;
  for (uint32_t other = 0; other < graph.nodes.size(); ++other)
    if (runs_on_gpu(graph.nodes[other]) && graph.nodes[other].rank == graph.nodes[*node].rank && times[prof::start_of(other)] < first && times[prof::end_of(other)] > *launch) return first;
  return std::min(first, *launch);
}

Rows rows_of(const prof::StepCauses& causes, const prof::Trace& trace, const std::vector<uint32_t>& nodes, const Replayed& replayed, double length_us) {
  const prof::CauseGraph& graph = causes.graph;
  const auto& [path, times, on_time] = replayed;
  const auto extent = [&](bool host_too) {
    prof::TimeRange range{prof::kAlways, -prof::kAlways};
    for (const uint32_t node : nodes)
      if (host_too || !prof::runs_on_host(graph.nodes[node].kind)) range = {std::min(range.begin, times[prof::start_of(node)]), std::max(range.end, times[prof::end_of(node)])};
    return range;
  };
  // The GPU shows where a step begins, unless it idles through most of it. A span that outlasts the step ends with it.
  prof::TimeRange shown = extent(false);
  if (shown.begin > shown.end || static_cast<double>(shown.length()) * 1e-3 < length_us / 2) shown = extent(true);
  else shown.begin = begin_with_launch(graph, times, nodes, shown.begin);
  const Shown part{shown.begin, shown.begin + static_cast<prof::TimeNs>(length_us * 1e3)};
  // Meanwhile the host may be at another step.
  Rows rows;
  size_t bars = 0;
  const bool several = std::ranges::any_of(trace.tracks(), [](const prof::Track& track) { return track.rank > 0; });
  for (uint32_t node = 0; node < graph.nodes.size() && bars < kMostBars; ++node) {
    const prof::CauseNode& n = graph.nodes[node];
    const auto us = part.us(times[prof::start_of(node)], times[prof::end_of(node)]);
    if (n.kind == prof::NodeKind::Meeting || !us) continue;
    ++bars;
    const bool launched_before = n.kind == prof::NodeKind::Kernel && launch_of(graph, times, node).value_or(part.first) < part.first;
    PathPicture::Row& row = rows[{!prof::runs_on_host(n.kind), n.row}];
    const prof::Track& track = trace.tracks()[n.track];
    const bool waits = n.kind == prof::NodeKind::DataWait;
    if (row.name.isEmpty() || waits || n.kind == prof::NodeKind::Kernel) row.name = row_name(track, several, waits);  // a row of kernels and copies is a stream
    row.bars.push_back({us->first, us->second, prof::cause_of_node(n).meaning, name_of(n, trace), {path.node_ns[node], times[prof::end_of(node)] - times[prof::start_of(node)], path.slack_ns[node]},
                        prof::cause_of_node(n).cause == prof::PathCause::WaitsForData, on_time.contains(n.rank), false, launched_before});
  }
  add_gaps(rows, graph, path, part);
  return rows;
}

Replayed replayed_as_measured(const prof::CauseGraph& graph) {
  const prof::Timing timing = prof::measured_timing(graph);
  std::vector<prof::TimeNs> times = prof::replay(graph, timing);
  prof::CriticalPath path = prof::critical_path(graph, timing, times);
  return {std::move(path), std::move(times), {}};
}

// A rank on time has its work, in the time that the other ranks leave for it.
Replayed replayed_with(const std::vector<prof::Edit>& edits, const prof::StepCauses& causes, const prof::Trace& trace, const std::vector<prof::TimeNs>& measured) {
  const prof::Editor editor(causes, trace);
  prof::Timing timing = prof::measured_timing(causes.graph);
  for (const prof::Edit& edit : edits) editor.apply(edit, timing);
  std::vector<prof::TimeNs> times = prof::replay(causes.graph, timing);
  prof::CriticalPath path = prof::critical_path(causes.graph, timing, times);
  std::set<int> on_time;
  for (const prof::Edit& edit : edits)
    if (edit.kind == prof::EditKind::RankOnTime && on_time.insert(edit.rank).second) prof::fit_between_meetings(causes.graph, edit.rank, measured, times);
  return {std::move(path), std::move(times), std::move(on_time)};
}

// The busiest rows of all steps.
std::map<RowKey, QString> busiest(const std::vector<Rows>& steps) {
  std::map<RowKey, double> busy;
  std::map<RowKey, QString> names;
  for (const Rows& rows : steps)
    for (const auto& [key, row] : rows) {
      names.try_emplace(key, row.name);
      for (const PathPicture::Bar& bar : row.bars) busy[key] += bar.end - bar.begin;
    }
  while (names.size() > kMostRows) {
    const RowKey least = std::ranges::min_element(busy, {}, [](const auto& row) { return row.second; })->first;
    busy.erase(least), names.erase(least);
  }
  return names;
}

// Two threads that make calls have a number each.
void name_threads(std::map<RowKey, QString>& names) {
  std::map<QString, int> same;
  for (const auto& [key, name] : names) ++same[name];
  std::map<QString, int> number;
  for (auto& [key, name] : names)
    if (same[name] > 1) name = QObject::tr("%1 %2").arg(name).arg(++number[name]);
}

// Every picture has the same rows in the same order. A row without work stays empty.
std::vector<PathPicture> with_same_rows(const std::vector<Rows>& steps) {
  std::map<RowKey, QString> names = busiest(steps);
  name_threads(names);
  std::vector<PathPicture> pictures(steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    for (const auto& [key, name] : names) {
      const auto row = steps[i].find(key);
      pictures[i].rows.push_back({name, row == steps[i].end() ? std::vector<PathPicture::Bar>() : row->second.bars});
    }
  return pictures;
}

}  // namespace

std::vector<PathPicture> step_pictures(const prof::StepCauses& causes, const prof::Trace& trace, const std::vector<prof::Edit>& edits, const prof::WhatIf& result) {
  const std::vector<uint32_t> nodes = nodes_of_a_step(causes, result.measured_us.value);
  const Replayed measured = replayed_as_measured(causes.graph);
  std::vector<Rows> steps{rows_of(causes, trace, nodes, measured, result.measured_us.value)};
  if (!edits.empty()) steps.push_back(rows_of(causes, trace, nodes, replayed_with(edits, causes, trace, measured.times), result.predicted_us.value));
  std::vector<PathPicture> pictures = with_same_rows(steps);
  pictures[0].title = QObject::tr("measured"), pictures[0].length_us = result.measured_us.value;
  const auto note = [&result](const Interval& us) { return QObject::tr("%1 per step").arg(text(prof::interval_text({us.value, 0}, result.measured_us.value))); };
  pictures[0].note = note(result.measured_us);
  if (edits.empty()) return pictures;
  pictures[1].title = QObject::tr("predicted");
  for (const prof::Edit& edit : edits)
    if (edit.kind == prof::EditKind::RankOnTime) pictures[1].title += QObject::tr(", with rank %1 on time").arg(edit.rank);
  pictures[1].note = note(result.predicted_us);
  pictures[1].length_us = result.predicted_us.value;
  return pictures;
}

}  // namespace ws::app

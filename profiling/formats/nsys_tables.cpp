#include "profiling/formats/nsys_tables.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "profiling/analysis/kernel_table.h"
#include "profiling/base/failure.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

constexpr double kMega = 1e6;

// Share, total, count, mean, median, min, max, standard deviation: the first columns of time reports.
std::string times(const DurationStats& t, double share) {
  return formatted("{:.1f},{},{},{:.1f},{:.1f},{},{},{:.1f}", 100 * share, t.total, t.count, t.mean,
                   static_cast<double>(t.median), t.min, t.max, t.stddev);
}

std::string three(const int (&size)[3]) { return formatted("{:4} {:4} {:4}", size[0], size[1], size[2]); }

void kernels(const RunData& run, std::ostream& out) {
  out << "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n";
  for (const KernelRow& row : kernel_table(run.trace, -kAlways, kAlways))
    out << times(row.time, row.share) << ',' << csv_cell(row.key) << '\n';
}

void kernels_by_shape(const RunData& run, std::ostream& out) {
  out << "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),GridXYZ,BlockXYZ,Name\n";
  for (const KernelRow& row : kernel_table(run.trace, -kAlways, kAlways, GroupBy::Shape))
    out << times(row.time, row.share) << ',' << three(row.detail.grid) << ',' << three(row.detail.block) << ','
        << csv_cell(run.trace.name(row.name)) << '\n';
}

// Spans for which `name_of` returns a name, grouped by name, largest total first.
struct Named {
  std::string name;
  DurationStats time;
  double share = 0;
};
template <class NameOf>
std::vector<Named> by_name(const Trace& trace, const NameOf& name_of) {
  std::map<std::string, std::vector<int64_t>> groups;
  for (const Track& track : trace.tracks())
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      const std::string name = name_of(track, span);
      if (!name.empty()) groups[name].push_back(static_cast<int64_t>(span.duration));
    });
  std::vector<Named> rows;
  double all = 0;
  for (auto& [name, durations] : groups) {
    rows.push_back({name, stats_of(durations)});
    all += static_cast<double>(rows.back().time.total);
  }
  for (Named& row : rows) row.share = all > 0 ? static_cast<double>(row.time.total) / all : 0;
  sort_rows(rows, [](const Named& a, const Named& b) { return a.time.total > b.time.total; });
  return rows;
}

void write_times(const std::vector<Named>& rows, const char* count, const char* name, std::ostream& out) {
  out << "Time (%),Total Time (ns)," << count << ",Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns)," << name << '\n';
  for (const Named& row : rows) out << times(row.time, row.share) << ',' << csv_cell(row.name) << '\n';
}

void calls(const RunData& run, std::ostream& out) {
  const auto name = [&](const Track& track, const Span& span) {
    return track.kind == TrackKind::Api ? run.trace.name(span.name) : std::string();
  };
  write_times(by_name(run.trace, name), "Num Calls", "Name", out);
}

// Ranges marked by the program: steps and phases. Excludes steps that we detected, and the GPU copies of ranges.
void ranges(const RunData& run, std::ostream& out) {
  const auto name = [&](const Track& track, const Span& span) {
    const bool step = span.span_kind() == SpanKind::Step && !run.summary.extra.contains("steps_from");
    return (step || span.span_kind() == SpanKind::Phase) && !track.group.starts_with("GPU")
               ? ":" + run.trace.name(span.name)
               : std::string();
  };
  write_times(by_name(run.trace, name), "Instances", "Range", out);
}

std::string operation(const Trace& trace, const Span& span) {
  if (span.span_kind() == SpanKind::Memset) return "[CUDA memset]";
  if (span.span_kind() != SpanKind::Copy) return {};
  const auto place = [](MemoryPlace end) { return on_host(end) ? "Host" : "Device"; };
  const CopyEnds ends = copy_ends(trace.detail(span.detail).copy_kind);
  return std::string("[CUDA memcpy ") + place(ends.from) + "-to-" + place(ends.to) + "]";
}

void memory_times(const RunData& run, std::ostream& out) {
  const auto name = [&](const Track& track, const Span& span) {
    return on_gpu(track) ? operation(run.trace, span) : std::string();
  };
  write_times(by_name(run.trace, name), "Count", "Operation", out);
}

void memory_sizes(const RunData& run, std::ostream& out) {
  std::map<std::string, std::vector<int64_t>> groups;
  for (const Track& track : run.trace.tracks()) {
    if (!on_gpu(track)) continue;
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if (const std::string name = operation(run.trace, span); !name.empty())
        groups[name].push_back(static_cast<int64_t>(run.trace.detail(span.detail).bytes));
    });
  }
  out << "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation\n";
  for (auto& [name, bytes] : groups) {
    const DurationStats s = stats_of(bytes);
    const auto mb = [](auto value) { return static_cast<double>(value) / kMega; };
    out << formatted("{:.3f},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},", mb(s.total), s.count, mb(s.mean), mb(s.median),
                     mb(s.min), mb(s.max), mb(s.stddev))
        << csv_cell(name) << '\n';
  }
}

std::string launch_columns(const Detail& d) {
  return formatted("{},{},{},{},{},{},{},{:.3f},{:.3f},,", d.grid[0], d.grid[1], d.grid[2], d.block[0], d.block[1],
                   d.block[2], d.registers, d.static_shared / kMega, d.dynamic_shared / kMega);
}
std::string copy_columns(const Detail& d, uint64_t duration) {
  const double mb = static_cast<double>(d.bytes) / kMega;
  return formatted(",,,,,,,,,{:.3f},{:.3f}", mb, duration > 0 ? mb / (static_cast<double>(duration) * 1e-9) : 0.0);
}

// All kernels, copies and memsets in order of time.
void gpu_trace(const RunData& run, std::ostream& out) {
  out << "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
         "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Strm,Name\n";
  std::multimap<TimeNs, std::pair<const Track*, Span>> all;
  for (const Track& track : run.trace.tracks())
    if (on_gpu(track))
      each_span(track, -kAlways, kAlways, [&](const Span& span) {
        const SpanKind kind = span.span_kind();
        if (kind == SpanKind::Kernel || kind == SpanKind::Copy || kind == SpanKind::Memset)
          all.emplace(span.start, std::pair(&track, span));
      });
  for (const auto& [start, at] : all) {
    const auto& [track, span] = at;
    const Detail& detail = run.trace.detail(span.detail);
    const bool kernel = span.span_kind() == SpanKind::Kernel;
    const CopyEnds ends = copy_ends(detail.copy_kind);
    out << formatted("{},{},{},", start, span.duration, span.correlation)
        << (kernel ? launch_columns(detail) : copy_columns(detail, span.duration)) << ','
        << (span.span_kind() == SpanKind::Copy ? place_title(ends.from) + "," + place_title(ends.to) : ",") << ','
        << csv_cell(run.summary.device + " (" + std::to_string(gpu_number(track->group)) + ")") << ','
        << number_in(track->name, 0) << ',' << csv_cell(kernel ? run.trace.name(span.name) : operation(run.trace, span))
        << '\n';
  }
}

struct Report {
  std::string_view name;
  void (*write)(const RunData&, std::ostream&);
};
constexpr std::array<Report, 7> kReports{{{"cuda_gpu_kern_sum", kernels},
                                          {"cuda_gpu_kern_gb_sum", kernels_by_shape},
                                          {"cuda_api_sum", calls},
                                          {"cuda_gpu_mem_time_sum", memory_times},
                                          {"cuda_gpu_mem_size_sum", memory_sizes},
                                          {"cuda_gpu_trace", gpu_trace},
                                          {"nvtx_pushpop_sum", ranges}}};

}  // namespace

std::vector<std::string_view> nsys_reports() {
  std::vector<std::string_view> names;
  for (const Report& report : kReports) names.push_back(report.name);
  return names;
}

std::string_view nsys_report_of(std::string_view path) {
  for (const Report& report : kReports)
    if (path.ends_with(std::string(report.name) + ".csv")) return report.name;
  if (!path.ends_with("_sum.csv") && !path.ends_with("_trace.csv")) return kReports.front().name;
  std::string names;
  for (const Report& report : kReports) names.append(names.empty() ? "" : ", ").append(report.name);
  throw Failure("No table has the name of " + std::string(path) + ". There are: " + names + ".");
}

void export_nsys_table(const RunData& run, const std::string& path, std::string_view report) {
  const auto at = std::ranges::find(kReports, report, &Report::name);
  if (at == kReports.end()) throw Failure("There is no table " + std::string(report) + ".");
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) throw Failure("Cannot write " + path + ".");
  at->write(run, file);
  file.close();
  if (!file) throw Failure("Cannot write " + path + ": the disk may be full.");
}

}  // namespace ws::prof

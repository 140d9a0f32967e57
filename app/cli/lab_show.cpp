#include "app/cli/lab_show.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/core/lab/shipped_labs.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/run_file/run_file.h"

namespace ws::cli {

using namespace ws::lab;

namespace {

std::string rate_text(double per_s, const char* unit) {
  return per_s >= 1e12 ? fixed(per_s * 1e-12, 2) + " T" + unit : fixed(per_s * 1e-9, 1) + " G" + unit;
}

std::string bound_text(const LabPoint& p) {
  // The bound covers the work only. For the smallest sizes nearly all of the time is the launch.
  if (p.bound_s <= 0 || p.device_s <= 0 || p.copy_s > 0 || p.bound_s < 0.01 * p.device_s) return "";
  return "  " + percent(p.bound_s / p.device_s, 0) + " of its bound " + seconds_text(p.bound_s);
}

const LabPoint& find_point(const LabResult& result, const std::string& which) {
  const size_t colon = which.find(':');
  int64_t size = 0;
  if (colon == std::string::npos ||
      std::from_chars(which.data() + colon + 1, which.data() + which.size(), size).ec != std::errc())
    throw UsageError("lab --point: expected WAY:SIZE such as gpu-pinned:1024, got " + which);
  const std::string way = which.substr(0, colon);
  const auto found =
      std::ranges::find_if(result.points, [&](const LabPoint& p) { return p.size == size && info(p.way).name == way; });
  if (found == result.points.end()) throw Failure("lab --point: this sweep has no point " + which);
  if (found->recorded.steps == 0) throw Failure("lab --point: " + which + " was not recorded");
  return *found;
}

struct Line {
  prof::Span span;
  const prof::Track* track;
};

std::vector<Line> lines_between(const prof::Trace& trace, prof::TimeNs begin, prof::TimeNs end) {
  std::vector<Line> lines;
  for (const prof::Track& track : trace.tracks())
    for (const prof::SpanBlock& block : track.blocks)
      for (const prof::Span& span : block.spans)
        if (span.start >= begin && span.start <= end) lines.push_back({span, &track});
  std::ranges::stable_sort(lines, {}, [](const Line& line) { return line.span.start; });
  return lines;
}

}  // namespace

std::string seconds_text(double s) {
  if (s < 1e-3) return fixed(s * 1e6, 2) + " µs";
  return s < 1 ? fixed(s * 1e3, 3) + " ms" : fixed(s, 3) + " s";
}

void LabLines::point(const LabPoint& p) {
  const WayInfo& way = info(p.way);
  const std::string label = printable(label_of(spec_, p.way));
  if (!headed_)
    std::fprintf(out_, "%12s  %-24s%13s%13s%13s%13s%10s\n", "size", "way", "median", "5 %", "95 %", "on GPU", "error");
  headed_ = true;
  if (!p.ok) {
    std::fprintf(out_, "%12lld  %-24s   %s\n", static_cast<long long>(p.size), label.c_str(), printable(p.note).c_str());
    return;
  }
  std::string times = formatted("{:>13}{:>13}{:>13}{:>13}{:>10.1e}", seconds_text(p.median_s), seconds_text(p.low_s),
                                seconds_text(p.high_s), p.device_s > 0 ? seconds_text(p.device_s) : "-", p.error) +
                      bound_text(p);
  if (!p.note.empty()) times += "  " + p.note;
  if (way.pitfall) times += "  (times only the launch)";
  std::fprintf(out_, "%12lld  %-24s%s\n", static_cast<long long>(p.size), label.c_str(), printable(times).c_str());
  std::fflush(out_);
}

void print_page(FILE* out, const nlohmann::json& experiment) {
  const std::string title = experiment.value("title", ""), page = app::lab_page(experiment);
  if (!title.empty()) std::fprintf(out, "%s\n\n", printable(title).c_str());
  size_t begin = 0;
  while (begin < page.size()) {
    const size_t end = std::min(page.find("\n\n", begin), page.size());
    std::fprintf(out, "%s\n\n", printable(wrapped(page.substr(begin, end - begin), 0, 0)).c_str());
    begin = end + 2;
  }
}

void print_crossovers(const LabResult& result) {
  for (const Crossover& c : crossovers(result))
    if (info(c.slower_below).gpu != info(c.faster_above).gpu)
      std::printf("from size %.0f on, %s is faster than %s (%s)\n", c.size, printable(label_of(result.spec, c.faster_above)).c_str(),
                  printable(label_of(result.spec, c.slower_below)).c_str(), seconds_text(c.seconds).c_str());
}

void print_ceilings(const LabResult& result) {
  const Ceilings& c = result.ceilings;
  if (c.read_write_bytes_s <= 0) return;
  std::string text = "measured on this card: memory " + rate_text(c.read_write_bytes_s, "B/s");
  const auto add = [&](const char* name, double value, const char* unit) {
    if (value > 0) text += std::string(", ") + name + " " + rate_text(value, unit);
  };
  add("L2 cache", c.l2_bytes_s, "B/s"), add("pinned copy", c.pinned_bytes_s, "B/s");
  add("fp32", c.fp32_flops_s, "FLOP/s"), add("tf32", c.tf32_flops_s, "FLOP/s"), add("fp16", c.fp16_flops_s, "FLOP/s");
  add("sine", c.sine_per_s, "/s"), add("short sine", c.short_sine_per_s, "/s");
  std::printf("%s\n", text.c_str());
  for (const BusRate& rate : c.bus_rates)
    std::printf("all-reduce of %s on %d GPUs: bus %s\n", bytes_text(rate.bytes).c_str(), rate.ranks,
                rate_text(rate.gb_s * 1e9, "B/s").c_str());
}

void print_point_trace(const std::string& path, const LabResult& result, const std::string& which) {
  const LabPoint& point = find_point(result, which);
  prof::RunFileReader reader(path);
  prof::Trace trace = reader.trace();
  reader.fill(trace, point.recorded.begin_ns, point.recorded.end_ns);
  std::printf("%s, size %lld: %s measured; %lld more calls recorded\n", printable(label_of(result.spec, point.way)).c_str(),
              static_cast<long long>(point.size), seconds_text(point.median_s).c_str(),
              static_cast<long long>(point.recorded.steps));
  std::printf("%12s  %12s  %-28s %s\n", "at", "takes", "where", "what");
  for (const Line& line : lines_between(trace, point.recorded.begin_ns, point.recorded.end_ns)) {
    const prof::Span& span = line.span;
    const std::string where = line.track->group + " " + line.track->name;
    std::printf("%12s  %12s  %-28s %s\n",
                seconds_text(static_cast<double>(span.start - point.recorded.begin_ns) * 1e-9).c_str(),
                seconds_text(static_cast<double>(span.duration) * 1e-9).c_str(), printable(where).c_str(),
                printable(trace.name(span.name)).c_str());
  }
}

}  // namespace ws::cli

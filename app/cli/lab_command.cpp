#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "engine/executor.h"
#include "engine/lab/lab.h"

namespace ws::cli {
namespace {

using namespace ws::lab;
using nlohmann::json;

struct Arguments {
  std::string source, expression, csv;
  std::vector<int64_t> sizes;
  std::vector<std::string> ways;
  int depth = 0, repeats = 0;
  double seconds = -1;
  bool json = false, print_source = false;
};

std::string seconds_text(double s) {
  char text[32];
  if (s < 1e-3)
    std::snprintf(text, sizeof text, "%.2f µs", s * 1e6);
  else if (s < 1)
    std::snprintf(text, sizeof text, "%.3f ms", s * 1e3);
  else
    std::snprintf(text, sizeof text, "%.3f s", s);
  return text;
}

class Lines final : public LabSink {
 public:
  explicit Lines(bool quiet) : out_(quiet ? stderr : stdout) {}
  void point(const LabPoint& p) override {
    const WayInfo& way = info(p.way);
    if (!p.ok) {
      std::fprintf(out_, "%12lld  %-24s %s\n", static_cast<long long>(p.size), std::string(way.label).c_str(),
                   p.note.c_str());
      return;
    }
    std::fprintf(out_, "%12lld  %-24s %12s  %s … %s  GPU %s  error %.1e  %s%s\n", static_cast<long long>(p.size),
                 std::string(way.label).c_str(), seconds_text(p.median_s).c_str(), seconds_text(p.low_s).c_str(),
                 seconds_text(p.high_s).c_str(), p.device_s > 0 ? seconds_text(p.device_s).c_str() : "-", p.error,
                 p.note.c_str(), way.pitfall ? "  (reads the launch, not the work)" : "");
  }

 private:
  FILE* out_;
};

json starting_point(const Arguments& a) {
  if (a.source.empty()) return json::object();
  for (const char* name : {"matmul", "sine", "add", "reduce", "softmax", "copy", "expression"})
    if (a.source == name) return {{"name", name}, {"operation", name}};
  std::ifstream in(a.source);
  if (!in) throw UsageError("lab: " + a.source + " is neither an operation nor a file that can be read");
  json object = json::parse(in, nullptr, false);
  if (object.is_discarded()) throw Failure(a.source + ": not valid JSON");
  return object;
}

LabSpec spec_of(const Arguments& a) {
  json object = starting_point(a);
  if (!a.expression.empty()) object["operation"] = "expression", object["expression"] = a.expression;
  if (!a.sizes.empty()) object["sizes"] = a.sizes;
  if (!a.ways.empty()) object["ways"] = a.ways;
  if (a.depth) object["depth"] = a.depth;
  if (a.repeats) object["repeats"] = a.repeats;
  if (a.seconds >= 0) object["seconds_per_point"] = a.seconds;
  return lab_spec_from_json(object);
}

void print_crossovers(const LabResult& result) {
  for (const Crossover& c : crossovers(result))
    if (info(c.slower_below).gpu != info(c.faster_above).gpu)
      std::printf("from size %.0f on, %s is faster than %s (%s)\n", c.size,
                  std::string(info(c.faster_above).label).c_str(), std::string(info(c.slower_below).label).c_str(),
                  seconds_text(c.seconds).c_str());
}

int run(const Arguments& a) {
  const LabSpec spec = spec_of(a);
  if (a.print_source) {
    const Expression e =
        spec.operation == Operation::Sine ? Expression::nested_sine(spec.depth) : Expression::parse(spec.expression);
    std::printf("%s", e.cuda_source("ws_fused_expression").c_str());
    return kDone;
  }
  catch_interrupts();
  std::atomic<bool> cancel{false};
  const std::jthread watch([&](const std::stop_token& done) {
    while (!done.stop_requested()) {
      if (interrupted()) cancel = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  Lines lines(a.json);
  const LabResult result = run_lab(spec, cancel, lines);
  if (!a.csv.empty()) std::ofstream(a.csv) << to_csv(result);
  if (a.json)
    std::printf("%s\n", to_json(result).dump().c_str());
  else {
    if (!result.message.empty()) std::printf("%s\n", result.message.c_str());
    print_crossovers(result);
  }
  return kDone;
}

}  // namespace

Run add_lab(CLI::App& program) {
  auto a = std::make_shared<Arguments>();
  CLI::App& command = *program.add_subcommand("lab", "time one operation over many sizes and ways of running it");
  command.add_option("operation", a->source, "matmul, sine, add, reduce, softmax, copy, or a JSON file");
  command.add_option("--expression", a->expression, "an own expression of x and y, e.g. 'sin(sin(x))*2+y'");
  command.add_option("--sizes", a->sizes, "sizes, separated by commas")->delimiter(',');
  command.add_option("--ways", a->ways, "ways, separated by commas: cpu, gpu, gpu-pinned, …")->delimiter(',');
  command.add_option("--depth", a->depth, "of the nested sine")->check(CLI::Range(1, 64));
  command.add_option("--repeats", a->repeats, "calls of a point at the most");
  command.add_option("--seconds", a->seconds, "time of a point at the most");
  command.add_option("--csv", a->csv, "write the points to this file");
  command.add_flag("--json", a->json, "the result as one JSON object");
  command.add_flag("--source", a->print_source, "print the CUDA source of the fused expression and stop");
  return [a] { return run(*a); };
}

}  // namespace ws::cli

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/cli/interrupt.h"
#include "app/cli/lab_show.h"
#include "app/cli/remote_watch.h"
#include "app/core/kernels/kernel_library.h"
#include "app/core/lab/recorded_lab.h"
#include "app/core/lab/shipped_labs.h"
#include "app/core/remote/job_request.h"
#include "app/core/runs/torch_run.h"
#include "engine/lab/ceilings.h"
#include "engine/workloads/lab_kernels.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/base/whole_file.h"
#include "profiling/run_file/run_file.h"

namespace ws::cli {
namespace {

using namespace ws::lab;
using nlohmann::json;

struct LabArguments {
  std::string source, new_kernel, csv, run_file, point;
  std::vector<std::string> sizes, ways, kernels;
  std::optional<int> depth, repeats, warm_up;
  int64_t m = 0, k = 0;
  std::optional<double> seconds;
  std::optional<uint64_t> seed;
  std::string python = "python3", script;
  RemoteArguments remote;
  bool json = false, cold_cache = false, torch = false, ceilings = false, list = false;
};

json starting_point(const LabArguments& a) {
  if (a.source.empty()) return json::object();
  for (const char* name : {"matmul", "sine", "add", "reduce", "softmax", "copy"})
    if (a.source == name) return {{"name", name}, {"operation", name}};
  for (const app::ShippedLab& shipped : app::shipped_labs())
    if (a.source == shipped.name) {
      json object = app::read_lab_file(shipped.path);
      object["name"] = shipped.name;
      return object;
    }
  std::error_code none;
  if (!std::filesystem::exists(a.source, none))
    throw UsageError("lab: " + a.source + " is not an operation, a preset (--list) or a file");
  return app::read_lab_file(a.source);
}

std::vector<int64_t> sizes_of(const LabArguments& a) {
  std::vector<int64_t> sizes;
  try {
    for (const std::string& text : a.sizes) sizes.push_back(size_of_text(text));
  } catch (const Failure& wrong) {
    throw UsageError(std::string("lab --") + wrong.what());
  }
  return sizes;
}

// Replaces choices of the experiment by those on the command line.
LabSpec spec_of(const LabArguments& a, json object) {
  if (!a.sizes.empty()) object["sizes"] = sizes_of(a);
  if (!a.ways.empty()) object["ways"] = a.ways;
  if (a.m) object["m"] = a.m;
  if (a.k) object["k"] = a.k;
  if (a.depth) object["depth"] = *a.depth;
  if (a.repeats) object["repeats"] = *a.repeats;
  if (a.warm_up) object["warm_up"] = *a.warm_up;
  if (a.seconds) object["seconds_per_point"] = *a.seconds;
  if (a.cold_cache) object["cold_cache"] = true;
  if (a.seed) object["seed"] = *a.seed;
  for (const std::string& kernel : a.kernels) object["kernels"].push_back({{"file", kernel}});
  LabSpec spec = lab_spec_from_json(object);
  read_kernels(spec);
  return spec;
}

void print_findings(const LabResult& result) {
  if (!result.message.empty()) print_table(result.message + "\n");
  if (result.cancelled) std::printf("stopped: %zu points kept\n", result.points.size());
  print_ceilings(result);
  print_crossovers(result);
}

int give(const LabArguments& a, const LabResult& result) {
  if (a.json) std::printf("%s\n", versioned(to_json(result)).dump().c_str()), std::fflush(stdout);
  if (!a.csv.empty()) prof::write_whole(a.csv, to_csv(result));
  if (!a.json) print_findings(result);
  if (!result.unsaved.empty()) throw Failure(result.unsaved);
  return kDone;
}

// Prints a recorded sweep again: its points, or the trace of one point.
int show(const LabArguments& a) {
  const std::optional<LabResult> result = app::read_lab(a.source);
  if (!result) throw Failure(a.source + ": not a run of the laboratory");
  if (!a.point.empty()) {
    print_point_trace(a.source, *result, a.point);
    return kDone;
  }
  LabLines lines(a.json ? stderr : stdout, result->spec);
  if (!a.json)
    for (const LabPoint& point : result->points) lines.point(point);
  return give(a, *result);
}

int write_first_version(const std::string& file, const LabSpec& spec) {
  const int64_t size = spec.sizes.empty() ? default_sizes(spec.operation).front() : spec.sizes.front();
  app::write_new_kernel(file, own::first_version(kernel_contract(spec, size)));
  const std::string name = printable(file), operation(to_string(spec.operation));
  std::printf("written: %s; to measure it: warpsight lab %s --kernel %s\n", name.c_str(), operation.c_str(), name.c_str());
  return kDone;
}

// Runs the same sweep in PyTorch's script. The result can be drawn over ours.
LabResult in_torch(const LabArguments& a, const LabSpec& spec, const std::atomic<bool>& cancel, LabLines& lines) {
  app::TorchTools tools = app::find_torch(a.python, program_file());
  if (!a.script.empty()) tools.script = a.script, tools.problem.clear();  // the script reports what it lacks
  LabResult result = app::run_torch_lab(spec, tools, cancel,
                                        [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  for (const LabPoint& point : result.points) lines.point(point);
  if (!a.json) print_table(result.source + ", " + result.device + "\n");
  return result;
}

// Shows the points of a sweep on another machine as they come. Returns nullopt if it was left running there.
std::optional<LabResult> watch_lab(const LabArguments& a, app::RemoteRun& run, LabLines& lines) {
  ProgressLine line(stderr);
  std::optional<LabResult> whole;
  const auto take = [&](const app::RemoteUpdate& update) {
    for (const std::string& text : update.results) {
      const json result = parse_json(text, "A point");
      const JsonInput in(result, "");
      if (in.at("whole").there()) whole = lab_result_from_json(in.at("whole").value());
      if (!in.at("lab").there()) continue;
      for (const LabPoint& point : lab_result_from_json(in.at("lab").value()).points) lines.point(point);
    }
  };
  const RemoteOutcome end = watch(run, line, {.at_interrupt = a.remote.at_interrupt, .each = take});
  if (end.left) return std::nullopt;
  if (!whole) throw Failure("The sweep on " + run.link().address().place() + " ended without a result.");
  if (a.torch)
    for (const LabPoint& point : whole->points) lines.point(point);
  if (!a.run_file.empty() && !end.files.empty()) fetch(run, {{"file", run.name() + ".wsrun"}}, a.run_file, line, a.remote.found);
  return whole;
}

std::optional<LabResult> run_lab_there(LabArguments a, const LabSpec& spec, LabLines& lines) {
  app::RemoteLink link(a.remote.address(a.run_file));
  const std::string name = app::RemoteRun::new_name("lab-" + std::string(to_string(spec.operation)));
  app::RemoteRun::start(link, name,
                        a.torch ? app::torch_lab_request(spec, {a.python, a.script})
                                : app::lab_request(spec, !a.run_file.empty()));
  app::RemoteRun run(link, name, false);
  ProgressLine(stderr).say("runs on " + link.address().place() + " as " + name);
  return watch_lab(a, run, lines);
}

int print_measured(const LabArguments& a) {
  CancelOnInterrupt interrupt;
  LabResult result;
  std::string missing;
  result.ceilings = measure_ceilings(interrupt.cancel, &missing);
  if (!missing.empty()) std::fprintf(stderr, "%s\n", printable(missing).c_str());
  if (a.json)
    std::printf("%s\n", versioned(to_json(result.ceilings)).dump().c_str());
  else
    print_ceilings(result);
  return kDone;
}

int list_labs(bool as_json) {
  json all = json::array();
  for (const app::ShippedLab& shipped : app::shipped_labs()) {
    if (!as_json) std::printf("  %-34s %s\n", printable(shipped.name).c_str(), printable(shipped.title).c_str());
    json object = {{"name", shipped.name}};
    if (as_json) object.update(app::read_lab_file(shipped.path)), all.push_back(object);
  }
  if (as_json) std::printf("%s\n", versioned({{"labs", all}}).dump().c_str());
  return kDone;
}

int run_lab(const LabArguments& a) {
  if (a.list) return list_labs(a.json);
  if (a.ceilings) return print_measured(a);
  if (a.source.ends_with(".wsrun")) return show(a);
  if (!a.point.empty()) throw UsageError("lab --point: name the recorded run file first");
  if (a.torch && !a.run_file.empty()) throw UsageError("lab --torch: PyTorch's sweep goes into --json, not --run");
  const json experiment = starting_point(a);
  const LabSpec spec = spec_of(a, experiment);
  if (!a.new_kernel.empty()) return write_first_version(a.new_kernel, spec);
  // Fail now, not after a sweep of minutes.
  if (!a.csv.empty()) check_ending("--csv", a.csv, "points are written as", {".csv"}), prof::check_writable(a.csv);
  if (!a.run_file.empty()) check_run_name(a.run_file), prof::check_run_file(a.run_file);
  CancelOnInterrupt interrupt;
  const std::atomic<bool>& cancel = interrupt.cancel;
  print_page(a.json ? stderr : stdout, experiment);
  LabLines lines(a.json ? stderr : stdout, spec);
  if (!a.remote.on.empty()) {
    const std::optional<LabResult> result = run_lab_there(a, spec, lines);
    return result ? give(a, *result) : kDone;
  }
  if (a.torch) return give(a, in_torch(a, spec, cancel, lines));
  if (const auto left = a.run_file.empty() ? std::nullopt : app::left_sweep(spec, a.run_file))
    std::fprintf(stderr, "The sweep in %s was ended early. Its %zu points are kept, and it goes on.\n", printable(a.run_file).c_str(), left->points.size());
  return give(a, app::run_sweep(spec, a.run_file, cancel, lines));
}

}  // namespace

int attach_lab(const AttachedJob& job) {
  LabArguments a;
  a.run_file = job.run_file, a.remote = job.remote;
  const JsonInput request(job.request, "The sweep");
  a.torch = request.at("torch").flag(false);
  LabLines lines(stdout, lab_spec_from_json(request.required("lab").value()));
  const std::optional<LabResult> result = watch_lab(a, job.run, lines);
  return result ? give(a, *result) : kDone;
}

namespace {

void add_what_is_measured(CLI::App& command, LabArguments& a) {
  std::vector<std::string> variants;
  for (const WayInfo& way : ways())
    if (!is_own(way.way)) variants.emplace_back(way.name);
  command.add_option("OPERATION", a.source,
                     "matmul, sine, add, reduce, softmax, copy, a preset (--list), a JSON file, or a "
                     "recorded sweep (.wsrun); default: matmul");
  command.add_option("--kernel", a.kernels, "your own kernels for the operation, checked before they are timed: further variants")
      ->type_name("FILE")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--sizes", a.sizes, "sizes, separated by commas: 4096, 2^12, 64M")
      ->type_name("N,N")
      ->delimiter(',');
  command.add_option("--variants", a.ways, "variants, separated by commas: cpu, gpu, gpu-pinned, …")
      ->type_name("NAME,NAME")
      ->delimiter(',')
      ->check(CLI::IsMember(variants));
  command.add_option("--ways", a.ways)->delimiter(',')->group("")->check(CLI::IsMember(variants));  // its former name
  command.add_option("--m", a.m, "rows of an m × k × size product; 0: square")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 20));
  command.add_option("--k", a.k, "inner length of that product; 0: square")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 20));
}

void add_how_it_is_measured(CLI::App& command, LabArguments& a) {
  const LabSpec usual;
  command.add_option("--depth", a.depth, "depth of the nested sine")
      ->type_name("N")
      ->check(CLI::Range(1, 64))
      ->default_str(std::to_string(usual.depth));
  command.add_option("--repeats", a.repeats, "largest number of calls per point")
      ->type_name("N")
      ->check(CLI::Range(3, 10000))
      ->default_str(std::to_string(usual.repeats));
  command.add_option("--warm-up", a.warm_up, "warm-up calls per point, which are not timed")
      ->type_name("N")
      ->check(CLI::Range(0, 1000))
      ->default_str(std::to_string(usual.warm_up));
  command.add_option("--seconds", a.seconds, "longest time per point")
      ->type_name("S")
      ->check(CLI::Range(0.0, 3600.0))
      ->default_str(formatted("{}", usual.seconds_per_point));
  command.add_option("--seed", a.seed, "seed of the input values")
      ->type_name("N")
      ->default_str(std::to_string(usual.seed));
  command.add_flag("--cold-cache", a.cold_cache, "evict the inputs from the caches before each call");
}

}  // namespace

Run add_lab(CLI::App& program) {
  auto a = std::make_shared<LabArguments>();
  CLI::App& command = *program.add_subcommand("lab", "time one operation over many sizes, in several variants");
  add_limit(command);
  add_what_is_measured(command, *a);
  command.add_option("--run", a->run_file, "record a timeline of every point into this run file (.wsrun)")
      ->type_name("FILE");
  command
      .add_option("--point", a->point, "show the calls of one point of a recorded sweep, for example gpu-pinned:1024")
      ->type_name("POINT");
  add_how_it_is_measured(command, *a);
  command.add_option("--csv", a->csv, "write the points to this file")->type_name("FILE");
  command.add_flag("--ceilings", a->ceilings,
                   "measure the limits of the card; sweeps and the roofline use the newest measurement");
  command.add_flag("--torch", a->torch, "run the same sweep in PyTorch instead");
  command.add_option("--python", a->python, "python3 that has PyTorch")->type_name("PROGRAM")->capture_default_str();
  command.add_option("--script", a->script, "use this script instead of resources/torch/lab.py")->type_name("FILE");
  a->remote.add_to(command);
  command.footer(
      "Examples:\n  warpsight lab matmul --sizes 256,1024 --variants cpu,gpu\n  warpsight lab the-timer-that-lies\n"
      "  warpsight lab sine --sizes 2^20,64M --run sine.wsrun\n"
      "  warpsight lab softmax --new-kernel my.cu\n  warpsight lab softmax --kernel my.cu --variants gpu");
  command.add_flag("--list", a->list, "list the presets");
  command.add_flag("--json", a->json, "print the result as one JSON object");
  command.add_option("--new-kernel", a->new_kernel, "write a first version of a kernel for the operation, and measure nothing")->type_name("FILE");
  return [a] { return run_lab(*a); };
}

}  // namespace ws::cli

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/step_bench.h"
#include "app/core/runs/machine.h"
#include "engine/devices/devices.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/version.h"

namespace ws::cli {
namespace {

using nlohmann::json;

struct BenchArguments {
  SpecArguments spec;
  std::string vary;
  BenchOptions options;
  bool json = false;
};

struct Variant {
  std::string name;
  RunSpec spec;
};

const Field& choice_to_vary(const std::string& key) {
  try {
    if (const Field& f = field(key); f.kind == FieldKind::Choice) return f;
  } catch (const SpecError& problem) {
    throw UsageError(std::string("--vary ") + problem.what());
  }
  throw UsageError("--vary " + key + ": has no list of values to go through");
}

std::vector<Variant> variants(const BenchArguments& a) {
  RunSpec base = a.spec.named();
  a.spec.override_in(base);
  if (a.vary.empty()) return {{base.name, fit(base)}};
  std::vector<Variant> all;
  for (const FieldValue& value : choice_to_vary(a.vary).values) {
    RunSpec spec = base;
    set_field(spec, a.vary, value.name);
    all.push_back({std::string(value.name), spec});
  }
  return all;
}

json measured_json(const Variant& v, const BenchResult& r) {
  return {{"name", v.name},
          {"median_us_per_step", r.median_us},
          {"least_us", r.least_us},
          {"most_us", r.most_us},
          {"repeats", r.repeats_us},
          {"steps", r.steps},
          {"samples_per_s", r.samples_per_s},
          {"device", r.device},
          {"spec", to_json(v.spec)}};
}

void print_row(const Variant& v, const BenchResult& r) {
  std::printf("%-16s %12.1f %12.1f %12.1f %14.0f   %s\n", printable(v.name).c_str(), r.median_us, r.least_us, r.most_us,
              r.samples_per_s, r.device.c_str());
}

int bench(const BenchArguments& a) {
  const auto all = variants(a);
  const data::Dataset data = data::load(all.front().spec.data);
  json out = {{"version", kJsonVersion}, {"machine", app::machine_json()}, {"results", json::array()}};
  if (!a.json) std::printf("%-16s %13s %13s %13s %14s\n", "", "median µs", "least µs", "most µs", "samples/s");
  for (const Variant& v : all) {
    if (const auto reason = why_invalid(v.spec, device_info().cuda)) {
      if (all.size() == 1) throw Failure(*reason);
      out["results"].push_back({{"name", v.name}, {"not_run", *reason}});
      if (!a.json) std::printf("%-16s not here: %s\n", printable(v.name).c_str(), printable(*reason).c_str());
      continue;
    }
    const BenchResult result = bench_steps(v.spec, data, a.options);
    out["results"].push_back(measured_json(v, result));
    if (!a.json) print_row(v, result);
  }
  if (a.json) std::printf("%s\n", out.dump().c_str());
  return kDone;
}

}  // namespace

Run add_bench(CLI::App& program) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App& command = *program.add_subcommand("bench", "time the training step: median of several stretches");
  arguments->spec.add_to(command);
  command.add_option("--vary", arguments->vary, "time every value of one choice, for example exec.allocator")
      ->type_name("KEY");
  command.add_option("--repeats", arguments->options.repeats, "number of timed stretches")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--seconds", arguments->options.seconds, "length of a stretch")
      ->type_name("S")
      ->check(CLI::Range(0.001, 60.0))
      ->capture_default_str();
  command.add_flag("--json", arguments->json, "print one JSON object");
  return [arguments] { return bench(*arguments); };
}

}  // namespace ws::cli

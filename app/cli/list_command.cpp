#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/cli/remote_watch.h"
#include "engine/devices/devices.h"
#include "profiling/base/json_input.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"

namespace ws::cli {
namespace {

using nlohmann::json;

void list_one(const std::string& indent, std::string_view name, std::string_view text) {
  std::string head = indent + std::string(name);
  head.resize(std::max(head.size() + 1, indent.size() + 19), ' ');
  std::printf("%s%s\n", head.c_str(), wrapped(std::string(text), head.size(), indent.size() + 19).c_str());
}

void list_presets() {
  std::printf("Presets\n");
  for (const Preset& p : presets()) list_one("  ", p.name, p.text);
}

void list_values(const Field& f, const char* indent) {
  for (const FieldValue& v : f.values) list_one(indent, v.name, v.explain);
}

void list_data() {
  std::printf("Data sets (data.name)\n");
  list_values(field("data.name"), "  ");
}

void list_choices() {
  const RunSpec defaults;
  std::printf("Settings (--set KEY=VALUE); * may change while training\n");
  for (const Field& f : fields()) {
    if (f.key == "data.name") continue;
    const std::string value = field_text(defaults, f.key);
    std::printf("  %s%s = %s\n      %s\n", std::string(f.key).c_str(), f.live ? " *" : "",
                value.empty() ? "(empty)" : value.c_str(), wrapped(std::string(f.explain), 6, 6).c_str());
    list_values(f, "      ");
  }
}

void list_device() {
  const DeviceInfo& device = device_info();
  if (device.cuda)
    std::printf("GPU: %s\n", device.name.c_str());
  else
    std::printf("No GPU: %s\n", device.why_not.c_str());
}

json values_json(const Field& f) {
  json values = json::array();
  for (const FieldValue& v : f.values) values.push_back({{"name", v.name}, {"explain", v.explain}});
  return values;
}

json all_json() {
  json out = {{"version", kJsonVersion}, {"presets", json::array()}, {"choices", json::array()}};
  for (const Preset& p : presets()) out["presets"].push_back({{"name", p.name}, {"title", p.title}, {"text", p.text}});
  const RunSpec defaults;
  for (const Field& f : fields())
    out["choices"].push_back({{"key", f.key},
                              {"group", f.group},
                              {"label", f.label},
                              {"explain", f.explain},
                              {"live", f.live},
                              {"default", f.get(defaults)},
                              {"values", values_json(f)}});
  return out;
}

std::string machine_line(const JsonInput& there) {
  const JsonInput machine = there.at("machine");
  const std::string gpu = machine.at("gpu").is_null() ? "no GPU: " + there.at("why_no_gpu").text() : machine.at("gpu").text();
  return there.at("host").text() + " · " + gpu + " · " + machine.at("cpu").text() + ", " +
         std::to_string(machine.at("cpu_threads").whole(0)) + " threads, " + bytes_text(there.at("memory_bytes").number(0)) +
         " · " + bytes_text(there.at("free_disk_bytes").number(0)) + " free in " + there.at("folder").text();
}

std::string run_line(const JsonInput& run) {
  std::string line = run.at("file").text() + " · " + bytes_text(run.at("bytes").number(0));
  if (run.at("problem").there()) return line + " · " + run.at("problem").text();
  line += " · " + run.at("status").text() + " · " + count_text(run.at("steps").number(0)) + " steps";
  if (const double us = run.at("us_per_step").number(0); us > 0) line += " of " + time_text(us);
  if (!run.at("device").text().empty()) line += " · " + run.at("device").text();
  return line;
}

std::string job_line(const JsonInput& row) {
  const JsonInput job = row.at("job");
  std::string title = job.at("title").text();
  if (title.empty())
    for (const JsonInput& word : job.at("command").items()) title += (title.empty() ? "" : " ") + word.text();
  return row.at("run").text() + " · " + job.at("kind").text() + (title.empty() ? "" : " · " + title) + " · runs now";
}

int list_there(RemoteArguments remote, bool as_json) {
  app::RemoteLink link(remote.address());
  json there = link.ask({{"do", "hello"}});
  there.update(link.ask({{"do", "jobs"}}));
  there.update(link.ask({{"do", "list"}}, 600));
  if (as_json) {
    std::printf("%s\n", there.dump().c_str());
    return kDone;
  }
  const JsonInput in(there, "");
  std::printf("%s\n", printable(machine_line(in)).c_str());
  for (const JsonInput& run : in.at("runs").items())
    if (!run.at("job").flag(false)) std::printf("  %s\n", printable(run_line(run)).c_str());
  for (const JsonInput& job : in.at("jobs").items()) std::printf("  %s\n", printable(job_line(job)).c_str());
  return kDone;
}

int list(const std::string& what, bool as_json) {
  if (as_json) {
    std::printf("%s\n", all_json().dump().c_str());
    return kDone;
  }
  if (what == "presets" || what == "all") list_presets();
  if (what == "data" || what == "all") list_data();
  if (what == "choices" || what == "all") list_choices();
  if (what == "all") list_device();
  return kDone;
}

}  // namespace

Run add_list(CLI::App& program) {
  struct Arguments {
    std::string what = "all";
    bool json = false;
    RemoteArguments remote;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *program.add_subcommand("list", "list presets, data sets and settings, with their meaning");
  command.add_option("WHAT", arguments->what, "presets, data, choices or all")
      ->check(CLI::IsMember({"presets", "data", "choices", "all"}));
  command.add_flag("--json", arguments->json, "print everything as one JSON object");
  command
      .add_option("--on", arguments->remote.on,
                  "list the runs and jobs of another machine: ssh://user@host[:port][/folder]")
      ->type_name("MACHINE");
  return [arguments] {
    return arguments->remote.on.empty() ? list(arguments->what, arguments->json)
                                        : list_there(arguments->remote, arguments->json);
  };
}

}  // namespace ws::cli

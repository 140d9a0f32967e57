#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/core/runs/spec_line.h"
#include "engine/devices/devices.h"

namespace ws::cli {

void SpecArguments::add_to(CLI::App& command, bool source_required) {
  auto* option = command.add_option("RUN", source, "a preset (warpsight list presets), a JSON file, or a line of settings (ws1:…)");
  if (source_required)
    option->required();
  else
    command.add_option("--spec", source, "the same, for a line of settings that somebody sent: 'ws1:…'")->type_name("LINE")->excludes(option);
  add_limit(command);
  command.add_option("--set", overrides, "change one setting, for example exec.allocator=caching; can be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

RunSpec SpecArguments::spec() const { return fit(asked()); }

RunSpec SpecArguments::named() const { return app::is_spec_line(source) ? app::spec_of_line(source) : load_spec(source); }

RunSpec SpecArguments::asked() const try {
  RunSpec spec = named();
  override_in(spec);
  return spec;
} catch (const NoSuchSpec& unknown) {
  throw UsageError(unknown.what());
}

void SpecArguments::override_in(RunSpec& spec) const {
  for (const std::string& text : overrides) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) throw UsageError("--set " + text + ": expected KEY=VALUE");
    try {
      set_field(spec, text.substr(0, equals), text.substr(equals + 1));
    } catch (const SpecError& problem) {
      throw UsageError(std::string("--set ") + problem.what());
    }
  }
  for (const std::string& kernel : kernels) spec.exec.kernels += (spec.exec.kernels.empty() ? "" : "; ") + kernel;
}

void check_ending(const std::string& option, const std::string& file, const std::string& written_as,
                  const std::vector<std::string>& endings) {
  std::error_code none;
  const std::filesystem::file_status there = std::filesystem::status(file, none);
  const bool special = file.starts_with("/dev/") ||  // /dev/stdout may lead to a file
                       (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there));
  if (special || std::ranges::any_of(endings, [&file](const std::string& end) { return file.ends_with(end); })) return;
  throw UsageError(option + " " + file + ": " + written_as + " " + one_of(endings));
}

void check_run_name(const std::string& file) { check_ending("--run", file, "a run file is written as", {".wsrun"}); }

prof::TraceLevel trace_level(const std::string& name) {
  try {
    return prof::trace_level(name);
  } catch (const Failure& failure) {
    throw UsageError(std::string("--trace: ") + failure.what());
  }
}

RunSpec fit(RunSpec spec) {
  std::vector<std::string> notes;
  spec = fit_to_machine(std::move(spec), device_info().cuda, notes);
  for (const std::string& note : notes) std::fprintf(stderr, "%s\n", note.c_str());
  return spec;
}

}  // namespace ws::cli

// warpsight kernel: write a kernel in CUDA, PTX or Triton for one op of a plan, compile it, check it, and see its time beside the built-in one.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/core/kernels/kernel_check_process.h"
#include "app/core/kernels/kernel_library.h"
#include "app/core/kernels/kernel_plan.h"
#include "engine/devices/devices.h"
#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_contract.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/analysis/disassembly.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"

namespace ws::cli {
namespace {

using nlohmann::json;

struct KernelArguments {
  SpecArguments spec;
  std::string op, file;
  int compute = 90;
  bool as_json = false, ptx = false, triton = false, instructions = false;
};

OwnKernelSource source_of(const KernelArguments& a) { return own::read_source({a.op, a.file, {}}); }

int list_ops(const KernelArguments& a) {
  const Plan plan = app::plan_for_kernels(a.spec.asked());
  for (const Op& op : plan.ops)
    if (!own::why_none(plan, op)) std::printf("%s\n", formatted("{:<16} {}", op.name, describe(plan, op)).c_str());
  return kDone;
}

int list_files(const KernelArguments&) {
  for (const app::KernelFile& file : app::kernel_files())
    std::printf("%s\n", printable(formatted("{:<24} {}  {}", file.name, file.version, file.meaning)).c_str());
  return kDone;
}

int add_file(const KernelArguments& a) {
  std::printf("added: %s\n", app::add_kernel_file(a.file).c_str());
  return kDone;
}

int write_first(const KernelArguments& a) {
  const Plan plan = app::plan_for_kernels(a.spec.asked());
  const own::KernelLanguage named = own::language_of(a.file);
  const own::KernelLanguage language = a.ptx ? own::KernelLanguage::Ptx : a.triton ? own::KernelLanguage::Triton : named;
  if (!a.file.empty() && language != named) throw UsageError("FILE: name it .ptx with --ptx, and .py with --triton");
  const std::string text = first_kernel(own::contract_of(plan, own::find_op(plan, a.op)), language);
  if (a.file.empty()) return std::fputs(text.c_str(), stdout) < 0 ? kFailed : kDone;
  app::write_new_kernel(a.file, text);
  std::printf("written: %s; to check it: warpsight kernel check %s \"%s\" %s\n", a.file.c_str(), a.spec.source.c_str(), a.op.c_str(), a.file.c_str());
  return kDone;
}

void print_note(const KernelArguments& a, const own::BuildNote& note) {
  const std::string place = note.line > 0 ? a.file + "(" + std::to_string(note.line) + ")" : a.file;
  std::fprintf(stderr, "%s\n", printable(place + ": " + (note.error ? "error: " : "warning: ") + note.text).c_str());
}

void print_instructions(const own::KernelBuild& build) {
  const prof::Disassembly listed = prof::disassembled({build.code.data(), build.code.size()}, build.entry);
  if (!listed.missing.empty()) throw Failure(listed.missing);
  for (const prof::Instruction& one : listed.instructions)
    std::printf("%s\n", printable(formatted("0x{:04x}  {:>4}  {}", one.offset, one.line > 0 ? std::to_string(one.line) : std::string(), one.text)).c_str());
}

int compile_only(const KernelArguments& a) {
  const own::KernelBuild build = build_own_kernel(app::plan_for_kernels(a.spec.asked()), a.op, source_of(a), a.compute);
  for (const own::BuildNote& note : build.notes) print_note(a, note);
  if (!build.good()) throw Failure(a.file + " does not compile.");
  if (!build.facts || !build.facts->has_kernel) throw Failure(a.file + " has no kernel named " + own::kEntry + ".");
  std::printf("%s\n", own::to_text(*build.facts, a.file, a.compute).c_str());
  if (a.instructions) print_instructions(build);
  return kDone;
}

void print_result(const app::ShapeResult& r) {
  const OwnKernelVerdict& v = r.verdict;
  std::string text = (r.good() ? "good   " : "wrong  ") + r.shape + ": " + r.sentence;
  if (r.good()) text += formatted("; {:.2f} µs, built in {:.2f} µs", v.own_us, v.built_in_us);
  if (r.good() && v.registers > 0) text += formatted("; {} registers, theoretical occupancy {:.0f} %", v.registers, 100 * v.occupancy);
  std::printf("%s\n", printable(text).c_str());
}

int check(const KernelArguments& a) {
  const RunSpec spec = a.spec.asked();
  const own::KernelBuild build = build_own_kernel(app::plan_for_kernels(spec), a.op, source_of(a), a.compute);  // needs no GPU
  for (const own::BuildNote& note : build.notes) print_note(a, note);
  if (!build.good()) throw Failure(a.file + " does not compile.");
  if (!device_info().cuda) throw Failure("It compiles. A check needs a GPU: " + device_info().why_not);
  const auto results = app::check_kernel({a.op, a.file, app::checked_shapes(spec)}, [&](const app::ShapeResult& result) {
    if (!a.as_json) print_result(result);
    return true;
  });
  const bool good = !results.empty() && results.back().good();
  if (!a.as_json) return good ? kDone : kFailed;
  json lines = json::array();
  for (const app::ShapeResult& result : results) lines.push_back(json::parse(app::to_json_line(result)));
  std::printf("%s\n", versioned({{"op", a.op}, {"file", a.file}, {"device", device_info().name}, {"good", good}, {"shapes", lines}}).dump(2).c_str());
  return good ? kDone : kFailed;
}

using Action = int (*)(const KernelArguments&);

CLI::App& add_action(CLI::App& kernel, const std::shared_ptr<KernelArguments>& a, const std::shared_ptr<Action>& chosen, const char* name,
                     const char* text, Action action, bool takes_spec = true) {
  CLI::App& command = *kernel.add_subcommand(name, text);
  if (takes_spec) a->spec.add_to(command);
  command.callback([chosen, action] { *chosen = action; });
  return command;
}

}  // namespace

Run add_kernel(CLI::App& program) {
  auto a = std::make_shared<KernelArguments>();
  auto chosen = std::make_shared<Action>(nullptr);
  CLI::App& kernel = *program.add_subcommand("kernel", "write your own kernel for an op of the step, check it, time it");
  kernel.require_subcommand(1);
  add_action(kernel, a, chosen, "list", "the ops that take a kernel of your own", list_ops);
  CLI::App& first = add_action(kernel, a, chosen, "new", "write a first version that works", write_first);
  CLI::App& compiled = add_action(kernel, a, chosen, "compile", "compile it, without a GPU", compile_only);
  CLI::App& checked = add_action(kernel, a, chosen, "check", "compare it with the built-in op on many shapes", check);
  for (CLI::App* command : {&first, &compiled, &checked}) {
    command->add_option("OP", a->op, "the op, by its name in the plan")->required();
    CLI::Option* file = command->add_option("FILE", a->file, "the source: .cu (CUDA), .ptx or .py (Triton)");
    if (command != &first) file->required();
  }
  CLI::Option* ptx = first.add_flag("--ptx", a->ptx, "in PTX, as the compiler makes it of the version in CUDA");
  first.add_flag("--triton", a->triton, "in Triton, which $WARPSIGHT_PYTHON or python3 must have")->excludes(ptx);
  compiled.add_flag("--instructions", a->instructions, "print its machine instructions with their lines");
  compiled.add_option("--arch", a->compute, "compute capability: 80, 86, 89, 90 …")->check(CLI::Range(70, 130));
  checked.add_flag("--json", a->as_json, "print JSON");
  add_action(kernel, a, chosen, "files", "your kernels: names without a path are in this list", list_files, false);
  add_action(kernel, a, chosen, "add", "take a kernel that somebody sent into the list", add_file, false).add_option("FILE", a->file, "the source")->required();
  CLI::App& inside = add_action(kernel, a, chosen, "check-inside", "", [](const KernelArguments& given) { return app::check_inside(given.file); }, false);
  inside.add_option("FILE", a->file)->required();
  inside.group("");
  kernel.footer(
      "Examples:\n  warpsight kernel new mnist fc1 my.cu\n  warpsight kernel check mnist fc1 my.cu\n  warpsight kernel new mnist relu1 my.py --triton\n"
      "  warpsight kernel list mnist --set exec.fusion=off\n  warpsight train mnist --kernel \"bias+relu fc1=my.cu\"");
  return [a, chosen] { return (*chosen)(*a); };
}

}  // namespace ws::cli

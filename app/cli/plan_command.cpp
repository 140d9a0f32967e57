#include <cstdio>
#include <memory>

#include "app/cli/commands.h"
#include "engine/devices/devices.h"
#include "engine/passes/compile.h"
#include "engine/train/trainer.h"

namespace ws::cli {
namespace {

struct PlanArguments {
  SpecArguments spec;
  bool evaluation = false;
};

int64_t batch_of(const RunSpec& spec, const data::Dataset& data) {
  return spec.train.batch == 0 ? data.train.rows : std::min(spec.train.batch, data.train.rows);
}

// The kernels of a matrix product are known only after the plan is bound to a GPU, because the libraries choose them.
std::string chosen_kernels(const RunSpec& spec, const Model& model, const data::Dataset& data, const Plan& plan) {
  if (!wants_cuda(spec)) return {};
  try {
    const auto executor = make_executor(spec);
    executor->load(model, data, spec);
    executor->set_state(first_state(model, spec));
    executor->bind(plan);
    const std::vector<std::string> notes = executor->notes();
    std::string text = "\nKernels chosen on " + executor->device_name() + "\n";
    for (size_t i = 0; i < notes.size(); ++i)
      if (!notes[i].empty()) text += std::to_string(i) + "  " + describe(plan, plan.ops[i]) + ": " + notes[i] + "\n";
    return text;
  } catch (const Failure& problem) {
    return std::string("\nThe kernels of the products are not known: ") + problem.what() + "\n";
  }
}

int show(const PlanArguments& a) {
  const RunSpec spec = a.spec.spec();
  const data::Dataset data = data::load(spec.data);
  const Model model = make_model(spec.model, data);
  const int64_t batch = batch_of(spec, data);
  const CompiledPlan compiled = a.evaluation ? compile_evaluation(spec, model, batch) : compile(spec, model, batch);
  std::printf("As built: %zu ops\n%s\n", compiled.before.ops.size(), print(compiled.before).c_str());
  for (const std::string& line : compiled.plan.log) std::printf("%s\n", line.c_str());
  std::printf("\nAs it runs: %zu ops\n%s", compiled.plan.ops.size(), print(compiled.plan).c_str());
  const std::string budget = a.evaluation ? "" : persistent_budget(spec, compiled.plan, data.train.rows);
  if (!budget.empty()) std::printf("\n%s", budget.c_str());
  if (!a.evaluation) std::printf("%s", chosen_kernels(spec, model, data, compiled.plan).c_str());
  return kDone;
}

}  // namespace

Run add_plan(CLI::App& program) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App& command = *program.add_subcommand("plan", "print the training step before and after the passes");
  arguments->spec.add_to(command);
  command.add_flag("--evaluation", arguments->evaluation, "print the plan of a test instead of a training step");
  command.footer("Example:\n  warpsight plan mnist --set exec.fusion=off");
  return [arguments] { return show(*arguments); };
}

}  // namespace ws::cli

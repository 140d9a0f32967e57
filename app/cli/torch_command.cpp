#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/core/runs/torch_run.h"
#include "profiling/base/ownership.h"
#include "profiling/base/paths.h"

namespace ws::cli {
namespace {

struct TorchArguments {
  SpecArguments spec;
  std::string out, python = "python3", script, title;
  bool compile = false, plain = false;
};

int run_torch(TorchArguments a) {
  if (a.out.empty()) a.out = unowned("pytorch.wsrun");
  app::TorchRequest request{a.spec.spec(), a.out, a.title, a.compile, !a.plain};
  app::TorchTools tools = app::find_torch(a.python, program_file());
  if (!a.script.empty()) tools.script = a.script, tools.problem.clear();  // the script reports what it lacks
  CancelOnInterrupt interrupt;
  app::run_torch(request, tools, interrupt.cancel,
                 [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  std::printf("%s\n", a.out.c_str());
  return kDone;
}

}  // namespace

Run add_torch(CLI::App& program) {
  auto a = std::make_shared<TorchArguments>();
  CLI::App& command = *program.add_subcommand("torch", "train the same network in PyTorch and keep it as a run file");
  a->spec.add_to(command);
  command.add_option("--run", a->out, "the run file to write (default: pytorch.wsrun)")->type_name("FILE");
  command.add_option("--out", a->out)->group("");  // its former name
  command.add_option("--title", a->title, "name of the run")->type_name("TEXT");
  command.add_option("--python", a->python, "which python3")->type_name("PROGRAM")->capture_default_str();
  command.add_option("--script", a->script, "another script in place of resources/torch/train.py")->type_name("FILE");
  command.add_flag("--compile", a->compile, "torch.compile the network");
  command.add_flag("--plain", a->plain, "do not record its kernels");
  return [a] { return run_torch(*a); };
}

}  // namespace ws::cli

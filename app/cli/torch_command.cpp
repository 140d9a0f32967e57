#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/remote_watch.h"
#include "app/core/remote/job_request.h"
#include "app/core/runs/torch_run.h"
#include "profiling/base/ownership.h"
#include "profiling/base/paths.h"

namespace ws::cli {
namespace {

struct TorchArguments {
  SpecArguments spec;
  std::string out, python = "python3", script, title;
  bool compile = false, plain = false;
  RemoteArguments remote;
};

// Shows PyTorch on another machine until it ends or is left. Copies the run file here, if `out` names one.
int watch_torch(app::RemoteRun& run, const RemoteArguments& remote, const std::string& out, ProgressLine& line) {
  const RemoteOutcome end = watch(run, line, {.at_interrupt = remote.at_interrupt});
  if (end.left) return kDone;
  if (end.exit_status != 0) return kFailed;
  if (out.empty()) return kDone;
  fetch(run, {{"file", run.name() + ".wsrun"}}, out, line, remote.found);
  std::printf("%s\n", out.c_str());
  return kDone;
}

int run_torch_there(TorchArguments a) {
  app::RemoteLink link(a.remote.address(a.out));
  const std::string name = app::RemoteRun::new_name("pytorch");
  app::RemoteRun::start(link, name,
                        app::torch_request({a.spec.spec(), "", a.title, a.compile, !a.plain}, {a.python, a.script}));
  app::RemoteRun run(link, name, false);
  ProgressLine line(stderr);
  line.say("runs on " + link.address().place() + " as " + name);
  return watch_torch(run, a.remote, a.out, line);
}

int run_torch(TorchArguments a) {
  if (a.out.empty()) a.out = unowned("pytorch.wsrun");
  check_run_name(a.out);
  if (!a.remote.on.empty()) return run_torch_there(a);
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

int attach_torch(const AttachedJob& job) {
  ProgressLine line(stderr);
  return watch_torch(job.run, job.remote, job.run_file, line);
}

Run add_torch(CLI::App& program) {
  auto a = std::make_shared<TorchArguments>();
  CLI::App& command = *program.add_subcommand("torch", "train the same network in PyTorch and keep it as a run file");
  a->spec.add_to(command);
  command.add_option("--run", a->out, "the run file to write (default: pytorch.wsrun)")->type_name("FILE");
  command.add_option("--out", a->out)->group("");  // its former name
  command.add_option("--title", a->title, "name of the run")->type_name("TEXT");
  command.add_option("--python", a->python, "python3 that has PyTorch")->type_name("PROGRAM")->capture_default_str();
  command.add_option("--script", a->script, "use this script instead of resources/torch/train.py")->type_name("FILE");
  a->remote.add_to(command);
  command.add_flag("--compile", a->compile, "torch.compile the network");
  command.add_flag("--plain", a->plain, "do not record kernels");
  return [a] { return run_torch(*a); };
}

}  // namespace ws::cli

// Proves a prediction: trains with the choices that do what the edits say.
#include <cstdio>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/core/proofs/proof.h"
#include "engine/devices/devices.h"

namespace ws::cli {
namespace {

struct ProveArguments {
  SpecArguments spec;
  std::string edits;
  app::ProofOptions options;
  bool json = false;
};

int prove(const ProveArguments& a) {
  const RunSpec spec = a.spec.spec();
  const app::Proof proof = app::prove(spec, a.edits, data::load(spec.data), a.options);
  app::keep(proof, app::proofs_file());
  if (a.json) {
    std::printf("%s\n", app::to_json(proof).c_str());
  } else {
    print_table(app::to_text(proof));
    std::printf("%s\n", app::errors_text(app::errors_of(app::kept_proofs(app::proofs_file()))).c_str());
  }
  return kDone;
}

}  // namespace

Run add_prove(CLI::App& program) {
  auto arguments = std::make_shared<ProveArguments>();
  CLI::App& command = *program.add_subcommand("prove", "carry a prediction out: predicted beside measured, kept for this machine");
  arguments->spec.add_to(command);
  command.add_option("--edits", arguments->edits, "no sync, no allocator calls, one graph launch, copies pinned; separated by semicolons")->type_name("EDITS")->required();
  command.add_option("--rounds", arguments->options.rounds, "trainings of each side, in turn")->type_name("N")->check(CLI::Range(1, 100))->capture_default_str();
  command.add_option("--seconds", arguments->options.seconds, "length of each training")->type_name("S")->check(CLI::Range(0.05, 60.0))->capture_default_str();
  command.add_flag("--json", arguments->json, "print one JSON object");
  command.footer("Example:\n  warpsight prove mnist-naive --edits \"no sync; no allocator calls\"");
  return [arguments] { return prove(*arguments); };
}

}  // namespace ws::cli

// Proves a prediction: trains with the choices that do what the edits say.
#include <cstdio>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/core/proofs/proved_predictions.h"

namespace ws::cli {
namespace {

struct ProveArguments {
  SpecArguments spec;
  std::string edits, switches;
  std::vector<std::string> program;
  app::ProofOptions options;
  bool json = false;
};

// RUN is the first word of a program.
app::Proof proof_of(const ProveArguments& a) {
  const bool program = !a.switches.empty() || !a.program.empty();
  if (!program && a.edits.empty()) throw UsageError("prove: name the edits, for example --edits \"no sync\"");
  if (!program) {
    const RunSpec spec = a.spec.spec();
    return app::prove(spec, a.edits, data::load(spec.data), a.options);
  }
  app::ProgramProof asked{{a.spec.source}, a.switches, a.edits, a.options.rounds};
  asked.command.insert(asked.command.end(), a.program.begin(), a.program.end());
  if (a.switches.empty()) {
    asked.switches = app::helpful_switches(asked);
    std::fprintf(stderr, "The switches that are predicted to help: %s\n", asked.switches.c_str());
  }
  return app::prove(asked);
}

std::string switch_names() {
  std::string names;
  for (const app::ProgramSwitch& one : app::program_switches()) names += (names.empty() ? "" : ", ") + std::string(one.name) + " (" + std::string(one.text) + ")";
  return names;
}

int prove(const ProveArguments& a) {
  const app::Proof proof = proof_of(a);
  app::keep(proof, app::proofs_file());
  if (a.json) {
    std::printf("%s\n", app::to_json(proof).c_str());
  } else {
    print_table(app::to_text(proof));
    const std::vector<app::Proof> kept = app::kept_proofs(app::proofs_file());
    std::printf("%s on this machine: %s\n", kept.size() == 1 ? "1 check" : (std::to_string(kept.size()) + " checks").c_str(), app::errors_text(app::errors_of(kept)).c_str());
  }
  return kDone;
}

}  // namespace

Run add_prove(CLI::App& program) {
  auto arguments = std::make_shared<ProveArguments>();
  CLI::App& command = *program.add_subcommand("prove", "check a prediction: train both ways, predicted beside measured, kept for this machine");
  arguments->spec.add_to(command);
  command.add_option("--edits", arguments->edits, "no sync, no allocator calls, one graph launch, copies pinned; separated by semicolons; of a program: what you expect of the switches")->type_name("EDITS");
  command.add_option("--switch", arguments->switches, "switches of a PyTorch program: " + switch_names() + "; separated by semicolons")->type_name("SWITCHES");
  command.add_option("--rounds", arguments->options.rounds, "trainings of each side, in turn")->type_name("N")->check(CLI::Range(1, 100))->capture_default_str();
  command.add_option("--seconds", arguments->options.seconds, "length of each training")->type_name("S")->check(CLI::Range(0.05, 60.0))->capture_default_str();
  command.add_flag("--json", arguments->json, "print one JSON object");
  command.footer(wrapped("With a program after --, the program runs with the switches and without, in turn, and is recorded. Without --switch, it is recorded once more before, and the switches that are predicted to help are turned on.", 0, 0) +
                 "\n\nExamples:\n  warpsight prove mnist-naive --edits \"no sync; no allocator calls\"\n  warpsight prove --switch \"pinned; workers=4\" -- python3 train.py\n  warpsight prove -- python3 train.py");
  command.add_option("PROGRAM", arguments->program, "the program and its arguments, after --");
  return [arguments] { return prove(*arguments); };
}

}  // namespace ws::cli

// What would a step take if …: predictions from a recorded run.
#include <cstdio>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/run_insights.h"
#include "app/core/proofs/proved_predictions.h"
#include "profiling/causes/what_if.h"
#include "profiling/formats/join_ranks.h"

namespace ws::cli {
namespace {

struct WhatIfArguments {
  std::string file, edits;
  bool json = false;
};

// The advice of `stats --by cause` that a person can act on, as rows.
std::string remedies_text(const prof::RunData& run) {
  const app::RunInsights all = app::run_insights(run);
  const std::vector<app::Insight> can = app::remedies(all.found, all.facts.step_us);
  if (can.empty()) return {};
  const app::PredictionsNote note = app::predictions_note(can, app::proved_predictions(app::programs_like(run.summary)));
  return "\nAdvice, more in stats --by cause:\n" + to_text(app::remedy_table(can, all.facts.step_us)) + wrapped(note.checked + note.text + (note.text.empty() ? "" : "\n"), 0, 0);
}

int what_if(const WhatIfArguments& a) {
  const std::vector<prof::Edit> edits = a.edits.empty() ? std::vector<prof::Edit>{} : prof::parse_edits(a.edits);
  const prof::RunData run = prof::import_ranks({a.file});
  say_problems(a.file, run.problems);
  const prof::WhatIf result = prof::what_if(prof::step_causes(run), run.trace, edits);
  if (a.json) {
    std::printf("%s\n", prof::to_json(result).c_str());
    return kDone;
  }
  const std::string doubts = edits.empty() ? "" : "\n" + wrapped(app::proved_predictions(app::programs_like(run.summary)).checked_text(app::kind_of_edits(a.edits)), 0, 0) + ".\n";
  print_table(prof::to_text(result, remedies_text(run)) + doubts);
  return kDone;
}

}  // namespace

Run add_what_if(CLI::App& program) {
  auto arguments = std::make_shared<WhatIfArguments>();
  CLI::App& command = *program.add_subcommand("whatif", "predict the time of a step after changes to it, and give advice");
  add_limit(command);
  command.add_option("FILE", arguments->file, "a run file or another tool's trace; a folder of traces is one run of all ranks")->required();
  command.add_option("EDITS", arguments->edits, "changes, separated by semicolons; without any, only the advice and the parts of the step");
  command.add_flag("--json", arguments->json, "print one JSON object");
  command.footer(wrapped(std::string("An edit is one of: ") + prof::kEditForms +
                             ". NAME is an op, a module, a line or a cause, as the tables name them; op, module, line or cause before it says "
                             "which; * stands for any letters. The prediction replays the graph of what waits for what: a launch call comes before "
                             "its kernel, calls of a thread and kernels of a stream follow each other, and a sync returns after the work it waits for.",
                         0, 0) +
                 "\n\nExamples:\n  warpsight whatif a.wsrun\n  warpsight whatif a.wsrun \"no sync; fc1 /2\"\n  warpsight whatif a.wsrun \"one graph launch\" --json");
  return [arguments] { return what_if(*arguments); };
}

}  // namespace ws::cli

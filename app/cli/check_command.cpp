// Checks claims about a recorded run.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/core/gate/claims.h"
#include "app/core/runs/newest_trace.h"

namespace ws::cli {
namespace {

struct CheckArguments {
  std::string file;
  std::vector<std::string> claims;
  bool json = false, measures = false;
};

int check(const CheckArguments& a) {
  if (a.measures) {
    std::fputs(app::claim_help().c_str(), stdout);
    return kDone;
  }
  if (a.file.empty() || a.claims.empty()) throw UsageError("Name a run file and at least one claim, for example: warpsight check a.wsrun \"median step < 500 us\"");
  const prof::RunData run = app::newest_data(a.file);
  say_problems(a.file, run.problems);
  app::ClaimChecker checker(run);
  std::vector<app::CheckedClaim> checked;
  for (const std::string& claim : a.claims) {
    try {
      checked.push_back(checker.check(claim));
    } catch (const Failure& failure) {
      throw UsageError(failure.what());
    }
  }
  if (a.json)
    std::printf("%s\n", app::to_json(checked).c_str());
  else
    print_table(app::to_text(checked));
  const auto any = [&](app::Truth truth) { return std::ranges::find(checked, truth, &app::CheckedClaim::truth) != checked.end(); };
  return any(app::Truth::False) ? kFailed : any(app::Truth::CannotTell) ? kCannotTell : kDone;
}

}  // namespace

Run add_check(CLI::App& program) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App& command = *program.add_subcommand("check", "check claims about a run: true, false or cannot tell");
  add_limit(command);
  command.add_option("FILE", arguments->file, "a run file or another tool's trace");
  command.add_option("CLAIMS", arguments->claims, "for example \"median step < 500 us\"")->expected(0, 1000);
  command.add_flag("--measures", arguments->measures, "list what a claim can use, and stop");
  command.add_flag("--json", arguments->json, "print one JSON object");
  command.footer(
      "Exit codes: 0 all are true, 1 one is false, 2 one is no claim, 3 cannot tell about one.\n\nExamples:\n"
      "  warpsight check a.wsrun \"median step < 500 us\" \"kernels per step == 20\"\n"
      "  warpsight check a.wsrun \"share(communication) < 10%\" --json\n"
      "  warpsight check a.wsrun \"p95 step < 1.2 * median step\" \"predicted(no sync) < 300 us\"");
  return [arguments] { return check(*arguments); };
}

}  // namespace ws::cli

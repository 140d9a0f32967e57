// Proves a prediction for somebody's PyTorch program: it runs with a switch and without, in turn, and is recorded.
#include <algorithm>
#include <array>
#include <sstream>

#include "app/core/proofs/proof.h"
#include "app/core/runs/recorded_once.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"
#include "profiling/causes/what_if.h"

namespace ws::app {
namespace {

constexpr std::array kSwitches{
    ProgramSwitch{"pinned", "copies pinned", "data loaders copy to pinned memory"},
    ProgramSwitch{"non-blocking", "copies overlapped", "copies to the GPU do not wait"},
    ProgramSwitch{"workers", "loader ready", "data loaders have workers, 4 or as many as workers=N says"},
    ProgramSwitch{"graphs", "", "the model is compiled into CUDA graphs"},
    ProgramSwitch{"compile", "", "the model is compiled"},
    ProgramSwitch{"tf32", "", "products of fp32 use tf32"},
    ProgramSwitch{"fused-optimizer", "", "the optimizer updates in one kernel"},
    ProgramSwitch{"set-to-none", "", "gradients are dropped, not set to zero"},
};

std::vector<std::string> parts_of(const std::string& switches) {
  std::vector<std::string> parts;
  std::istringstream in(switches);
  for (std::string part; std::getline(in, part, ';');)
    if (const std::string_view name = trimmed(part); !name.empty()) parts.emplace_back(name);
  return parts;
}

const ProgramSwitch& switch_of(const std::string& part) {
  const std::string_view name = std::string_view(part).substr(0, part.find('='));
  const auto found = std::ranges::find(kSwitches, name, &ProgramSwitch::name);
  if (found != kSwitches.end()) return *found;
  std::string names;
  for (const ProgramSwitch& one : kSwitches) names += (names.empty() ? "" : ", ") + std::string(one.name);
  throw Failure("\"" + part + "\" is no switch. Switches are: " + names + ".");
}

// Our marks of modules would break the graph of a compiled model.
prof::PythonLevel level_of(const std::string& switches) {
  const auto compiles = [](const std::string& part) { return part == "compile" || part == "graphs"; };
  return std::ranges::any_of(parts_of(switches), compiles) ? prof::PythonLevel::Steps : prof::PythonLevel::Modules;
}

void check_switched(const prof::RunData& run, const ProgramProof& asked) {
  if (const std::string failure = run.summary.said("program_not_switched"); !failure.empty()) throw Failure("PyTorch refused a switch: " + failure + ".");
  const std::string changed = run.summary.said("program_switched");
  for (const std::string& part : parts_of(asked.switches))
    if (const std::string name(switch_of(part).name); !(changed.starts_with(name + ":") || changed.find("; " + name + ":") != changed.npos))
      throw Failure("The program has nothing that " + name + " changes, so there is nothing to check.");
}

prof::RunData recorded(const ProgramProof& asked, bool switched) {
  std::vector<std::string> command = asked.command;
  command.insert(command.begin(), {"env", "WARPSIGHT_SWITCHES=" + std::string(switched ? asked.switches : "")});
  prof::RunData run = recorded_once(command, asked.command[0] + (switched ? " with " + asked.switches : ""), {.python = level_of(asked.switches)});
  if (switched) check_switched(run, asked);
  return run;
}

}  // namespace

std::span<const ProgramSwitch> program_switches() { return kSwitches; }

std::string edits_of(const ProgramProof& asked) {
  const std::vector<std::string> parts = parts_of(asked.switches);
  if (parts.empty()) throw Failure("Name at least one switch.");
  std::string edits;
  for (const std::string& part : parts) {
    const ProgramSwitch& one = switch_of(part);
    if (one.edits.empty() && asked.edits.empty())
      throw Failure("No edit says what " + std::string(one.name) + " does. Say with --edits what you expect, for example --edits \"forward /2\".");
    edits += (edits.empty() ? "" : "; ") + std::string(one.edits);
  }
  return asked.edits.empty() ? edits : asked.edits;
}

std::string helpful_switches(const ProgramProof& asked) {
  constexpr double kHelpful = 0.01;
  const prof::RunData run = recorded(asked, false);
  const prof::StepCauses causes = prof::step_causes(run);
  std::string helpful, tried;
  for (const ProgramSwitch& one : kSwitches) {
    if (one.edits.empty()) continue;
    tried += (tried.empty() ? "" : ", ") + std::string(one.name);
    try {
      const prof::WhatIf predicted = prof::what_if(causes, run.trace, prof::parse_edits(std::string(one.edits)), 0);
      if (predicted.saves_us.value > kHelpful * predicted.measured_us.value) helpful += (helpful.empty() ? "" : "; ") + std::string(one.name);
    } catch (const Failure&) {
    }  // nothing that it could change
  }
  if (helpful.empty()) throw Failure("None of these switches would make a step 1 % shorter: " + tried + ". To check one anyway, name it with --switch.");
  return helpful;
}

Proof prove(const ProgramProof& asked) {
  Proof proof = prove_in_turn(edits_of(asked), asked.rounds, [&] { return recorded(asked, false); }, [&] { return recorded(asked, true); });
  for (const std::string& word : asked.command) proof.name += (proof.name.empty() ? "" : " ") + word;
  proof.changes = asked.switches;
  return proof;
}

}  // namespace ws::app

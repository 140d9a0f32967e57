// Proves a prediction for somebody's PyTorch program: it runs with a switch and without, in turn, and is recorded.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/core/proofs/proof.h"
#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/base/text.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/recording/record_program.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSwitches{
    ProgramSwitch{"pinned", "copies pinned", "data loaders copy to pinned memory"},
    ProgramSwitch{"non-blocking", "copies overlapped", "copies to the GPU do not wait"},
    ProgramSwitch{"workers", "loader ready", "data loaders have workers, 4 or as many as workers=N says"},
    ProgramSwitch{"graphs", "one graph launch", "the model is compiled into CUDA graphs"},
    ProgramSwitch{"compile", "", "the model is compiled"},
    ProgramSwitch{"tf32", "", "products of fp32 use tf32"},
    ProgramSwitch{"fused-optimizer", "", "the optimizer updates in one kernel"},
    ProgramSwitch{"set-to-none", "", "gradients are dropped, not set to zero"},
};

std::vector<std::string> parts_of(const std::string& switches) {
  std::vector<std::string> parts;
  std::istringstream in(switches);
  for (std::string part; std::getline(in, part, ';');)
    if (const size_t first = part.find_first_not_of(' '); first != part.npos) parts.push_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
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

// The files of one recording, deleted at the end.
class RecordedOnce {
 public:
  RecordedOnce() : folder_(temporary_folder() / ("proof-" + std::to_string(getpid()))) { fs::create_directories(folder_); }
  ~RecordedOnce() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  RecordedOnce(const RecordedOnce&) = delete;
  RecordedOnce& operator=(const RecordedOnce&) = delete;

  prof::RunData run(const ProgramProof& asked, bool switched) const {
    std::vector<std::string> command = asked.command;
    const std::string variable = "WARPSIGHT_SWITCHES=" + std::string(switched ? asked.switches : "");
    command.insert(command.begin(), {"env", variable});
    prof::RecordOptions options;
    options.python = level_of(asked.switches), options.output = (folder_ / "output").string(), options.keep_command = false;
    prof::RecordedProgram program(command, (folder_ / "run.wsrun").string(), options);
    std::optional<int> status;
    while (!(status = program.wait(100)))
      while (!program.take().empty()) {
      }
    const std::string what = asked.command[0] + (switched ? " with " + asked.switches : "");
    if (*status != 0) throw Failure(what + " ended with status " + std::to_string(*status) + last_line() + ".");
    if (!program.recorded()) throw Failure("Nothing was recorded of " + what + ": it " + prof::kNothingToRecord + ".");
    prof::RunData run = prof::import_ranks(program.paths());
    if (switched) check_switched(run, asked);
    return run;
  }

 private:
  // Our marks of modules would break the graph of a compiled model.
  static prof::PythonLevel level_of(const std::string& switches) {
    const auto compiles = [](const std::string& part) { return part == "compile" || part == "graphs"; };
    return std::ranges::any_of(parts_of(switches), compiles) ? prof::PythonLevel::Steps : prof::PythonLevel::Modules;
  }

  std::string last_line() const {
    std::ifstream file(folder_ / "output");
    std::string last;
    for (std::string line; std::getline(file, line);)
      if (!line.empty()) last = line;
    return last.empty() ? "" : ": " + last.substr(0, 200);
  }

  static void check_switched(const prof::RunData& run, const ProgramProof& asked) {
    if (const std::string& failure = run.summary.said("program_not_switched"); !failure.empty()) throw Failure("PyTorch refused a switch: " + failure + ".");
    const std::string changed = run.summary.said("program_switched");
    for (const std::string& part : parts_of(asked.switches))
      if (const std::string name(switch_of(part).name); !(changed.starts_with(name + ":") || changed.find("; " + name + ":") != changed.npos))
        throw Failure("The program has nothing that " + name + " changes, so there is nothing to prove.");
  }

  fs::path folder_;
};

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

Proof prove(const ProgramProof& asked) {
  ProofRounds rounds(edits_of(asked));
  for (int round = 0; round < asked.rounds; ++round) {
    const prof::RunData before = RecordedOnce().run(asked, false);
    rounds.add(before, RecordedOnce().run(asked, true));
  }
  std::string name;
  for (const std::string& word : asked.command) name += (name.empty() ? "" : " ") + word;
  return rounds.proof(name, asked.switches);
}

}  // namespace ws::app

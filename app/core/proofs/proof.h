// Carries a prediction out: trains with the choices that do what the edits say, and keeps how far the prediction was off.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/dataset.h"
#include "engine/plan/run_spec.h"
#include "profiling/base/statistics.h"
#include "profiling/causes/edits.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// The choices that do what these edits say, or why there are none: "fc1 /2: no setting does this."
struct ChosenEdits {
  RunSpec spec;
  std::vector<FieldChange> changes;
  std::string refusal;  // empty: all edits are choices
};
ChosenEdits choices_of(const RunSpec& before, const std::vector<prof::Edit>& edits, bool cuda);

// The edits that lead from one choice to the other; nullopt if an edit cannot say it.
std::optional<std::string> edits_between(const RunSpec& before, const RunSpec& after);

// What was used: "0.1", "580.159", "13.0", "2.9.0". An empty version is not known, or there is none.
struct ProofVersions {
  std::string warpsight, driver, cuda, torch;
};
ProofVersions versions_of(const prof::RunSummary& run);
std::string versions_text(const ProofVersions& versions);  // "Warpsight 0.1, driver 580.159, CUDA 13.0, PyTorch 2.9.0"; empty if none is known

// Its figures come from the round whose error is in the middle: both sides met the same pace of the machine there.
struct Proof {
  std::string created, device, name, edits, changes;
  ProofVersions versions;
  Interval before_us, predicted_us, after_us;
  int rounds = 0, left_out = 0;  // left out: rounds in which the machine changed its pace
  bool of_program() const { return changes.find(" → ") == std::string::npos; }  // a recorded program with switches; else a training with other choices
  double error() const { return (predicted_us.value - after_us.value) / after_us.value; }  // signed, as a share
};

struct ProofOptions {
  double seconds = 0.3;  // of each training
  int rounds = 3;        // trainings of each side that count, in turn
};
// Records both, in turn; predicts the second from each recording of the first. Throws Failure if a
// training fails or the edits are no choices.
Proof prove(const RunSpec& before, const std::string& edits, const data::Dataset& data, const ProofOptions& options = {});
Proof prove(const RunSpec& before, const RunSpec& after, const std::string& edits, const data::Dataset& data, const ProofOptions& options = {});  // where other choices do it, too

struct ProofRecording {
  Interval step_us;
  Interval predicted_us;  // with the edits
};
// A recording with the edits, and those without them right before and right after it.
struct ProofRound {
  ProofRecording earlier, later;
  Interval measured_us;
};
// The machine changes its pace now and then, for some seconds. In these rounds the step without the edits takes the same before and
// after, within 5 %; where there are fewer than `wanted`, these are the `wanted` rounds that differ least.
std::vector<ProofRound> at_one_pace(std::vector<ProofRound> rounds, size_t wanted);

// Records both sides in turn until so many rounds kept their pace, but at most three times as many.
using Recorded = std::function<prof::RunData()>;
Proof prove_in_turn(const std::string& edits, int rounds, const Recorded& before, const Recorded& after);

// A switch that our Python hook turns on in a PyTorch program, and the edits that predict what it does; none: nothing does.
struct ProgramSwitch {
  std::string_view name, edits, text;
};
std::span<const ProgramSwitch> program_switches();

struct ProgramProof {
  std::vector<std::string> command;
  std::string switches;  // "pinned; workers=4"
  std::string edits;     // empty: the edits of the switches
  int rounds = 3;        // runs of each side that count, in turn
};
// The edits of the switches, or those that were given. Throws Failure if a switch is unknown or has no edits of its own.
std::string edits_of(const ProgramProof& asked);
// Those with edits that are predicted to make a step of the program shorter, from one recording. Throws Failure if none is.
std::string helpful_switches(const ProgramProof& asked);
// Records the program without the switches and with them, in turn. Throws Failure if it fails, has no steps, or has nothing that
// a switch changes.
Proof prove(const ProgramProof& asked);

// Proofs of this machine, one JSON object a line.
std::filesystem::path proofs_file();
void keep(const Proof& proof, const std::filesystem::path& file);
std::vector<Proof> kept_proofs(const std::filesystem::path& file);  // without lines that are no proof, and without times

std::string to_text(const Proof& proof);
std::string to_json(const Proof& proof);

}  // namespace ws::app

// How far predictions have been off where they were carried out, by kind of edit: on this machine, or on the one whose proofs
// ship with the program. Every view that shows a prediction quotes this.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "app/core/proofs/proof.h"

namespace ws::app {

struct ProofErrors {
  size_t proofs = 0, within_10_percent = 0;
  double median = 0, worst = 0;  // shares of the measured step
};
ProofErrors errors_of(const std::vector<Proof>& proofs);
std::string errors_text(const ProofErrors& errors);  // "typically 2.1 % off, 35 of 38 within 10 %, worst 12.0 %"; empty without proofs

// "The median step is known to ± 8 % (95 % interval). ", or empty.
std::string known_text(const Interval& step_us);
// What is predicted: "no sync", "NAME /N", "no sync; one graph launch". The order of the edits does not count.
std::string kind_of_edits(const std::string& edits);

struct ProvedKind {
  std::string kind;
  ProofErrors errors;
};

// The programs that were checked: trainings of Warpsight, or recorded programs.
enum class CheckedPrograms : uint8_t { All, Trainings, Programs };
CheckedPrograms programs_like(const prof::RunSummary& run);

class ProvedPredictions {
 public:
  ProvedPredictions(std::vector<Proof> here, std::vector<Proof> shipped, CheckedPrograms of = CheckedPrograms::All);
  // The proofs of this machine, or the shipped ones where there are none.
  const std::vector<Proof>& proofs() const { return here_.empty() ? shipped_ : here_; }
  bool any_here() const { return !here_.empty(); }
  std::string where() const;  // "on this machine", "on an NVIDIA H200, none on this machine"
  std::vector<ProvedKind> by_kind() const;  // the most proofs first
  // "typically 6.0 %, at most 11.0 % off in 14 checks on this machine", "not checked yet". `kind`: as of kind_of_edits().
  std::string off_text(const std::string& kind) const;
  std::string brief_text(const std::string& kind) const;  // without the worst one: "typically 6.0 % off in 14 checks on this machine"
  std::string checked_text(const std::string& kind) const { return kind + ": " + off_text(kind); }
  // Several kinds as one: "such predictions of a recorded program were typically 2.1 %, at most 9.0 % off in 17 checks on this machine".
  std::string checked_text(const std::set<std::string>& kinds) const;

 private:
  std::string text_of(const std::string& kind, bool with_worst) const;

  std::vector<Proof> here_, shipped_;
  CheckedPrograms of_;
};
ProvedPredictions proved_predictions(CheckedPrograms of = CheckedPrograms::All);  // reads the proofs that are kept and those that ship

}  // namespace ws::app

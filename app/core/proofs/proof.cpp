#include "app/core/proofs/proof.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/core/runs/recorded_once.h"
#include "app/core/runs/run_name.h"
#include "engine/devices/devices.h"
#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"
#include "profiling/causes/what_if.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;

// What an edit of all calls or copies of a kind is as a choice.
struct EditChoice {
  prof::EditKind kind;
  std::string_view key, value;
  std::string_view edit;
};
constexpr EditChoice kChoices[] = {
    {prof::EditKind::NoWaits, "exec.sync", "on-read", "no sync"},
    {prof::EditKind::NoAllocator, "exec.allocator", "arena", "no allocator calls"},
    {prof::EditKind::OneGraph, "exec.launch", "graph", "one graph launch"},
    {prof::EditKind::PinnedCopies, "exec.loader", "pinned", "copies pinned"},
};

const EditChoice* choice_of(const prof::Edit& edit) {
  const auto at = std::ranges::find(kChoices, edit.kind, &EditChoice::kind);
  return at == std::end(kChoices) || !edit.name.empty() || edit.rank >= 0 ? nullptr : at;
}

std::string text_of(const std::vector<FieldChange>& changes) {
  std::string text;
  for (const FieldChange& change : changes) text += (text.empty() ? "" : ", ") + change.key + ": " + change.from + " → " + change.to;
  return text;
}

// The figure of the rounds in the middle; the spread of all of them, and at least the noise inside of one.
Interval over_rounds(const std::vector<ProofRound>& by_error, const std::function<Interval(const ProofRound&)>& figure) {
  std::vector<double> values;
  double inside = 0;
  for (const ProofRound& round : by_error) values.push_back(figure(round).value), inside = std::max(inside, figure(round).half_width);
  const auto [least, most] = std::ranges::minmax(values);
  const size_t middle = values.size() / 2;
  const double value = 0.5 * (values[middle] + values[(values.size() - 1) / 2]);
  return {value, std::max(inside / std::sqrt(static_cast<double>(values.size())), 0.5 * (most - least))};
}

Interval mean_of(const Interval& a, const Interval& b) { return {0.5 * (a.value + b.value), 0.5 * std::hypot(a.half_width, b.half_width)}; }

Interval predicted_in(const ProofRound& round) { return mean_of(round.earlier.predicted_us, round.later.predicted_us); }
double error_of(const ProofRound& round) { return predicted_in(round).value / round.measured_us.value; }

constexpr double kOnePace = 0.05;

double change_of_pace(const ProofRound& round) { return std::abs(std::log(round.later.step_us.value / round.earlier.step_us.value)); }

nlohmann::ordered_json json_of(const Interval& us) { return {{"us", us.value}, {"half_width", us.half_width}}; }
Interval interval_of(const JsonInput& in) { return {in.at("us").number(std::nan("")), in.at("half_width").number(0)}; }

struct VersionName {
  const char *key, *name;
  std::string ProofVersions::*version;
};
constexpr VersionName kVersions[] = {{"warpsight", "Warpsight", &ProofVersions::warpsight},
                                     {"driver", "driver", &ProofVersions::driver},
                                     {"cuda", "CUDA", &ProofVersions::cuda},
                                     {"torch", "PyTorch", &ProofVersions::torch}};

nlohmann::ordered_json json_of(const ProofVersions& versions) {
  auto json = nlohmann::ordered_json::object();
  for (const VersionName& one : kVersions)
    if (const std::string& version = versions.*one.version; !version.empty()) json[one.key] = version;
  return json;
}
ProofVersions versions_of(const JsonInput& in) {
  ProofVersions versions;
  for (const VersionName& one : kVersions) versions.*one.version = in.at(one.key).text();
  return versions;
}

nlohmann::ordered_json json_of(const Proof& proof) {
  return {{"version", kJsonVersion}, {"created", proof.created}, {"device", proof.device}, {"versions", json_of(proof.versions)}, {"name", proof.name}, {"edits", proof.edits}, {"changes", proof.changes}, {"before", json_of(proof.before_us)},
          {"predicted", json_of(proof.predicted_us)}, {"measured", json_of(proof.after_us)}, {"error", proof.error()}, {"rounds", proof.rounds}, {"left_out", proof.left_out}};
}

Proof proof_of(const JsonInput& in) {
  Proof proof;
  proof.created = in.at("created").text(), proof.device = in.at("device").text(), proof.name = in.at("name").text();
  proof.versions = versions_of(in.at("versions"));  // checks of older versions have none
  proof.edits = in.at("edits").text(), proof.changes = in.at("changes").text();
  proof.before_us = interval_of(in.required("before")), proof.predicted_us = interval_of(in.required("predicted")), proof.after_us = interval_of(in.required("measured"));
  proof.rounds = static_cast<int>(in.at("rounds").whole(0, 0, 1000)), proof.left_out = static_cast<int>(in.at("left_out").whole(0, 0, 1000));
  return proof;
}

}  // namespace

ProofVersions versions_of(const prof::RunSummary& run) {
  const nlohmann::json machine = parse_json_or_null(run.machine);
  const auto said = [&](const char* key) {
    const auto at = machine.find(key);
    return at != machine.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  ProofVersions versions{version(), said("driver"), said("runtime"), run.said("program_torch")};
  if (const std::string cuda = run.said("program_torch_cuda"); !cuda.empty()) versions.cuda = cuda == "no" ? "" : cuda;
  return versions;
}

std::string versions_text(const ProofVersions& versions) {
  std::string text;
  for (const VersionName& one : kVersions)
    if (const std::string& version = versions.*one.version; !version.empty()) text += (text.empty() ? "" : ", ") + std::string(one.name) + " " + version;
  return text;
}

ChosenEdits choices_of(const RunSpec& before, const std::vector<prof::Edit>& edits, bool cuda) {
  ChosenEdits chosen{before, {}, {}};
  for (const prof::Edit& edit : edits) {
    const EditChoice* choice = choice_of(edit);
    if (!choice) return {before, {}, "\"" + edit.text + "\" is no setting of a training, so it cannot be checked."};
    set_field(chosen.spec, choice->key, choice->value);
    if (edit.kind == prof::EditKind::OneGraph) chosen.spec.exec.graph_steps = 1;
  }
  chosen.changes = diff(before, chosen.spec);
  if (chosen.changes.empty()) chosen.refusal = "The training has these settings already.";
  else if (const auto reason = why_invalid(chosen.spec, cuda)) chosen.refusal = reason->text;
  return chosen;
}

std::optional<std::string> edits_between(const RunSpec& before, const RunSpec& after) {
  std::string edits;
  RunSpec reached = before;
  for (const EditChoice& choice : kChoices) {
    if (field_text(before, choice.key) == field_text(after, choice.key)) continue;
    if (field_text(after, choice.key) != choice.value) return std::nullopt;
    set_field(reached, choice.key, choice.value);
    if (choice.kind == prof::EditKind::OneGraph) reached.exec.graph_steps = 1;
    edits += (edits.empty() ? "" : "; ") + std::string(choice.edit);
  }
  return edits.empty() || !(reached == after) ? std::nullopt : std::optional(edits);
}

Proof prove(const RunSpec& before, const std::string& edits, const data::Dataset& data, const ProofOptions& options) {
  const ChosenEdits chosen = choices_of(before, prof::parse_edits(edits), device_info().cuda);
  if (!chosen.refusal.empty()) throw Failure(chosen.refusal);
  return prove(before, chosen.spec, edits, data, options);
}

Proof prove(const RunSpec& before, const RunSpec& after, const std::string& edits, const data::Dataset& data, const ProofOptions& options) {
  // Calls are recorded on both sides, as recording slows each one. But CUPTI needs 60 µs for a launch of a graph whose 30 kernels it
  // records, and twice as many in an old process: more than the step takes.
  Proof proof = prove_in_turn(edits, options.rounds, [&] { return recorded_training(before, data, options.seconds); }, [&] { return recorded_training(after, data, options.seconds, true); });
  proof.name = run_name(before), proof.changes = text_of(diff(before, after));
  return proof;
}

std::vector<ProofRound> at_one_pace(std::vector<ProofRound> rounds, size_t wanted) {
  std::ranges::stable_sort(rounds, {}, change_of_pace);
  const auto kept = static_cast<size_t>(std::ranges::count_if(rounds, [](const ProofRound& round) { return change_of_pace(round) <= kOnePace; }));
  rounds.resize(std::min(rounds.size(), std::max(wanted, kept)));
  return rounds;
}

Proof prove_in_turn(const std::string& edits, int rounds, const Recorded& before, const Recorded& after) {
  constexpr size_t kTries = 3;
  const std::vector<prof::Edit> parsed = prof::parse_edits(edits);
  const auto wanted = static_cast<size_t>(rounds);
  const auto predicted = [&] {
    const prof::RunData run = before();
    const prof::WhatIf result = prof::what_if(prof::step_causes(run), run.trace, parsed, 0);
    return ProofRecording{result.measured_us, result.predicted_us};
  };
  std::vector<ProofRound> all;
  Proof proof;
  const auto kept = [&] { return std::ranges::count_if(all, [](const ProofRound& round) { return change_of_pace(round) <= kOnePace; }); };
  ProofRecording earlier = predicted();
  while (all.size() < kTries * wanted && kept() < rounds) {
    const prof::RunData changed = after();
    const ProofRecording later = predicted();
    all.push_back({earlier, later, prof::step_causes(changed).step_us});
    earlier = later;
    proof.device = changed.summary.device.empty() ? "CPU" : changed.summary.device;
    proof.versions = versions_of(changed.summary);
  }
  std::vector<ProofRound> counted = at_one_pace(all, wanted);
  std::ranges::stable_sort(counted, {}, error_of);
  proof.created = prof::utc_text(), proof.edits = edits;
  proof.rounds = static_cast<int>(counted.size()), proof.left_out = static_cast<int>(all.size() - counted.size());
  proof.before_us = over_rounds(counted, [](const ProofRound& round) { return mean_of(round.earlier.step_us, round.later.step_us); });
  proof.predicted_us = over_rounds(counted, predicted_in);
  proof.after_us = over_rounds(counted, [](const ProofRound& round) { return round.measured_us; });
  return proof;
}

fs::path proofs_file() { return runs_folder() / "proofs.jsonl"; }

void keep(const Proof& proof, const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::app);
  out << json_of(proof).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  if (!out.flush()) throw Failure(file.string() + " cannot be written, so the check is not kept. Check that the disk has space and the folder is yours.");
}

std::vector<Proof> kept_proofs(const fs::path& file) {
  std::vector<Proof> proofs;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json json = parse_json_or_null(line);
    if (!json.is_object()) continue;
    try {
      Proof proof = proof_of(JsonInput(json, "proof"));
      if (proof.predicted_us.value > 0 && proof.after_us.value > 0) proofs.push_back(std::move(proof));
    } catch (const Failure&) {  // a line of another version
    }
  }
  return proofs;
}

std::string to_text(const Proof& proof) {
  const auto row = [](const char* name, const Interval& us) { return formatted("{:<11} {} ± {} µs per step\n", name, fixed(us.value, 2), fixed(us.half_width, 2)); };
  return row("before", proof.before_us) + row("predicted", proof.predicted_us) + row("measured", proof.after_us) +
         formatted("{:<11} {} % of the measured time\n{:<11} {}\n{:<11} {}, {} rounds in turn{}\n", "error", signed_fixed(100 * proof.error(), 1), "choices", proof.changes, "device", proof.device, proof.rounds,
                   proof.left_out > 0 ? formatted("; {} left out, as the machine changed its pace", proof.left_out) : "") +
         formatted("{:<11} {}\n", "versions", versions_text(proof.versions));
}

std::string to_json(const Proof& proof) { return json_of(proof).dump(2, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace ws::app

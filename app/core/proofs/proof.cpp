#include "app/core/proofs/proof.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/core/runs/recorded_once.h"
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
  return at == std::end(kChoices) || !edit.name.empty() ? nullptr : at;
}

std::string text_of(const std::vector<FieldChange>& changes) {
  std::string text;
  for (const FieldChange& change : changes) text += (text.empty() ? "" : ", ") + change.key + ": " + change.from + " → " + change.to;
  return text;
}

// The spread between recordings, and at least the noise inside of them.
Interval over_recordings(const std::vector<ProofRecording>& recordings, Interval ProofRecording::* figure) {
  std::vector<double> values;
  double inside = 0;
  for (const ProofRecording& one : recordings) values.push_back((one.*figure).value), inside = std::max(inside, (one.*figure).half_width);
  const auto [least, most] = std::ranges::minmax(values);
  return {median(values), std::max(inside / std::sqrt(static_cast<double>(recordings.size())), 0.5 * (most - least))};
}

constexpr double kOnePace = 1.08;

// Sorted by time.
bool is_one_pace(const std::vector<ProofRecording>& recordings) { return recordings.back().step_us.value <= kOnePace * recordings.front().step_us.value; }

nlohmann::ordered_json json_of(const Interval& us) { return {{"us", us.value}, {"half_width", us.half_width}}; }
Interval interval_of(const JsonInput& in) { return {in.at("us").number(std::nan("")), in.at("half_width").number(0)}; }

nlohmann::ordered_json json_of(const Proof& proof) {
  return {{"version", kJsonVersion}, {"created", proof.created}, {"device", proof.device}, {"name", proof.name}, {"edits", proof.edits}, {"changes", proof.changes}, {"before", json_of(proof.before_us)},
          {"predicted", json_of(proof.predicted_us)}, {"measured", json_of(proof.after_us)}, {"error", proof.error()}, {"rounds", proof.rounds}, {"left_out", proof.left_out}};
}

Proof proof_of(const JsonInput& in) {
  Proof proof;
  proof.created = in.at("created").text(), proof.device = in.at("device").text(), proof.name = in.at("name").text();
  proof.edits = in.at("edits").text(), proof.changes = in.at("changes").text();
  proof.before_us = interval_of(in.required("before")), proof.predicted_us = interval_of(in.required("predicted")), proof.after_us = interval_of(in.required("measured"));
  proof.rounds = static_cast<int>(in.at("rounds").whole(0, 0, 1000)), proof.left_out = static_cast<int>(in.at("left_out").whole(0, 0, 1000));
  return proof;
}

}  // namespace

ChosenEdits choices_of(const RunSpec& before, const std::vector<prof::Edit>& edits, bool cuda) {
  ChosenEdits chosen{before, {}, {}};
  for (const prof::Edit& edit : edits) {
    const EditChoice* choice = choice_of(edit);
    if (!choice) return {before, {}, "\"" + edit.text + "\" is no choice of a training, so it cannot be proved."};
    set_field(chosen.spec, choice->key, choice->value);
    if (edit.kind == prof::EditKind::OneGraph) chosen.spec.exec.graph_steps = 1;
  }
  chosen.changes = diff(before, chosen.spec);
  if (chosen.changes.empty()) chosen.refusal = "The training has these choices already.";
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
  // CUPTI needs 60 µs for a launch of a graph whose 30 kernels it records, and twice as many in an old process: more than the step takes.
  const prof::TraceLevel level = chosen.spec.exec.launch == Launch::Graph ? prof::TraceLevel::Graph : prof::TraceLevel::Full;
  Proof proof = prove_in_turn(edits, options.rounds, [&] { return recorded_training(before, data, options.seconds); }, [&] { return recorded_training(chosen.spec, data, options.seconds, level); });
  proof.name = before.name, proof.changes = text_of(chosen.changes);
  return proof;
}

std::vector<ProofRecording> at_one_pace(std::vector<ProofRecording> recordings, size_t wanted) {
  std::ranges::sort(recordings, {}, [](const ProofRecording& r) { return r.step_us.value; });
  const auto pace_from = [&](auto first) {
    return std::ranges::partition_point(first, recordings.end(), [&](const ProofRecording& r) { return r.step_us.value <= kOnePace * first->step_us.value; });
  };
  for (auto first = recordings.begin(); first != recordings.end(); ++first)
    if (const auto last = pace_from(first); last - first >= static_cast<std::ptrdiff_t>(wanted)) return {first, last};
  recordings.resize(std::min(wanted, recordings.size()));
  return recordings;
}

Proof prove_in_turn(const std::string& edits, int rounds, const Recorded& before, const Recorded& after) {
  constexpr size_t kTries = 3;
  const std::vector<prof::Edit> parsed = prof::parse_edits(edits);
  const auto wanted = static_cast<size_t>(rounds);
  std::vector<ProofRecording> without, with, counted_without, counted_with;
  Proof proof;
  const auto enough = [&] { return without.size() >= wanted && is_one_pace(counted_without) && is_one_pace(counted_with); };
  while (without.size() < kTries * wanted && !enough()) {
    const prof::RunData plain = before(), changed = after();
    const prof::WhatIf predicted = prof::what_if(prof::step_causes(plain), plain.trace, parsed, 0);
    without.push_back({predicted.measured_us, predicted.predicted_us}), with.push_back({prof::step_causes(changed).step_us, {}});
    counted_without = at_one_pace(without, wanted), counted_with = at_one_pace(with, wanted);
    proof.device = changed.summary.device.empty() ? "CPU" : changed.summary.device;
  }
  proof.created = prof::utc_text(), proof.edits = edits;
  proof.rounds = static_cast<int>(std::min(counted_without.size(), counted_with.size()));
  proof.left_out = static_cast<int>(without.size() + with.size() - counted_without.size() - counted_with.size());
  proof.before_us = over_recordings(counted_without, &ProofRecording::step_us), proof.predicted_us = over_recordings(counted_without, &ProofRecording::predicted_us);
  proof.after_us = over_recordings(counted_with, &ProofRecording::step_us);
  return proof;
}

fs::path proofs_file() { return runs_folder() / "proofs.jsonl"; }

void keep(const Proof& proof, const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::app);
  out << json_of(proof).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  if (!out.flush()) throw Failure(file.string() + " cannot be written, so the proof is not kept. Check that the disk has space and the folder is yours.");
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
  const auto row = [](const char* name, const Interval& us) { return formatted("{:<11} {} ± {} µs a step\n", name, fixed(us.value, 2), fixed(us.half_width, 2)); };
  return row("before", proof.before_us) + row("predicted", proof.predicted_us) + row("measured", proof.after_us) +
         formatted("{:<11} {} % of the measured time\n{:<11} {}\n{:<11} {}, {} rounds in turn{}\n", "error", signed_fixed(100 * proof.error(), 1), "choices", proof.changes, "device", proof.device, proof.rounds,
                   proof.left_out > 0 ? formatted("; {} recordings left out, as the machine had another pace", proof.left_out) : "");
}

std::string to_json(const Proof& proof) { return json_of(proof).dump(2, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace ws::app

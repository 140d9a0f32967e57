// Proofs over the choices that edits can say: every rung of a ladder from each slower rung, and random pairs of choices that
// a fixed seed draws. A pair whose edits could change nothing does not count. Each proof has a process of its own, as CUPTI gets
// slower in one that has recorded a hundred trainings. Where a prediction is more than 10 % off, both sides are recorded once more
// into OUT-far-N-before.wsrun and OUT-far-N-after.wsrun. Pairs during which the machine kept no pace are measured again at the end.
// proofs OUT.json [cpu|gpu] [random pairs] [rounds]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "app/core/proofs/proved_predictions.h"
#include "app/core/runs/machine.h"
#include "app/core/runs/recorded_once.h"
#include "app/core/runs/spec_line.h"
#include "profiling/base/failure.h"
#include "profiling/base/process.h"
#include "profiling/base/temporary_folder.h"
#include "profiling/formats/convert.h"

namespace {

using namespace ws;
using nlohmann::ordered_json;

struct Pair {
  RunSpec before, after;
  std::string edits;
};

RunSpec start(bool gpu) {
  RunSpec spec = load_spec("mnist-naive");
  set_field(spec, "exec.device", gpu ? "cuda" : "cpu");
  return spec;
}

RunSpec with(RunSpec spec, const std::vector<std::pair<const char*, const char*>>& choices) {
  for (const auto& [key, value] : choices) set_field(spec, key, value);
  return spec;
}

// Both take memory without a call once training runs: no edit is between them.
bool calls_allocator(const RunSpec& spec) { return spec.exec.allocator != Allocator::Caching && spec.exec.allocator != Allocator::Arena; }

// What leads from a rung to a later one, if edits can say it.
std::string edits_to(const RunSpec& from, const RunSpec& to) {
  if (calls_allocator(to) && from.exec.allocator != to.exec.allocator) return "";
  std::string edits;
  const auto add = [&](bool differs, const char* edit) { if (differs) edits += (edits.empty() ? "" : "; ") + std::string(edit); };
  add(from.exec.sync != to.exec.sync, "no sync");
  add(calls_allocator(from) && !calls_allocator(to), "no allocator calls");
  add(from.exec.launch != to.exec.launch, "one graph launch");
  return edits;
}

std::vector<Pair> ladder(bool gpu) {
  std::vector<RunSpec> rungs{start(gpu)};
  if (gpu) rungs.push_back(with(rungs.back(), {{"exec.allocator", "stream-ordered"}}));
  rungs.push_back(with(rungs.back(), {{"exec.allocator", "caching"}}));
  rungs.push_back(with(rungs.back(), {{"exec.allocator", "arena"}}));
  rungs.push_back(with(rungs.back(), {{"exec.sync", "on-read"}}));
  if (gpu) rungs.push_back(with(rungs.back(), {{"exec.launch", "graph"}, {"exec.graph_steps", "1"}}));
  std::vector<Pair> pairs;
  for (size_t from = 0; from < rungs.size(); ++from)
    for (size_t to = from + 1; to < rungs.size(); ++to)
      if (const std::string edits = edits_to(rungs[from], rungs[to]); !edits.empty()) pairs.push_back({rungs[from], rungs[to], edits});
  return pairs;
}

// The random choices that edits do not change are the same on both sides.
std::vector<Pair> random_pairs(bool gpu, size_t count) {
  std::mt19937 lot(48);
  const auto one_of = [&](std::initializer_list<const char*> values) { return values.begin()[lot() % values.size()]; };
  std::vector<Pair> pairs;
  for (int tries = 0; pairs.size() < count && tries < 10'000; ++tries) {
    RunSpec before = with(start(gpu), {{"exec.allocator", one_of({"direct", "caching", "arena"})}, {"exec.sync", one_of({"every-op", "every-step", "on-read"})}, {"exec.fusion", one_of({"off", "pointwise", "epilogue"})}});
    set_field(before, "train.batch", one_of({"16", "64", "256"}));
    set_field(before, "train.optimizer", one_of({"sgd", "momentum", "adam"}));
    before.model.hidden = lot() % 2 ? std::vector<int64_t>{128} : std::vector<int64_t>{256, 128};
    if (gpu) set_field(before, "exec.loader", one_of({"resident", "pinned", "pageable"}));
    RunSpec after = before;
    if (lot() % 2) set_field(after, "exec.allocator", "arena");
    if (lot() % 2) set_field(after, "exec.sync", "on-read");
    if (gpu && lot() % 3 == 0) set_field(after, "exec.launch", "graph"), set_field(after, "exec.graph_steps", "1");
    if (gpu && before.exec.loader == Loader::Pageable && lot() % 2) set_field(after, "exec.loader", "pinned");
    const auto edits = app::edits_between(before, after);
    if (edits && !why_invalid(before, gpu) && !why_invalid(after, gpu)) pairs.push_back({before, after, *edits});
  }
  return pairs;
}

// proofs --one BEFORE AFTER EDITS ROUNDS FILE FAR
int prove_one(const std::vector<std::string>& words) {
  const RunSpec before = parse_spec(words[1]), after = parse_spec(words[2]);
  constexpr double kSeconds = 0.2, kFar = 0.1;
  try {
    const data::Dataset data = data::load(before.data);
    const app::Proof proof = app::prove(before, after, words[3], data, {.seconds = kSeconds, .rounds = std::stoi(words[4])});
    app::keep(proof, words[5]);
    if (std::abs(proof.error()) <= kFar) return 0;
    prof::export_run(app::recorded_training(before, data, kSeconds), words[6] + "-before.wsrun");
    prof::export_run(app::recorded_training(after, data, kSeconds, true), words[6] + "-after.wsrun");
  } catch (const Failure& failure) {
    std::printf("%s", failure.what());
    return 1;
  }
  return 0;
}

class Proofs {
 public:
  Proofs(std::filesystem::path out, int rounds) : out_(std::move(out)), rounds_(rounds) {}

  std::vector<app::Proof> proofs;

  void add(const char* list, const Pair& pair) {
    const auto far = out_.parent_path() / (out_.stem().string() + "-far-" + std::to_string(proofs.size()));
    auto [proof, row] = carry_out(pair, far);
    if (proof && !kept_pace(*proof)) unsteady_.push_back({list, pair, json_[list].size(), proofs.size(), far});
    if (proof) proofs.push_back(std::move(*proof));
    json_[list].push_back(std::move(row));
    write();
  }

  // Where the machine changed its pace in nearly all rounds, the pair is measured once more, and this counts.
  void repeat_unsteady() {
    for (const Unsteady& one : unsteady_) {
      auto [proof, row] = carry_out(one.pair, one.far);
      if (!proof) continue;
      row["repeated"] = true;
      proofs[one.proof] = std::move(*proof), json_[one.list][one.row] = std::move(row);
      write();
    }
  }

 private:
  struct Unsteady {
    const char* list;
    Pair pair;
    size_t row, proof;
    std::filesystem::path far;
  };

  bool kept_pace(const app::Proof& proof) const { return proof.left_out < 2 * rounds_; }

  // `far`: where to keep recordings of a prediction that is far off
  std::pair<std::optional<app::Proof>, ordered_json> carry_out(const Pair& pair, const std::filesystem::path& far) const {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "proof.jsonl").string();
    const CommandOutput done = output_of({"/proc/self/exe", "--one", spec_text(pair.before), spec_text(pair.after), pair.edits, std::to_string(rounds_), file, far.string()});
    const std::vector<app::Proof> kept = app::kept_proofs(file);
    if (!done.text.empty() || kept.empty()) std::printf("%s: %s\n", pair.edits.c_str(), done.text.c_str());
    const ordered_json spec = app::spec_line(pair.before);
    if (kept.empty()) return {std::nullopt, {{"edits", pair.edits}, {"failed", done.text}, {"spec", spec}}};
    const app::Proof& proof = kept.front();
    std::printf("%8.2f -> predicted %8.2f measured %8.2f  %+6.1f %%  %s\n", proof.before_us.value, proof.predicted_us.value, proof.after_us.value, 100 * proof.error(), pair.edits.c_str());
    std::fflush(stdout);
    ordered_json row = ordered_json::parse(app::to_json(proof));
    row["spec"] = spec;
    return {proof, row};
  }

  // After each row, so that a program that is stopped leaves what it has.
  void write() {
    const app::ProofErrors errors = app::errors_of(proofs);
    json_["errors"] = {{"proofs", errors.proofs}, {"median", errors.median}, {"within_10_percent", errors.within_10_percent}, {"worst", errors.worst}};
    std::ofstream(out_) << json_.dump(1) << "\n";
  }

  std::filesystem::path out_;
  int rounds_;
  ordered_json json_{{"program", "tests/bench/proofs"}, {"machine", app::machine_json()}, {"ladder", ordered_json::array()}, {"random", ordered_json::array()}};
  std::vector<Unsteady> unsteady_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "proofs OUT.json [cpu|gpu] [random pairs] [rounds]\n");
    return 2;
  }
  if (argc == 8 && std::string(argv[1]) == "--one") return prove_one({argv + 1, argv + argc});
  const bool gpu = argc > 2 && std::string(argv[2]) == "gpu";
  const size_t count = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 40;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 3;
  Proofs all(argv[1], rounds);
  for (const Pair& pair : ladder(gpu)) all.add("ladder", pair);
  const size_t of_ladder = all.proofs.size();
  for (const Pair& pair : random_pairs(gpu, 4 * count))
    if (all.proofs.size() < of_ladder + count) all.add("random", pair);
  all.repeat_unsteady();
  std::printf("%s\n", app::errors_text(app::errors_of(all.proofs)).c_str());
  return 0;
}

#include "app/core/proofs/proved_predictions.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/base/text.h"
#include "profiling/causes/edits.h"

namespace ws::app {
namespace {

std::vector<Proof> of_kinds(const std::vector<Proof>& proofs, const std::set<std::string>& kinds) {
  std::vector<Proof> such;
  std::ranges::copy_if(proofs, std::back_inserter(such), [&](const Proof& proof) { return kinds.contains(kind_of_edits(proof.edits)); });
  return such;
}

std::string count_of(size_t proofs) { return std::to_string(proofs) + (proofs == 1 ? " check" : " checks"); }

// "on an NVIDIA H200"
std::string on_device(const std::vector<Proof>& proofs) {
  const std::string& device = proofs.front().device;
  const bool one = std::ranges::all_of(proofs, [&](const Proof& proof) { return proof.device == device; });
  if (!one) return "on several GPUs";
  return (device.starts_with("NVIDIA") ? "on an " : "on ") + device;
}

// `where`: "on this machine"
std::string off_in(const std::vector<Proof>& proofs, const std::string& where, bool with_worst = true) {
  const ProofErrors errors = errors_of(proofs);
  const std::string off = errors.proofs == 1 ? percent(errors.worst) : "typically " + percent(errors.median) + (with_worst ? ", at most " + percent(errors.worst) : "");
  return off + " off in " + count_of(proofs.size()) + " " + where;
}

std::vector<Proof> of_programs(std::vector<Proof> proofs, CheckedPrograms of) {
  if (of != CheckedPrograms::All) std::erase_if(proofs, [of](const Proof& proof) { return proof.of_program() != (of == CheckedPrograms::Programs); });
  return proofs;
}

std::vector<Proof> shipped_proofs() {
  std::vector<Proof> all;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(resources_folder() / "proofs", none))
    for (Proof& proof : kept_proofs(entry.path())) all.push_back(std::move(proof));
  return all;
}

}  // namespace

ProofErrors errors_of(const std::vector<Proof>& proofs) {
  ProofErrors errors;
  std::vector<double> each;
  for (const Proof& proof : proofs) each.push_back(std::abs(proof.error()));
  if (each.empty()) return errors;
  errors.proofs = each.size(), errors.median = median(each), errors.worst = std::ranges::max(each);
  errors.within_10_percent = static_cast<size_t>(std::ranges::count_if(each, [](double error) { return error <= 0.1; }));
  return errors;
}

std::string errors_text(const ProofErrors& errors) {
  if (errors.proofs == 0) return {};
  return "typically " + percent(errors.median) + " off, " + std::to_string(errors.within_10_percent) + " of " + std::to_string(errors.proofs) + " within 10 %, worst " + percent(errors.worst);
}

std::string kind_of_edits(const std::string& edits) try {
  std::set<prof::EditKind> kinds;
  for (const prof::Edit& edit : prof::parse_edits(edits)) kinds.insert(edit.kind);
  std::string kind;
  for (const prof::EditKind one : kinds) kind += (kind.empty() ? "" : "; ") + prof::edit_kind_name(one);
  return kind;
} catch (const Failure&) {  // of another version
  return edits;
}

std::string ProvedPredictions::where() const {
  if (any_here()) return "on this machine";
  return shipped_.empty() ? "" : on_device(shipped_) + ", none on this machine";
}

std::vector<ProvedKind> ProvedPredictions::by_kind() const {
  std::vector<ProvedKind> kinds;
  for (const Proof& proof : proofs()) {
    const std::string kind = kind_of_edits(proof.edits);
    if (std::ranges::find(kinds, kind, &ProvedKind::kind) == kinds.end()) kinds.push_back({kind, errors_of(of_kinds(proofs(), {kind}))});
  }
  std::ranges::stable_sort(kinds, std::ranges::greater{}, [](const ProvedKind& one) { return one.errors.proofs; });
  return kinds;
}

CheckedPrograms programs_like(const prof::RunSummary& run) { return run.spec.empty() ? CheckedPrograms::Programs : CheckedPrograms::Trainings; }

ProvedPredictions::ProvedPredictions(std::vector<Proof> here, std::vector<Proof> shipped, CheckedPrograms of)
    : here_(of_programs(std::move(here), of)), shipped_(of_programs(std::move(shipped), of)), of_(of) {}

std::string ProvedPredictions::text_of(const std::string& kind, bool with_worst) const {
  const std::vector<Proof> here = of_kinds(here_, {kind}), shipped = of_kinds(shipped_, {kind});
  if (!here.empty()) return off_in(here, "on this machine", with_worst);
  return shipped.empty() ? "not checked yet" : off_in(shipped, on_device(shipped), with_worst);
}

std::string ProvedPredictions::off_text(const std::string& kind) const { return text_of(kind, true); }
std::string ProvedPredictions::brief_text(const std::string& kind) const { return text_of(kind, false); }

std::string ProvedPredictions::checked_text(const std::set<std::string>& kinds) const {
  const std::vector<Proof> here = of_kinds(here_, kinds), such = here.empty() ? of_kinds(shipped_, kinds) : here;
  const std::string of = of_ == CheckedPrograms::All ? "" : of_ == CheckedPrograms::Programs ? " of a recorded program" : " of a training";
  if (such.empty()) return "no such prediction" + of + " has been checked yet";
  std::set<std::string> checked;
  for (const Proof& proof : such) checked.insert(kind_of_edits(proof.edits));
  return (checked == kinds ? "such predictions" : "where checked, such predictions") + of + " were " + off_in(such, here.empty() ? on_device(such) : "on this machine");
}

std::string known_text(const Interval& step_us) {
  const double share = step_us.half_width / step_us.value;
  return share > 0 ? "The median step is known to ± " + percent(share, share < 0.01 ? 1 : 0) + " (95 % interval). " : "";
}

ProvedPredictions proved_predictions(CheckedPrograms of) { return {kept_proofs(proofs_file()), shipped_proofs(), of}; }

}  // namespace ws::app

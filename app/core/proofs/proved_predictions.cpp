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
std::string off_text(const std::vector<Proof>& proofs, const std::string& where) {
  return "typically " + percent(errors_of(proofs).median) + " off in " + count_of(proofs.size()) + " " + where;
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
  std::string kind;
  for (const prof::Edit& edit : prof::parse_edits(edits)) {
    const std::string name = prof::edit_kind_name(edit.kind);
    if (!kind.empty() && kind != name) return "several edits";
    kind = name;
  }
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

std::string ProvedPredictions::checked_text(const std::string& kind) const {
  const std::vector<Proof> here = of_kinds(here_, {kind}), shipped = of_kinds(shipped_, {kind});
  if (!here.empty()) return kind + ": " + off_text(here, "on this machine");
  return kind + ": " + (shipped.empty() ? "not checked yet" : off_text(shipped, on_device(shipped)));
}

std::string ProvedPredictions::checked_text(const std::set<std::string>& kinds) const {
  const std::vector<Proof> here = of_kinds(here_, kinds), such = here.empty() ? of_kinds(shipped_, kinds) : here;
  if (such.empty()) return "such predictions are not checked yet";
  std::set<std::string> checked;
  for (const Proof& proof : such) checked.insert(kind_of_edits(proof.edits));
  return (checked == kinds ? "such predictions were " : "where checked, such predictions were ") + off_text(such, here.empty() ? on_device(such) : "on this machine");
}

std::string known_text(const Interval& step_us) {
  const double share = step_us.half_width / step_us.value;
  return share > 0 ? "The step time of this run is known to ± " + percent(share, share < 0.01 ? 1 : 0) + ". " : "";
}

std::string ProvedPredictions::note(const Interval& step_us, const std::set<std::string>& kinds) const {
  return known_text(step_us) + with_capital(checked_text(kinds)) + ".";
}

ProvedPredictions proved_predictions() { return {kept_proofs(proofs_file()), shipped_proofs()}; }

}  // namespace ws::app

#include "app/core/proofs/proved_predictions.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/base/text.h"
#include "profiling/causes/what_if.h"

namespace ws::app {
namespace {

std::vector<Proof> of_kind(const std::vector<Proof>& proofs, const std::string& kind) {
  std::vector<Proof> such;
  std::ranges::copy_if(proofs, std::back_inserter(such), [&](const Proof& proof) { return kind_of_edits(proof.edits) == kind; });
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

// "off by 4.0 % at the median, here 40.0 µs". `step_us`: the predicted step; 0: none.
std::string off_text(const std::vector<Proof>& proofs, double step_us) {
  const double median = errors_of(proofs).median;
  return "off by " + percent(median) + " at the median" + (step_us > 0 ? ", here " + time_text(median * step_us) : "");
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
  return "median error " + percent(errors.median) + ", " + std::to_string(errors.within_10_percent) + " of " + std::to_string(errors.proofs) + " within 10 %, worst " + percent(errors.worst);
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
    if (std::ranges::find(kinds, kind, &ProvedKind::kind) == kinds.end()) kinds.push_back({kind, errors_of(of_kind(proofs(), kind))});
  }
  std::ranges::stable_sort(kinds, std::ranges::greater{}, [](const ProvedKind& one) { return one.errors.proofs; });
  return kinds;
}

std::string ProvedPredictions::quote(const std::string& kind, double step_us) const {
  if (const std::vector<Proof> such = of_kind(here_, kind); !such.empty())
    return "such predicted steps were " + off_text(such, step_us) + " (" + count_of(such.size()) + " on this machine)";
  if (const std::vector<Proof> such = of_kind(shipped_, kind); !such.empty())
    return "such predicted steps were " + off_text(such, step_us) + " (" + count_of(such.size()) + " " + on_device(such) + ", none on this machine)";
  if (proofs().empty()) return "no prediction has been checked yet";
  return "such predictions are not checked yet; others were " + off_text(proofs(), step_us) + " (" + count_of(proofs().size()) + " " + where() + ")";
}

std::string ProvedPredictions::quote(const Interval& saves_us, double step_us, const std::string& kind) const {
  std::string saving = saving_text(saves_us);
  saving[0] = 'S';
  return saving + ". " + with_noise(saves_us.half_width > 0, quote(kind, step_us)) + ".";
}

std::string ProvedPredictions::quote(const std::set<std::string>& kinds) const {
  if (proofs().empty()) return "no prediction has been checked yet";
  std::string parts, missing;
  std::set<std::string> not_proved = kinds;
  for (const auto& [kind, errors] : by_kind())
    if (not_proved.erase(kind) > 0) parts += (parts.empty() ? "" : ", ") + percent(errors.median) + " (" + kind + ")";
  const std::string in_checks = any_here() ? " in checks on this machine" : " in checks " + on_device(shipped_);
  if (parts.empty()) return "such predictions are not checked yet; others were typically off by " + percent(errors_of(proofs()).median) + in_checks;
  for (const std::string& kind : not_proved) missing += (missing.empty() ? "; not checked yet: " : ", ") + kind;
  return "predicted steps were typically off by " + parts + in_checks + missing;
}

std::string with_noise(bool noise, std::string quote) {
  if (noise) return "± shows how much the steps of this run differ. It leaves out the error of the prediction: " + quote;
  quote[0] = static_cast<char>(std::toupper(quote[0]));
  return quote;
}

ProvedPredictions proved_predictions() { return {kept_proofs(proofs_file()), shipped_proofs()}; }

std::string saving_text(const Interval& us) {
  const double most = us.value + us.half_width;
  if (!(most > 0)) return "saves nothing";
  if (us.value < us.half_width) return "saves less than " + prof::interval_text({most, 0}) + " per step";  // the interval holds 0
  return "saves " + prof::interval_text(us) + " per step";
}

}  // namespace ws::app

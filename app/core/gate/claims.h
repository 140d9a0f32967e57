// Claims about a run that can be checked: "median step < 500 us", "kernels per step == 20", "share(communication) < 10%".
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "profiling/trace/run_data.h"

namespace ws::app {

enum class Truth : uint8_t { True, False, CannotTell };
const char* truth_name(Truth truth);  // "true", "false", "cannot tell"

struct CheckedClaim {
  std::string claim;   // as written
  Truth truth = Truth::CannotTell;
  std::string figure;  // "269.4 ± 61.8 µs < 500.0 µs"
  std::string place;   // where the figures stand in the run
  std::string reason;  // why there is no answer; empty otherwise
};

// Checks claims about one run. What they need is computed once.
class ClaimChecker {
 public:
  explicit ClaimChecker(const prof::RunData& run);
  ~ClaimChecker();
  // Throws Failure, with the place in the text, if the claim is not one.
  CheckedClaim check(const std::string& claim);

 private:
  struct Figures;
  std::unique_ptr<Figures> figures_;
};

std::string claim_help();  // the measures, units and operators, one a line
std::string to_text(const std::vector<CheckedClaim>& claims);
std::string to_json(const std::vector<CheckedClaim>& claims);

}  // namespace ws::app

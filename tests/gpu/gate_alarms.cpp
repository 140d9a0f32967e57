// How often the gate sees a difference where there is none, with times of this machine's GPU: each gate compares a network with
// itself, bound twice. Prints a line a gate.
//   gate_alarms [OUT.json] [gates] [percent by which the second one's times are longer]
#include <algorithm>
#include <cstdlib>

#include "app/core/gate/gate.h"
#include "profiling/base/clock.h"
#include "tests/gpu/timed_case.h"

namespace ws::test {
namespace {

constexpr double kSecondsEach = 0.03;

std::vector<Case> all_cases() {
  const auto eager = [](Allocator allocator) {
    RunSpec spec = network({128}, 64, Precision::Fp32);
    spec.exec.launch = Launch::Eager, spec.exec.graph_steps = 1, spec.exec.allocator = allocator;
    return spec;
  };
  RunSpec pinned = eager(Allocator::Arena);
  pinned.exec.loader = Loader::Pinned;
  return {{"graph", network({128}, 64, Precision::Tf32)}, {"eager", eager(Allocator::Arena)}, {"direct allocation", eager(Allocator::Direct)}, {"pinned rows", pinned}, {"large batch", network({1024, 1024}, 4096, Precision::Bf16)}};
}

// A difference that is as large as the limit is neither within it nor beyond.
double limit_for(double planted) { return planted > 0 ? std::min(kUsualLimit, planted / 2) : kUsualLimit; }

Json gate_row(const std::string& name, TimedCase& first, TimedCase& second, double planted, unsigned seed) {
  const auto measure = [&](bool b) { return app::GateMeasurement{(b ? second : first).measure(kSecondsEach) * (b ? 1 + planted : 1), 0, {}}; };
  const app::GateResult result = app::run_gate({.limit = limit_for(planted), .seed = seed}, measure, prof::steady_seconds);
  const Json whole = Json::parse(app::to_json(result));
  Json row{{"case", name}, {"first_us", result.median_a}, {"second_us", result.median_b}};
  for (const char* key : {"verdict", "change", "pairs", "used", "left_out"}) row[key] = whole[key];
  return row;
}

int run(const std::string& out, int gates, double planted) {
  const DeviceInfo& device = device_info();
  if (!device.cuda) {
    std::printf("%s\n", device.why_not.c_str());
    return 0;
  }
  Json report{{"gpu", device.name}, {"gates", gates}, {"planted", planted}, {"limit", limit_for(planted)}};
  std::map<std::string, int> verdicts;
  const std::vector<Case> cases = all_cases();
  for (const Case& c : cases) {
    TimedCase first(c.spec, 1), second(c.spec, 1);
    for (int i = 0; i < gates / static_cast<int>(cases.size()); ++i) {
      const Json row = gate_row(c.name, first, second, planted, static_cast<unsigned>(i + 1));
      ++verdicts[row["verdict"].get<std::string>()];
      std::printf("%-18s %-13s after %d pairs\n", c.name.c_str(), row["verdict"].get<std::string>().c_str(), row["pairs"].get<int>());
      report["rows"].push_back(row);
    }
  }
  report["verdicts"] = verdicts;
  for (const auto& [verdict, count] : verdicts) std::printf("%d %s\n", count, verdict.c_str());
  if (!out.empty()) std::ofstream(out) << report.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace ws::test

int main(int argc, char** argv) {
  try {
    return ws::test::run(argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 100, argc > 3 ? std::atof(argv[3]) / 100 : 0);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}

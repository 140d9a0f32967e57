// Times persistent kernels beside CUDA graphs on this machine, both in turn, and prints JSON.
//   persistent_times [OUT.json] [only: part of a case's name]
#include "profiling/annotate/stamps.h"
#include "tests/gpu/timed_case.h"

namespace ws::test {
namespace {

constexpr int64_t kWholeSetChunk = 1000;  // steps

// The same while somebody looks inside: stamps in the first steps of each launch.
void measure_stamped(TimedCase& side, int64_t steps) {
  prof::StampBoard& board = prof::StampBoard::instance();
  board.want(steps);
  side.measure();
  board.want(0);
  board.take();
}

TimedCase side(RunSpec spec, Launch launch) {
  spec.exec.launch = launch;
  return TimedCase(spec, kWholeSetChunk);
}

Json json_of(TimedCase& side) {
  Json out = side.times();
  out["bind_seconds"] = side.bind_seconds();
  out["first_loss"] = side.first_loss(), out["last_loss"] = side.last_loss();
  return out;
}

Json measure(const Case& c) {
  TimedCase graph = side(c.spec, Launch::Graph), persistent = side(c.spec, Launch::Persistent),
            some = side(c.spec, Launch::Persistent), many = side(c.spec, Launch::Persistent);
  for (TimedCase* stamped : {&some, &many}) measure_stamped(*stamped, 16), stamped->forget();  // compiles
  for (int i = 0; i < kRepeats; ++i) {
    graph.measure(), persistent.measure();
    measure_stamped(some, 16), measure_stamped(many, 64);
  }
  Json row{{"case", c.name}, {"graph", json_of(graph)}, {"persistent", json_of(persistent)}};
  row["stamps in 16 steps of a launch"] = some.times(), row["stamps in 64 steps of a launch"] = many.times();
  for (const std::string& note : persistent.executor().notes())
    if (!note.empty()) row["persistent"]["note"] = note;
  const auto number = [&](const char* who, const char* what) { return row[who][what].get<double>(); };
  std::printf("%-36s graph %7.2f  persistent %6.2f (%.2f to %.2f), stamped %.2f %.2f us/step, bind %.2f s; last loss "
              "%.5f %.5f\n",
              c.name.c_str(), number("graph", "us_per_step"), number("persistent", "us_per_step"),
              number("persistent", "fastest"), number("persistent", "slowest"),
              number("stamps in 16 steps of a launch", "us_per_step"),
              number("stamps in 64 steps of a launch", "us_per_step"), number("persistent", "bind_seconds"),
              number("graph", "last_loss"), number("persistent", "last_loss"));
  return row;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  cases.push_back({"iris 4-5-3 full fp32", iris()});
  for (const Precision p : {Precision::Tf32, Precision::Fp16, Precision::Bf16, Precision::Fp32})
    cases.push_back({"mnist 784-128-10 b64 " + std::string(to_string(p)), network({128}, 64, p)});
  for (const Precision p : {Precision::Tf32, Precision::Fp16})
    cases.push_back({"mnist 784-128-10 b128 " + std::string(to_string(p)), network({128}, 128, p)});
  cases.push_back({"mnist 784-128-10 b512 tf32", network({128}, 512, Precision::Tf32)});
  for (const Precision p : {Precision::Tf32, Precision::Bf16})
    cases.push_back({"mnist 784-128-10 full " + std::string(to_string(p)), network({128}, 0, p)});
  for (const Optimizer o : {Optimizer::Momentum, Optimizer::Adam}) {
    RunSpec spec = network({128}, 64, Precision::Tf32);
    spec.train.optimizer = o;
    cases.push_back({"mnist 784-128-10 b64 tf32 " + std::string(to_string(o)), spec});
  }
  RunSpec smooth = network({128}, 64, Precision::Tf32);
  smooth.model.activation = Activation::Tanh;
  cases.push_back({"mnist 784-128-10 b64 tf32 tanh", smooth});
  RunSpec blobs = network({16, 16}, 64, Precision::Fp32);
  blobs.data.name = "blobs";
  cases.push_back({"blobs 2-16-16-3 b64 fp32", blobs});
  RunSpec deep = network({784, 784, 784, 784}, 64, Precision::Tf32);
  deep.model.bias = false;
  cases.push_back({"mnist 784x5-10 b64 tf32", deep});
  for (const int64_t w : {16, 128, 1024})
    cases.push_back({"mnist 784-w-w-w-10 b32 fp16 w" + std::to_string(w), network({w, w, w}, 32, Precision::Fp16)});
  cases.push_back({"mnist 784-w-w-w-10 b32 tf32 w1024", network({1024, 1024, 1024}, 32, Precision::Tf32)});
  for (const int64_t points : {1000, 50'000, 5'000'000})
    cases.push_back({"line " + std::to_string(points), line(points)});
  return cases;
}

}  // namespace
}  // namespace ws::test

int main(int argc, char** argv) { return ws::test::time_cases(argc, argv, ws::test::all_cases, ws::test::measure); }

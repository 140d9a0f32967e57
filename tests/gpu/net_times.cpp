// Times a training step of the convolutional networks of the presets on this machine, and prints JSON. The pictures are
// random: what a step costs does not depend on them. tests/peers/nets_torch.py times the same networks in PyTorch.
//   net_times [OUT.json] [only: part of a case's name]
#include "tests/gpu/timed_case.h"
#include "tests/support/small_data.h"

namespace ws::test {
namespace {

constexpr int64_t kPictures = 10240;
constexpr const char* kDigits = "conv 3x3 16 | relu | maxpool 2 | conv 3x3 32 | relu | maxpool 2 | linear";
constexpr const char* kResidual =
    "conv 3x3 64 bias off | batchnorm | relu | conv 3x3 128 bias off | batchnorm | relu | maxpool 2 | "
    "residual(2 x (conv 3x3 128 bias off | batchnorm | relu)) | "
    "2 x (conv 3x3 256 bias off | batchnorm | relu | maxpool 2) | "
    "residual(2 x (conv 3x3 256 bias off | batchnorm | relu)) | maxpool 4 | linear";

const data::Dataset& pictures(bool coloured) {
  static const data::Dataset digits = random_pictures(kPictures, 28, 1, 10), colours = random_pictures(kPictures, 32, 3, 10);
  return coloured ? colours : digits;
}

Json measure(const Case& c) {
  TimedCase timed(c.spec, 1, pictures(c.spec.model.layers == kResidual));
  for (int i = 0; i < kRepeats; ++i) timed.measure();
  Json row{{"case", c.name}};
  row.update(timed.times());
  row["ops"] = timed.plan().ops.size(), row["bind_seconds"] = timed.bind_seconds();
  row["first_loss"] = timed.first_loss(), row["last_loss"] = timed.last_loss();
  std::printf("%-34s %9.2f us/step  (%.2f to %.2f), %zu ops, loss %.4f to %.4f\n", c.name.c_str(),
              row["us_per_step"].get<double>(), row["fastest"].get<double>(), row["slowest"].get<double>(),
              timed.plan().ops.size(), static_cast<double>(timed.first_loss()), static_cast<double>(timed.last_loss()));
  return row;
}

Case step_of(const std::string& name, const char* layers, int64_t batch, Precision precision) {
  RunSpec spec = network({}, batch, precision);
  spec.model.layers = layers;
  spec.train.optimizer = Optimizer::Momentum;
  spec.exec.graph_steps = 10;
  return {name + " b" + std::to_string(batch) + " " + std::string(to_string(precision)), spec};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Precision p : {Precision::Bf16, Precision::Fp16, Precision::Tf32, Precision::Fp32}) {
    for (const int64_t batch : {64, 512}) cases.push_back(step_of("mnist cnn", kDigits, batch, p));
    cases.push_back(step_of("pictures residual", kResidual, 512, p));
  }
  return cases;
}

}  // namespace
}  // namespace ws::test

int main(int argc, char** argv) { return ws::test::time_cases(argc, argv, ws::test::all_cases, ws::test::measure); }

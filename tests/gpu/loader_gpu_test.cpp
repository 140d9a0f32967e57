// The three loaders, with and without graphs, bring the same rows.
#include "tests/gpu/executor_support.h"

namespace ws::test {
namespace {

TEST(LoaderGpu, EveryLoaderTrainsOnTheSameRows) {
  NEEDS_GPU();
  for (const int64_t features : {3, 28, 64})  // rows of 12 bytes begin at odd addresses
    for (const bool classes : {true, false}) {
      Training t;
      t.spec.model.hidden = {16};
      t.spec.model.loss = classes ? LossKind::CrossEntropy : LossKind::MeanSquared;
      t.batch = 50;
      t.epochs = 3;
      t.data = random_data(333, features, 7, classes);
      const Outcome want = train_on_oracle(t);
      for (const Loader loader : {Loader::Resident, Loader::Pinned, Loader::Pageable})
        for (const Launch launch : kLaunches)
          for (const Precision precision : {Precision::Fp32, Precision::Fp16})
            for (const int64_t graph_steps : {1, 4}) {
              t.spec.exec.loader = loader, t.spec.exec.launch = launch, t.spec.exec.precision = precision;
              t.spec.exec.graph_steps = graph_steps;
              if (why_invalid(t.spec, true)) continue;
              SCOPED_TRACE(std::string(to_string(loader)) + " " + label(t.spec.exec) + " x" +
                           std::to_string(graph_steps));
              const Outcome got = train_on_gpu(t);
              EXPECT_LT(distance(got, want, t), tolerance(precision));
              expect_same_losses(got, want, tolerance(precision));
            }
    }
}

TEST(LoaderGpu, RowsThatTheLibraryMultiplies) {
  NEEDS_GPU();
  Training t;
  t.spec.model.hidden = {2048};
  t.batch = 512;
  t.data = random_data(1800, 784, 10, true);
  t.epochs = 2;
  const Outcome want = train_on_oracle(t);
  for (const Launch launch : kLaunches)
    for (const int64_t graph_steps : {1, 3}) {
      t.spec.exec.launch = launch, t.spec.exec.graph_steps = graph_steps;
      EXPECT_LT(distance(train_on_gpu(t), want, t), tolerance(Precision::Fp32)) << label(t.spec.exec);
    }
}

}  // namespace
}  // namespace ws::test

// Makes every call of a piece of work fail once.
#pragma once
#include <cuda_runtime_api.h>

#include <set>
#include <string>

#include "engine/cuda/runtime/faults.h"
#include "engine/cuda/runtime/handles.h"
#include "engine/devices/devices.h"
#include "tests/gpu/executor_support.h"

namespace ws::test {

inline Training tiny_training() {
  Training t;
  t.spec.model.hidden = {16};
  t.batch = 20;
  t.data = random_data(70, 8, 4, true);
  return t;
}

// An executor that could run the first step of an epoch; its plan is of `batch` rows, or of the training's.
struct Ready {
  explicit Ready(const Training& t, int64_t batch = 0)
      : model(make_model(t.spec.model, t.data.features, t.data.outputs)), executor(cuda::make_cuda_executor(device_info().name)) {
    executor->load(model, t.data, t.spec);
    executor->set_state(initial_state(model, t.spec));
    bind(t, batch > 0 ? batch : t.batch);
    executor->begin_epoch(shuffled(t.data.train.rows, t.order_seed));
  }
  void bind(const Training& t, int64_t batch) { executor->bind(compile(t.spec, model, batch).plan); }
  void run(int64_t step, int64_t row = 0, float lr = 0.01f) { executor->run(step, row, std::vector<float>{lr}); }

  const Model model;
  const std::unique_ptr<Executor> executor;
};

// A whole life: load, train, evaluate, predict, end.
inline void live(const Training& t) {
  const auto executor = cuda::make_cuda_executor(device_info().name);
  try {
    train_on(*executor, t);
    executor->evaluate(Part::Test);
    executor->predict({t.data.test.x.data(), static_cast<size_t>(t.data.features) * 5}, 5);
  } catch (const Failure&) {  // a failed run is summed up as any other, wherever it failed
    EXPECT_GE(executor->memory().parameter_bytes, 0);
    EXPECT_GE(executor->allocator_calls().allocate, 0);
    throw;
  }
}

inline size_t free_bytes() {
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

// Every checked call of `work` fails once; what it holds goes back, and it can be done again. Says which calls those
// were.
template <class Work>
std::set<std::string> fail_each_call(Work&& work, cudaError_t error) {
  work();  // warm: lazy loading must not look like a leak
  const size_t before = free_bytes();
  cuda::faults::fail_at(0);
  work();
  const int64_t calls = cuda::faults::calls();
  std::set<std::string> failed;
  for (int64_t n = 1; n <= calls; ++n) {
    cuda::faults::fail_at(n, error);
    try {
      work();
    } catch (const Failure& problem) {
      EXPECT_GT(std::string(problem.what()).size(), 10u);
    }
    const std::string hit = cuda::faults::last_hit();
    EXPECT_FALSE(hit.empty()) << "call " << n << " of " << calls << " was not made";
    failed.insert(hit.substr(0, hit.find('(')));
    cuda::faults::fail_at(0);
  }
  const size_t after = free_bytes();
  EXPECT_LE(before - std::min(before, after), size_t{8} << 20) << "device memory leaked";
  EXPECT_NO_THROW(work());
  return failed;
}

inline std::set<std::string> sweep(const Training& t, cudaError_t error) {
  const std::set<std::string> failed = fail_each_call([&] { live(t); }, error);
  EXPECT_GT(failed.size(), 10u);
  return failed;
}

inline Training tiny_line(Launch launch, int64_t points = 1000) {
  Training t;
  t.spec.model.kind = ModelKind::Linear;
  t.spec.model.loss = LossKind::MeanSquared;
  t.spec.exec.launch = launch;
  t.batch = points;
  t.order_seed = 0;
  t.steps_an_epoch = 5;
  t.data = random_data(points, 1, 1, false);
  return t;
}

}  // namespace ws::test

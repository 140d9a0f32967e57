// Another profiler has the driver: ours says whose it is, and the training goes on untraced. Two programs of this,
// since a process is refused once and for all.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include "app/core/runs/traced_training.h"
#include "tests/support/gpu.h"
#include "tests/support/small_data.h"

namespace ws::app {
namespace {

void CUPTIAPI ignore(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

CUptiResult attach(CUpti_SubscriberHandle& subscriber) {
#ifdef OTHER_PROFILER_NAME
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = OTHER_PROFILER_NAME;
  return cuptiSubscribe_v2(&subscriber, ignore, nullptr, &params);
#else
  return cuptiSubscribe(&subscriber, ignore, nullptr);
#endif
}

struct Trained {
  Summary summary;
  std::vector<float> losses;
  size_t gpu_spans = 0, steps = 0;
  std::vector<RunMessage> messages;
  prof::CollectorStatus status;
};

Trained train(prof::TraceLevel level) {
  RunSpec spec;
  spec.exec.device = Device::Cuda;
  spec.model.hidden = {16};
  spec.train.batch = 16, spec.train.epochs = 4;
  RecorderOptions options;
  options.trace.level = level;
  TracedTraining run(spec, options);
  Trained trained;
  trained.summary = run.run(test::random_data(64, 6, 3, true));
  RunUpdate update = run.take();
  for (const StepResult& step : update.steps) trained.losses.push_back(step.loss);
  for (const prof::TraceBatch& batch : update.traces)
    for (const prof::BatchTrack& track : batch.tracks) {
      const bool gpu = track.kind == prof::TrackKind::Stream || track.kind == prof::TrackKind::GraphLaunches ||
                       track.kind == prof::TrackKind::Copies;
      trained.gpu_spans += gpu ? track.spans.size() : 0;
      trained.steps += track.kind == prof::TrackKind::Steps ? track.spans.size() : 0;
    }
  trained.messages = update.messages;
  trained.status = run.trace_status();
  return trained;
}

TEST(OtherProfiler, IsNamedAndTheTrainingGoesOnUntraced) {
  NEEDS_GPU();
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  CUpti_SubscriberHandle other = nullptr;
  ASSERT_EQ(attach(other), CUPTI_SUCCESS);
  const Trained traced = train(prof::TraceLevel::Full);
  EXPECT_EQ(cuptiUnsubscribe(other), CUPTI_SUCCESS) << "it was left alone";
  EXPECT_EQ(traced.summary.status, RunStatus::Finished) << traced.summary.message;
  EXPECT_EQ(traced.summary.steps, 16);
  EXPECT_FALSE(traced.status.gpu);
  std::printf("%s\n", traced.status.sentence.c_str());
  EXPECT_EQ(traced.status.sentence.rfind("Traces the CPU only: another profiler is attached: ", 0), 0u)
      << traced.status.sentence;
#ifdef OTHER_PROFILER_NAME
  EXPECT_NE(traced.status.sentence.find(OTHER_PROFILER_NAME), std::string::npos) << traced.status.sentence;
#endif
  EXPECT_EQ(traced.gpu_spans, 0u);
  EXPECT_GT(traced.steps, 0u) << "the host's steps are still marked";
  EXPECT_NE(std::ranges::find(traced.messages, traced.status.sentence, &RunMessage::text), traced.messages.end()) << "it is in the log";
  EXPECT_EQ(train(prof::TraceLevel::Off).losses, traced.losses);
}

}  // namespace
}  // namespace ws::app

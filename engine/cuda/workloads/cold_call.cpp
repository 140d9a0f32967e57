#include "engine/cuda/workloads/cuda_workloads.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "engine/cuda/runtime/check.h"
#include "profiling/annotate/annotate.h"
#include "profiling/base/clock.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/text.h"

namespace ws::lab {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kVariable = "WARPSIGHT_LAB_COLD";
constexpr std::string_view kNo = "failed: ";  // prefix of the child's answer if its call failed; the reason follows

// Names a recorded call in the trace.
prof::OpTag register_call(const LabSpec& spec, int64_t size) {
  prof::OpInfo op;
  op.name = std::string(to_string(spec.operation)) + " " + std::to_string(size);
  op.detail = std::string(info(Way::GpuCold).label);
  return prof::register_ops({op});
}

struct FirstCall {
  double context_s = 0, first_s = 0, second_s = 0;
};

template <class Work>
double timed(const char* phase, prof::OpTag tag, const Work& work) {
  const auto begin = Clock::now();
  const prof::PhaseScope marked(phase);
  const prof::OpScope op(tag);
  work();
  return prof::seconds_since(begin);
}

FirstCall first_call(const LabSpec& spec, int64_t size) {
  FirstCall out;
  const Inputs inputs = make_inputs(spec, size);
  const prof::OpTag tag = register_call(spec, size);
  std::unique_ptr<Workload> work;
  out.context_s = timed("context", tag, [] { CUDA_CHECK(cudaFree(nullptr)); });  // creates the context
  out.first_s = timed("first call", tag, [&] {
    work = make_first_call(spec, size, inputs);
    work->call();
  });
  timed("second call", tag, [&] { out.second_s = work->call(); });
  return out;
}

FirstCall ask_child(const LabSpec& spec, int64_t size, const std::string& trace) {
  if (std::getenv(kVariable)) throw Failure("first call: this program cannot measure it in a new process");
  nlohmann::json job = to_json(spec);
  job["sizes"] = {size};
  Process::Environment settings{{kVariable, job.dump()}};
  if (!trace.empty()) settings[kChildTrace] = trace;
  const std::string answer = output_of({program_file()}, 0, Process::Output::Captured, settings).text;
  if (answer.starts_with(kNo))
    throw Failure("first call: " + answer.substr(kNo.size(), answer.find('\n') - kNo.size()));
  FirstCall out;
  if (std::sscanf(answer.c_str(), "%lf %lf %lf", &out.context_s, &out.first_s, &out.second_s) != 3)
    throw Failure("first call: the new process ended without a result");
  return out;
}

class ColdWorkload final : public Workload {
 public:
  ColdWorkload(const LabSpec& spec, int64_t size) : spec_(spec), size_(size) { spec_.kernels.clear(); }
  double call() override {
    last_ = ask_child(spec_, size_, trace_);
    return last_.context_s + last_.first_s;
  }
  void cool() override {}  // a fresh process finds nothing in the caches
  void trace_child(const std::string& where) override { trace_ = where; }
  // The child's result stays in the child, so the same kernel runs here.
  double output_at(int64_t index) override {
    if (!warm_) {
      inputs_ = make_inputs(spec_, size_);
      warm_ = make_first_call(spec_, size_, inputs_);
      warm_->call();
    }
    return warm_->output_at(index);
  }
  std::string note() const override {
    return formatted("context {:.0f} ms, first call {:.1f} ms, second {:.3f} ms", last_.context_s * 1e3,
                     last_.first_s * 1e3, last_.second_s * 1e3);
  }

 private:
  LabSpec spec_;
  int64_t size_;
  FirstCall last_;
  std::string trace_;
  Inputs inputs_;
  std::unique_ptr<Workload> warm_;
};

}  // namespace

std::unique_ptr<Workload> make_cold_workload(const LabSpec& spec, int64_t size) {
  return std::make_unique<ColdWorkload>(spec, size);
}

bool run_cuda_cold_call_if_asked() {
  const char* job = std::getenv(kVariable);
  if (!job) return false;
  try {
    const LabSpec spec = lab_spec_from_json(parse_json(job, "first call"));
    const FirstCall call = first_call(spec, spec.sizes.at(0));
    std::printf("%.9g %.9g %.9g\n", call.context_s, call.first_s, call.second_s);
  } catch (const std::exception& failure) {
    std::string reason = failure.what();
    std::ranges::replace(reason, '\n', ' ');
    std::printf("%s%s\n", kNo.data(), reason.c_str());
  }
  return true;
}

}  // namespace ws::lab

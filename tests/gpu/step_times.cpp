// Times the ladder of execution choices and the networks of the race on this machine, and prints JSON.
//   step_times [OUT.json] [only: part of a case's name]
#include "tests/gpu/read_speed.h"
#include "tests/gpu/timed_case.h"

namespace ws::test {
namespace {

// A line is a matter of reading its points: how that compares with reading and nothing else, measured here and now.
void add_bandwidth(Json& row, const Case& c) {
  const int64_t bytes = loaded(c.spec.data).train.rows * 2 * static_cast<int64_t>(sizeof(float));
  const double read = microseconds_to_read(bytes), own = row["us_per_step"];
  row["bytes_read"] = bytes;
  row["gb_per_s"] = 1e-3 * static_cast<double>(bytes) / own;
  row["plain_read_gb_per_s"] = 1e-3 * static_cast<double>(bytes) / read;
  row["share_of_plain_read"] = read / own;
  std::printf("%-44s %9.0f GB/s; a kernel that only reads them %.0f GB/s: %.0f %%\n", "", row["gb_per_s"].get<double>(),
              row["plain_read_gb_per_s"].get<double>(), 100 * read / own);
}

Json measure(const Case& c) {
  TimedCase timed(c.spec, std::max<int64_t>(1, c.spec.exec.graph_steps));
  for (int i = 0; i < kRepeats; ++i) timed.measure();
  Json row{{"case", c.name}};
  row.update(timed.times());
  const AllocatorCalls calls = timed.executor().allocator_calls();
  row["ops"] = timed.plan().ops.size();
  row["peak_bytes"] = timed.executor().memory().peak;
  row["first_loss"] = timed.first_loss(), row["last_loss"] = timed.last_loss();
  row["device_allocations"] = calls.device_allocate, row["plan_allocations"] = calls.allocate;
  std::printf("%-44s %9.2f us/step  (%.2f to %.2f)\n", c.name.c_str(), row["us_per_step"].get<double>(),
              row["fastest"].get<double>(), row["slowest"].get<double>());
  if (c.spec.model.kind == ModelKind::Linear && c.spec.exec.fusion == Fusion::Epilogue) add_bandwidth(row, c);
  return row;
}

RunSpec fused_line(int64_t points, Fusion fusion) {
  RunSpec spec = line(points);
  spec.exec.fusion = fusion;
  return spec;
}

// Each rung changes one thing.
void add_ladder(std::vector<Case>& cases, const std::string& name, RunSpec spec) {
  const auto rung = [&](const char* what) { cases.push_back({"ladder " + name + ": " + what, spec}); };
  spec.exec = ExecSpec{};
  spec.exec.device = Device::Cuda;
  spec.exec.allocator = Allocator::Direct;
  spec.exec.sync = SyncPolicy::EveryOp;
  spec.exec.fusion = Fusion::Off;
  rung("direct");
  spec.exec.allocator = Allocator::Caching;
  rung("+ pool");
  spec.exec.sync = SyncPolicy::OnRead;
  rung("+ no sync");
  spec.exec.fusion = Fusion::Epilogue;
  rung("+ fused");
  spec.exec.launch = Launch::Graph;
  spec.exec.graph_steps = 100;
  spec.exec.allocator = Allocator::Arena;
  rung("+ graph");
}

// One batch on one GPU, a rank's share of it (all that is left to do if exchanging were free), and the batch shared by
// all GPUs; the last cases differ in when the averages are made, and by what.
void add_ranks(std::vector<Case>& cases, const std::string& name, RunSpec spec) {
  const int gpus = device_info().gpus;
  if (gpus < 2) return;
  cases.push_back({"ranks " + name + " 1 GPU", spec});
  RunSpec share = spec;
  share.train.batch /= gpus;
  cases.push_back({"ranks " + name + " 1 GPU with one rank's share", std::move(share)});
  spec.exec.gpus = gpus;
  for (const CommBy by : {CommBy::Nccl, CommBy::Peer})
    for (const Comm comm : {Comm::Bucket, Comm::Layers, Comm::Overlap}) {
      spec.exec.comm = comm, spec.exec.comm_by = by;
      cases.push_back({"ranks " + name + " " + std::to_string(gpus) + " GPUs " + std::string(to_string(comm)) + " " +
                           std::string(to_string(by)),
                       spec});
    }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases{{"iris 4-5-3 full fp32", iris()}};
  for (const int64_t batch : {64, 128, 512, 0})
    cases.push_back({"mnist 784-128-10 b" + std::to_string(batch) + " tf32", network({128}, batch, Precision::Tf32)});
  for (const Precision p : {Precision::Fp32, Precision::Bf16, Precision::Fp16})
    cases.push_back({"mnist 784-128-10 b64 " + std::string(to_string(p)), network({128}, 64, p)});
  RunSpec deep = network({784, 784, 784, 784}, 64, Precision::Tf32);
  deep.model.bias = false;
  cases.push_back({"mnist 784x5-10 b64 tf32", deep});
  for (const Precision p : {Precision::Fp16, Precision::Tf32})
    for (const int64_t w : {16, 128, 1024, 4096})
      cases.push_back({"mnist 784-w-w-w-10 b32 " + std::string(to_string(p)) + " w" + std::to_string(w),
                       network({w, w, w}, 32, p)});
  for (const Fusion fusion : {Fusion::Epilogue, Fusion::Off}) {
    cases.push_back({"line 50k " + std::string(to_string(fusion)), fused_line(50'000, fusion)});
    cases.push_back({"line 5M " + std::string(to_string(fusion)), fused_line(5'000'000, fusion)});
  }
  cases.push_back({"line 50M epilogue", fused_line(50'000'000, Fusion::Epilogue)});
  RunSpec deep_shared = deep;
  deep_shared.train.batch = 1024;
  add_ranks(cases, "784-2048-2048-10 b8192 tf32", network({2048, 2048}, 8192, Precision::Tf32));
  add_ranks(cases, "784-128-10 b1024 tf32", network({128}, 1024, Precision::Tf32));
  add_ranks(cases, "784x5-10 b1024 tf32", deep_shared);
  add_ranks(cases, "784-1024-1024-1024-10 b1024 fp16", network({1024, 1024, 1024}, 1024, Precision::Fp16));
  add_ladder(cases, "mnist b64", network({128}, 64, Precision::Fp32));
  add_ladder(cases, "iris", iris());
  return cases;
}

}  // namespace
}  // namespace ws::test

int main(int argc, char** argv) { return ws::test::time_cases(argc, argv, ws::test::all_cases, ws::test::measure); }

#include "engine/devices/devices.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>

#include "engine/cpu/cpu_executor.h"
#include "engine/cpu/host_ranks.h"
#include "engine/cuda/persistent/residency.h"
#include "engine/executor/ranked_executor.h"
#include "engine/ranks/remote_rank.h"
#include "profiling/base/budget.h"
#ifdef WARPSIGHT_HAVE_CUDA
#include "engine/cuda/executor/cuda_executor.h"
#include "engine/cuda/ranks/nccl_ranks.h"
#include "engine/cuda/ranks/peer_ranks.h"
#endif

namespace ws {
namespace {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "CPU";
}

DeviceInfo ask_device() {
  DeviceInfo info;
#ifdef WARPSIGHT_HAVE_CUDA
  info = cuda::query_device();
#else
  info.why_not = "This build has no CUDA support: it trains on the CPU.";
#endif
  if (!info.cuda) info.name = cpu_name();
  info.cpu_threads = static_cast<int>(std::thread::hardware_concurrency());
  return info;
}

std::string name_of_cpu() { return device_info().cuda ? "CPU" : device_info().name; }

}  // namespace

const DeviceInfo& device_info() {
  static const DeviceInfo info = ask_device();
  return info;
}

bool gpu_lost() {
#ifdef WARPSIGHT_HAVE_CUDA
  return cuda::gpu_lost();
#else
  return false;
#endif
}

bool wants_cuda(const RunSpec& spec) {
  return spec.exec.device == Device::Cuda || (spec.exec.device == Device::Auto && device_info().cuda);
}

int64_t steps_at_once(const RunSpec& spec) {
  const bool graphs = spec.exec.launch == Launch::Graph || spec.exec.launch == Launch::Auto;  // Auto may become a graph
  return graphs && wants_cuda(spec) ? spec.exec.graph_steps : 1;
}

int ranks_of(const RunSpec& spec) {
  const DeviceInfo& device = device_info();
  if (!wants_cuda(spec)) return static_cast<int>(std::max<int64_t>(1, spec.exec.gpus));
  if (spec.exec.gpus > device.gpus)
    throw Failure("exec.gpus asks for " + std::to_string(spec.exec.gpus) + " GPUs and this machine has " +
                  std::to_string(device.gpus) + ".");
  return spec.exec.gpus == 0 ? device.gpus : static_cast<int>(spec.exec.gpus);
}

namespace {

#ifdef WARPSIGHT_HAVE_CUDA
// Averages through peer memory were measured on two and four GPUs: there they are faster than NCCL's for every network.
constexpr int kMostMeasuredPeers = 4;

cuda::Ranks join_gpus(const ExecSpec& exec, int ranks) {
  const bool automatic = exec.comm_by == CommBy::Auto;
  const bool peers = automatic ? ranks <= kMostMeasuredPeers && cuda::peers_have_nvlink(ranks) : exec.comm_by == CommBy::Peer;
  return peers ? cuda::make_peer_ranks(ranks) : cuda::make_nccl_ranks(ranks, exec.comm == Comm::Overlap);
}

std::unique_ptr<Executor> make_cuda(const DeviceInfo& device, int ranks, const ExecSpec& exec) {
  if (!device.cuda) throw Failure(device.why_not);
  if (ranks == 1) return cuda::make_cuda_executor(device.name);
  auto joined = join_gpus(exec, ranks);
  return make_ranked_executor(ranks, joined.group, [&](int rank) {
    return cuda::make_cuda_executor(device.name, std::move(joined.links[static_cast<size_t>(rank)]));
  });
}

// A launcher may show each process its own GPU only, which then has number 0.
int device_of(const RankProcesses& processes) {
  const int gpus = device_info().gpus, local = processes.local_rank();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible && gpus == 1) return 0;
  if (local < gpus) return local;
  throw Failure("this is rank " + std::to_string(local) + " of its host, counted from 0, and the host has " +
                std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs") +
                ". Start one rank for each GPU, or choose exec.device=cpu.");
}

cuda::ProcessRank join_nccl(const RankRequest& request, RankProcesses& processes) {
  if (!device_info().cuda) throw Failure(device_info().why_not);
  if (request.spec.exec.comm_by == CommBy::Peer)
    throw Failure("peer: only GPUs of one process map each other's memory; choose nccl, or start one process for all GPUs.");
  return cuda::make_nccl_rank(request.nccl_id, processes.rank(), processes.count(), device_of(processes),
                              request.spec.exec.comm == Comm::Overlap);
}
#endif

// The ranks of this process, and the processes of other ranks.
class ProcessGroup final : public RankGroup {
 public:
  ProcessGroup(std::shared_ptr<RankGroup> here, RankProcesses& processes)
      : here_(std::move(here)), processes_(processes) {}
  void abandon(const std::string& why) noexcept override {
    here_->abandon(why);
    processes_.abandon(why);
  }
  std::optional<std::chrono::milliseconds> patience() const override { return rank_patience(); }

 private:
  std::shared_ptr<RankGroup> here_;
  RankProcesses& processes_;
};

std::unique_ptr<Executor> make_process_ranks(const RunSpec& spec, RankProcesses& processes) {
  RankRequest request{spec, {}};
  request.spec.exec.device = wants_cuda(spec) ? Device::Cuda : Device::Cpu;
  const auto ranked = [&](const std::shared_ptr<RankGroup>& here, const std::shared_ptr<cpu::RankAverage>& average,
                          const std::function<std::unique_ptr<Executor>()>& own) {
    return make_ranked_executor(processes.count(), std::make_shared<ProcessGroup>(here, processes), [&](int rank) {
      return rank == 0 ? own() : make_remote_rank(processes, rank, average);
    });
  };
#ifdef WARPSIGHT_HAVE_CUDA
  if (wants_cuda(spec)) {
    request.nccl_id = cuda::make_nccl_id();
    const cuda::ProcessRank mine = join_nccl(request, processes);
    prepare_ranks(processes, request);
    return ranked(mine.group, nullptr, [&] { return cuda::make_cuda_executor(device_info().name, mine.connect()); });
  }
#endif
  prepare_ranks(processes, request);
  const auto group = std::make_shared<cpu::HostRanks>(processes.count(), rank_patience());
  return ranked(group, group, [&] { return make_cpu_executor(name_of_cpu(), {group, 0}); });
}

}  // namespace

std::unique_ptr<Executor> make_executor(const RunSpec& spec, RankProcesses* processes) {
  const DeviceInfo& device = device_info();
  if (auto reason = why_invalid(spec, device.cuda)) throw Failure(reason->text);
  if (processes) return make_process_ranks(spec, *processes);
  const int ranks = ranks_of(spec);
#ifdef WARPSIGHT_HAVE_CUDA
  if (wants_cuda(spec)) return make_cuda(device, ranks, spec.exec);
#endif
  const std::string name = name_of_cpu();
  if (ranks == 1) return make_cpu_executor(name);
  const auto group = std::make_shared<cpu::HostRanks>(ranks);
  return make_ranked_executor(ranks, group, [&](int rank) { return make_cpu_executor(name, {group, rank}); });
}

RankWorker::Connect prepare_rank(const RankRequest& request, RankProcesses& processes) {
  if (auto reason = why_invalid(request.spec, device_info().cuda)) throw Failure(reason->text);
#ifdef WARPSIGHT_HAVE_CUDA
  if (wants_cuda(request.spec)) {
    const cuda::ProcessRank mine = join_nccl(request, processes);
    processes.channel(0).when_broken([group = mine.group](const std::string& why) { group->abandon(why); });
    return [mine] { return cuda::make_cuda_executor(device_info().name, mine.connect()); };
  }
#endif
  return [&processes] {
    return make_cpu_executor(name_of_cpu(), {average_through(processes.channel(0)), processes.rank()});
  };
}

FreeMemory free_memory_for(const RunSpec& spec) {
  return {free_memory().value_or(std::numeric_limits<int64_t>::max()), wants_cuda(spec) ? device_info().memory_bytes : 0};
}

std::string persistent_budget(const RunSpec& spec, const Plan& plan, int64_t train_rows) {
  if (spec.exec.launch != Launch::Persistent && spec.exec.launch != Launch::Auto) return {};
  namespace one = cuda::persistent;
  const DeviceInfo& device = device_info();
  const one::Limits limits = device.cuda ? one::limits_of(device) : one::Limits{};
  return one::text(one::place(one::network_of(spec, plan, train_rows), limits));
}

}  // namespace ws

// Stands in for libnccl.so.2: ranks are threads of one process, and "device" memory is host memory. It waits where NCCL
// waits: ncclCommInitRank and ncclCommDestroy for every rank, ncclAllReduce until the other ranks come or the rank aborts.
#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInvalidUsage = 5, kAborted = 3, kAverage = 4, kFirstCustom = 100;

struct Clique {
  std::mutex mutex;
  std::condition_variable wake;
  size_t ranks = 0;
  std::map<int, bool> here;  // by rank
  std::map<int, std::vector<float>> values;
  size_t read = 0, leaving = 0;
  bool aborted = false;
};

std::mutex g_mutex;
std::map<int, std::shared_ptr<Clique>> g_cliques;  // by id
int g_next_id = 1;

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank;
  std::vector<float> shares;  // of custom operations
};

extern "C" {

struct ncclUniqueId {
  char bytes[128];
};

int ncclGetVersion(int* version) {
  const char* wanted = std::getenv("FAKE_NCCL_VERSION");
  *version = wanted ? std::atoi(wanted) : 22105;
  return kSuccess;
}
const char* ncclGetErrorString(int) { return "invalid usage"; }

int ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(g_mutex);
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->bytes + 100, &g_next_id, sizeof g_next_id);  // all of the id must travel
  g_cliques[g_next_id++] = std::make_shared<Clique>();
  return kSuccess;
}

int ncclCommInitRank(ncclComm** comm, int count, ncclUniqueId id, int rank) {
  int number = 0;
  std::memcpy(&number, id.bytes + 100, sizeof number);
  std::shared_ptr<Clique> clique;
  {
    const std::lock_guard lock(g_mutex);
    if (!g_cliques.contains(number)) return kInvalidUsage;
    clique = g_cliques[number];
  }
  std::unique_lock lock(clique->mutex);
  if (rank < 0 || rank >= count || clique->here.contains(rank)) return kInvalidUsage;
  clique->ranks = static_cast<size_t>(count), clique->here[rank] = true;
  clique->wake.notify_all();
  clique->wake.wait(lock, [&] { return clique->here.size() == clique->ranks; });
  *comm = new ncclComm{clique, rank, {}};
  return kSuccess;
}
int ncclCommInitAll(ncclComm**, int, const int*) { return kInvalidUsage; }

int ncclCommDestroy(ncclComm* comm) {
  Clique& clique = *comm->clique;
  {
    std::unique_lock lock(clique.mutex);
    ++clique.leaving;
    clique.wake.notify_all();
    clique.wake.wait(lock, [&] { return clique.leaving == clique.ranks; });
  }
  delete comm;
  return kSuccess;
}
int ncclCommAbort(ncclComm* comm) {
  {
    const std::lock_guard lock(comm->clique->mutex);
    comm->clique->aborted = true;
    comm->clique->wake.notify_all();
  }
  delete comm;
  return kSuccess;
}

int ncclRedOpCreatePreMulSum(int* operation, void* scalar, int, int, ncclComm* comm) {
  *operation = kFirstCustom + static_cast<int>(comm->shares.size());
  comm->shares.push_back(*static_cast<float*>(scalar));
  return kSuccess;
}
int ncclRedOpDestroy(int, ncclComm*) { return kSuccess; }

int ncclAllReduce(const void* send, void* receive, size_t count, int, int operation, ncclComm* comm, void*) {
  Clique& clique = *comm->clique;
  std::unique_lock lock(clique.mutex);
  const float share = operation == kAverage ? 1.0f / static_cast<float>(clique.ranks)
                                            : comm->shares[static_cast<size_t>(operation - kFirstCustom)];
  std::vector<float>& mine = clique.values[comm->rank];
  mine.assign(static_cast<const float*>(send), static_cast<const float*>(send) + count);
  for (float& value : mine) value *= share;
  clique.wake.notify_all();
  clique.wake.wait(lock, [&] { return clique.values.size() == clique.ranks || clique.aborted; });
  if (clique.values.size() < clique.ranks) return kAborted;
  auto* out = static_cast<float*>(receive);
  std::fill(out, out + count, 0.0f);
  for (const auto& [rank, values] : clique.values)
    for (size_t i = 0; i < count; ++i) out[i] += values[i];
  if (++clique.read == clique.ranks) clique.values.clear(), clique.read = 0;
  clique.wake.notify_all();
  clique.wake.wait(lock, [&] { return clique.read == 0; });
  return kSuccess;
}
int ncclGroupStart() { return kSuccess; }
int ncclGroupEnd() { return kSuccess; }
}

#include "profiling/run_file/log_folder.h"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "profiling/base/sqlite_log.h"
#include "profiling/run_file/sqlite.h"

namespace ws::prof {
namespace {

constexpr int64_t kFoldFrom = 8u << 20;  // bytes of log
constexpr auto kLookEvery = std::chrono::seconds(1);

void keep_short(const std::stop_token& ended, const std::string& path) {
  std::mutex waiting;
  std::condition_variable_any wake;
  std::unique_lock lock(waiting);
  while (!wake.wait_for(lock, ended, kLookEvery, [&ended] { return ended.stop_requested(); })) {
    if (bytes_of_log(path) < kFoldFrom) continue;
    try {
      Database(path, Database::Mode::Update).exec("PRAGMA wal_checkpoint(PASSIVE)");
    } catch (const std::exception&) {
    }  // for example a full disk: the log grows on, and the writer reports the error
  }
}

}  // namespace

WalKeeper::WalKeeper(const std::string& path)
    : thread_([path](const std::stop_token& ended) { keep_short(ended, path); }) {}

}  // namespace ws::prof

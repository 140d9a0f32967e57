#include "app/core/remote/fetch_file.h"

#include <zlib.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <utility>

#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "profiling/base/whole_file.h"

namespace ws::app {

using nlohmann::json;

namespace {

// What has arrived of a file so far, and how it ended.
struct Copy {
  std::mutex mutex;
  std::unique_ptr<prof::SyncedFile> file;
  uint64_t bytes = 0;
  unsigned long sum = crc32(0, nullptr, 0);
  std::promise<void> done;
  bool over = false;

  void begin(const std::string& path) {
    file = std::make_unique<prof::SyncedFile>(path);
    bytes = 0, sum = crc32(0, nullptr, 0);
  }
  void add(std::string_view more) {
    file->write(more);
    sum = crc32(sum, reinterpret_cast<const Bytef*>(more.data()), static_cast<uInt>(more.size()));
    bytes += more.size();
  }
  void end(const std::string& problem) {
    if (std::exchange(over, true)) return;
    if (problem.empty())
      done.set_value();
    else
      done.set_exception(std::make_exception_ptr(Failure(problem)));
  }
  template <class Work>
  void attempt(const Work& work) {
    std::lock_guard lock(mutex);
    if (over) return;
    try {
      work();
    } catch (const std::exception& problem) {
      end(problem.what());
    }
  }
};

void fetch_part(RemoteLink& link, json what, const std::string& part, const std::function<bool(uint64_t)>& progress) {
  Copy copy;
  copy.begin(part);
  auto done = copy.done.get_future();
  what["what"] = "file";
  FileFollower follower;
  follower.bytes = [&copy](std::string_view more) { copy.attempt([&] { copy.add(more); }); };
  follower.restarted = [&copy, part] { copy.attempt([&] { copy.begin(part); }); };
  follower.failed = [&copy](const std::string& why) { copy.attempt([&] { copy.end(why); }); };
  follower.ended = [&copy](const json& figures) {
    copy.attempt([&] {
      const JsonInput in(figures, "");
      const bool same = in.at("bytes").whole(-1) == static_cast<int64_t>(copy.bytes) &&
                        in.at("sum").whole(-1) == static_cast<int64_t>(copy.sum);
      if (same) copy.file->close();
      copy.end(same ? "" : "The copy differs from the file there, which was changed meanwhile. Try again.");
    });
  };
  const uint32_t number = link.follow(std::move(what), follower);
  while (done.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    const LineStatus now = link.status();
    uint64_t bytes = 0;
    {
      std::lock_guard lock(copy.mutex);
      bytes = copy.bytes;
    }
    if (now.state == LineState::Refused) copy.attempt([&] { copy.end(now.sentence); });
    if (progress && !progress(bytes)) copy.attempt([&] { copy.end("The copy was cancelled."); });
  }
  link.leave(number);
  done.get();
}

}  // namespace

void fetch_file(RemoteLink& link, json what, const std::string& path, const std::function<bool(uint64_t)>& progress, const std::optional<FoundFile>& found) {
  prof::write_whole_file(path, [&](const std::string& part) { fetch_part(link, what, part, progress); }, found);
}

}  // namespace ws::app

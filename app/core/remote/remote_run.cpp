#include "app/core/remote/remote_run.h"

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>

#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/text.h"

namespace ws::app {

using nlohmann::json;

namespace {

std::string random_letters() {
  std::random_device device;
  return formatted("{:06x}", device() & 0xffffffu);
}

}  // namespace

std::string RemoteRun::new_name(const std::string& title) {
  char stamp[32];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &parts));
  const std::string name = file_name_of(title.substr(0, 40));
  return std::string(stamp) + "-" + (name.empty() ? "" : name + "-") + random_letters();
}

void RemoteRun::start(RemoteLink& link, const std::string& name, const json& job) {
  link.ask({{"do", "start"}, {"run", name}, {"job", job}});
}

RemoteRun::RemoteRun(RemoteLink& link, std::string name, bool trace)
    : link_(link), name_(std::move(name)), sender_(process_mark() + " " + random_letters()) {
  follow("news", {.bytes = [this](std::string_view bytes) { read(news_, bytes); },
                  .ended =
                      [this](const json&) {
                        std::lock_guard lock(mutex_);
                        news_ended_ = true;
                      }});
  follow("log", {.bytes =
                     [this](std::string_view bytes) {
                       std::lock_guard lock(mutex_);
                       log_ += bytes;
                     },
                 .ended =
                     [this](const json&) {
                       std::lock_guard lock(mutex_);
                       log_ended_ = true;
                     }});
  if (!trace) return;
  FileFollower spans{.bytes = [this](std::string_view bytes) { read(trace_, bytes); }};
  spans.jumped = [this](uint64_t bytes) {
    std::lock_guard lock(mutex_);
    left_out_ += bytes;
    trace_ = FrameReader("The trace");  // a new piece begins with a frame
  };
  spans.failed = [](const std::string&) {};  // the run file has all of it
  follow("trace", std::move(spans));
}

void RemoteRun::follow(const char* what, FileFollower follower) {
  if (!follower.failed)
    follower.failed = [this](const std::string& why) {
      say(why, true);
      std::lock_guard lock(mutex_);
      news_ended_ = log_ended_ = true;
    };
  streams_.push_back(link_.follow({{"what", what}, {"run", name_}}, std::move(follower)));
}

RemoteRun::~RemoteRun() {
  alive_.reset();  // before leave(), which waits for a callback that has begun
  for (const uint32_t stream : streams_) link_.leave(stream);
}

void RemoteRun::read(FrameReader& frames, std::string_view bytes) {
  std::string problem;
  {
    std::lock_guard lock(mutex_);
    try {
      frames.add(bytes);
      while (const auto frame = frames.next()) reader_.read(*frame, inbox_);
      return;
    } catch (const std::exception& failure) {
      problem = failure.what();
      frames = FrameReader("The news");
    }
  }
  say("What came from " + link_.address().place() + " cannot be read: " + problem, true);
}

void RemoteRun::say(const std::string& text, bool problem) {
  std::lock_guard lock(mutex_);
  inbox_.run.messages.push_back({text, problem});
}

RemoteUpdate RemoteRun::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(inbox_, {});
}

std::string RemoteRun::take_log() {
  std::lock_guard lock(mutex_);
  return std::exchange(log_, {});
}

bool RemoteRun::over() const {
  std::lock_guard lock(mutex_);
  return news_ended_ && log_ended_;
}

uint64_t RemoteRun::left_out() const {
  std::lock_guard lock(mutex_);
  return left_out_;
}

// Numbered, so that one which is sent again after a cut is taken once.
void RemoteRun::request(json what) {
  {
    std::lock_guard lock(mutex_);
    what["from"] = sender_, what["number"] = ++requests_;
  }
  link_.post({{"do", "ask"}, {"run", name_}, {"request", std::move(what)}},
             [this, alive = std::weak_ptr(alive_)](const json&, const std::string& error) {
               if (const auto here = alive.lock(); here && !error.empty()) say(error, false);
             });
}

}  // namespace ws::app

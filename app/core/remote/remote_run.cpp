#include "app/core/remote/remote_run.h"

#include <algorithm>
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
  follow("news", {.bytes = [this](std::string_view bytes) { read(news_, bytes); }});
  follow("losses", {.bytes = [this](std::string_view bytes) { read(losses_, bytes); }});
  follow("log", {.bytes = [this](std::string_view bytes) {
    std::lock_guard lock(mutex_);
    log_ += bytes;
  }});
  if (!trace) return;
  FileFollower spans{.bytes = [this](std::string_view bytes) { read(trace_, bytes); }};
  spans.jumped = [this](uint64_t bytes) {
    std::lock_guard lock(mutex_);
    left_out_ += bytes;
    trace_ = FrameReader("The trace");  // a new piece begins with a frame
  };
  follow("trace", std::move(spans), false);  // the run file has all of it
}

void RemoteRun::follow(const char* what, FileFollower follower, bool needed) {
  const auto closed = [this] {
    std::lock_guard lock(mutex_);
    --open_;
  };
  follower.ended = [closed](const json&) { closed(); };
  follower.failed = [this, closed, needed](const std::string& why) {
    if (needed) say(why, true);
    closed();
  };
  {
    std::lock_guard lock(mutex_);
    ++open_;
  }
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
  RemoteUpdate now = std::exchange(inbox_, {});
  steps_until_ = open_ == 0 ? INT64_MAX : std::max(steps_until_, now.steps_until);
  early_.insert(early_.end(), now.run.steps.begin(), now.run.steps.end());
  const auto end = std::ranges::find_if(early_, [this](const StepResult& s) { return s.step >= steps_until_; });
  now.run.steps.assign(early_.begin(), end);
  early_.erase(early_.begin(), end);
  if (!now.run.steps.empty()) steps_given_ = now.run.steps.back().step + 1;
  if (open_ == 0) return now;
  auto& epochs = now.run.epochs;
  const auto late = std::ranges::find_if(epochs, [this](const EpochResult& e) { return e.step > steps_given_; });
  inbox_.run.epochs.assign(late, epochs.end());
  epochs.erase(late, epochs.end());
  inbox_.run.summary = std::exchange(now.run.summary, {});
  inbox_.run.account = now.run.account;
  return now;
}

std::string RemoteRun::take_log() {
  std::lock_guard lock(mutex_);
  return std::exchange(log_, {});
}

bool RemoteRun::over() const {
  std::lock_guard lock(mutex_);
  return open_ == 0;
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

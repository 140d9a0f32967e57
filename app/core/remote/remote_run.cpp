#include "app/core/remote/remote_run.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "app/core/remote/short_log.h"
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

RemoteRun::RemoteRun(RemoteLink& link, std::string name, bool trace, const json& job)
    : link_(link), name_(std::move(name)), sender_(process_mark() + " " + random_letters()) {
  if (!job.is_null()) begin(job);
  follow("now", {.bytes = [this](std::string_view bytes) { read(now_, bytes); }});
  follow("news", {.bytes = [this](std::string_view bytes) { read(news_, bytes); }});
  FileFollower curves{.bytes = [this](std::string_view bytes) { read(curves_, bytes); }};
  curves.instead = [this](std::string_view bytes, uint64_t) { read(curves_, bytes, true); };
  follow("curves", std::move(curves));
  follow("log", {.bytes = [this](std::string_view bytes) {
    std::lock_guard lock(mutex_);
    log_ += bytes;
  }});
  if (trace) follow_trace();
}

// Call it before anything is followed, so that it is answered first.
void RemoteRun::begin(const json& job) {
  link_.post({{"do", "start"}, {"run", name_}, {"job", job}},
             [this, alive = std::weak_ptr(alive_)](const json&, const std::string& error) {
               const auto here = alive.lock();
               if (!here) return;
               std::lock_guard lock(mutex_);
               refused_ = error;
             });
}

void RemoteRun::follow_trace() {
  FileFollower spans{.bytes = [this](std::string_view bytes) { read(trace_, bytes); }};
  spans.instead = [this](std::string_view, uint64_t bytes) {
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
  alive_.reset();  // before leave(), which waits for a running callback
  for (const uint32_t stream : streams_) link_.leave(stream);
}

void RemoteRun::read(FrameReader& frames, std::string_view bytes, bool thinned) {
  std::string problem;
  {
    std::lock_guard lock(mutex_);
    try {
      frames.add(bytes);
      thinned_ |= thinned;
      while (const auto frame = frames.next()) take_frame(*frame);
      return limit();
    } catch (const std::exception& failure) {
      problem = failure.what();
      frames = FrameReader("The news");
    }
  }
  say("What came from " + link_.address().place() + " cannot be read: " + problem, true);
}

// The replacement for a left-out part may begin before that part: skip steps and epochs that we already have.
void RemoteRun::take_frame(const Frame& frame) {
  std::vector<StepResult>& steps = inbox_.run.steps;
  std::vector<EpochResult>& epochs = inbox_.run.epochs;
  const auto had_steps = static_cast<std::ptrdiff_t>(steps.size()), had_epochs = static_cast<std::ptrdiff_t>(epochs.size());
  reader_.read(frame, inbox_);
  steps.erase(std::remove_if(steps.begin() + had_steps, steps.end(), [this](const StepResult& s) { return s.step <= last_step_; }),
              steps.end());
  epochs.erase(std::remove_if(epochs.begin() + had_epochs, epochs.end(), [this](const EpochResult& e) { return e.step <= last_epoch_; }),
               epochs.end());
  if (!steps.empty()) last_step_ = steps.back().step;
  if (!epochs.empty()) last_epoch_ = epochs.back().step;
}

void RemoteRun::say(const std::string& text, bool problem) {
  std::lock_guard lock(mutex_);
  inbox_.run.messages.push_back({text, problem});
}

// If nobody takes the inbox, it stays limited: losses are thinned, and spans are left to the run file.
void RemoteRun::limit() {
  constexpr size_t kMostSteps = 1 << 20, kMostSpans = 4'000'000;
  RunUpdate& run = inbox_.run;
  if (run.steps.size() > kMostSteps || run.epochs.size() > kMostSteps) {
    Curves curves{std::move(run.steps), std::move(run.epochs)};
    thin(curves, kMostSteps / 2);
    run.steps = std::move(curves.steps), run.epochs = std::move(curves.epochs);
    thinned_ = true;
  }
  limit_words();
  for (; counted_ < run.traces.size(); ++counted_) spans_ += run.traces[counted_].span_count();
  if (spans_ <= kMostSpans) return;
  left_out_ += spans_ * sizeof(prof::Span);
  run.traces.clear();
  spans_ = counted_ = 0;
}

namespace {

// Keeps the newest half of the words, if they are too many. Returns how many it left out.
template <class Word, class Bytes>
size_t keep_newest(std::vector<Word>& words, size_t most, size_t most_bytes, const Bytes& bytes_of) {
  size_t bytes = 0;
  for (const Word& word : words) bytes += bytes_of(word);
  if (words.size() <= most && bytes <= most_bytes) return 0;
  size_t gone = words.size() - std::min(words.size(), most / 2);
  for (size_t i = 0; i < gone; ++i) bytes -= bytes_of(words[i]);
  while (gone < words.size() && bytes > most_bytes / 2) bytes -= bytes_of(words[gone++]);
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(gone));
  return gone;
}

}  // namespace

// A job, or whoever stands in for one, may send words without end.
void RemoteRun::limit_words() {
  constexpr size_t kMostMessages = 10'000, kMostResults = 1'000'000, kMostBytes = 8u << 20, kMostResultBytes = 256u << 20;
  const size_t gone = keep_newest(inbox_.run.messages, kMostMessages, kMostBytes, [](const auto& message) { return message.text.size(); }) +
                      keep_newest(inbox_.results, kMostResults, kMostResultBytes, [](const std::string& text) { return text.size(); });
  if (gone > 0) inbox_.run.messages.push_back({std::to_string(gone) + " messages came faster than they could be shown, and were left out.", true});
}

RemoteUpdate RemoteRun::take() {
  std::lock_guard lock(mutex_);
  RemoteUpdate now = std::exchange(inbox_, {});
  spans_ = counted_ = 0;
  if (open_ == 0) return now;
  inbox_.run.summary = std::exchange(now.run.summary, {});
  inbox_.run.account = now.run.account;
  return now;
}

std::string RemoteRun::take_log() {
  std::lock_guard lock(mutex_);
  const size_t whole = open_ == 0 ? log_.size() : whole_letters(log_);
  std::string now = log_.substr(0, whole);
  log_.erase(0, whole);
  return now;
}

std::string RemoteRun::refused() const {
  std::lock_guard lock(mutex_);
  return refused_;
}

bool RemoteRun::over() const {
  std::lock_guard lock(mutex_);
  return open_ == 0;
}

uint64_t RemoteRun::left_out() const {
  std::lock_guard lock(mutex_);
  return left_out_;
}

bool RemoteRun::thinned() const {
  std::lock_guard lock(mutex_);
  return thinned_;
}

// Requests have numbers, so that one that is sent again after a cut is handled once.
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

namespace {

template <class T>
void move_to_end(std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
  from.clear();
}

}  // namespace

void FirstProgress::order(RunUpdate& update, bool over) {
  if (std::exchange(known_, known_ || over || update.progress)) return;
  move_to_end(update.steps, early_.steps);
  move_to_end(update.epochs, early_.epochs);
  if (!known_) return;
  std::swap(update.steps, early_.steps);
  std::swap(update.epochs, early_.epochs);
}

}  // namespace ws::app

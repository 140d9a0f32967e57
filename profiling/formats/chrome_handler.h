// Reads the JSON of a Chrome trace token by token.
#pragma once
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "profiling/base/paths.h"
#include "profiling/formats/chrome_event.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

// Receives the content of the file.
class ChromeSink {
 public:
  virtual ~ChromeSink() = default;
  virtual void add(ChromeEvent& event) = 0;
  virtual void set_about(const std::string& key, const std::string& value) = 0;
  virtual void set_kept(const std::string& key, const std::string& value) = 0;    // only from our own files
  virtual void set_device(const std::string& key, const std::string& value) = 0;  // properties of the first card
  virtual void set_frame(const std::string&, const std::string&, const std::string&) {}  // number, key, value
  virtual void set_base(int64_t ns) = 0;  // origin of the times, on the wall clock
  virtual void set_world(const std::string&, int64_t) {}  // "rank" and "world_size" of a PyTorch program
};

// Converts microseconds as text without a double, which cannot hold all digits of clock readings.
inline bool us_to_ns(std::string_view text, int64_t& ns) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  const auto rest = static_cast<size_t>(end - text.data());
  if (error != std::errc() || whole > (int64_t{1} << 52) || text.find_first_of("eE") != text.npos) return false;
  int64_t fraction = 0, unit = 100;
  for (size_t i = rest + 1; i < text.size() && unit > 0; ++i, unit /= 10) fraction += (text[i] - '0') * unit;
  ns = (whole * 1000 + fraction) * (negative ? -1 : 1);
  return true;
}

inline int64_t us_to_ns(double us) {
  return std::abs(us) < 4e15 ? std::llround(us * 1000) : std::numeric_limits<int64_t>::max();
}

// Parses the file token by token and keeps only the current event as text.
class ChromeHandler : public nlohmann::json::json_sax_t {
 public:
  explicit ChromeHandler(ChromeSink& reader) : reader_(reader) {}
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override {
    return number(value, static_cast<double>(value), std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max())),
                  static_cast<double>(value), std::to_string(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return number(std::abs(value) < 9e18 ? static_cast<int64_t>(value) : 0, value, text);
  }
  bool string(string_t& text) override {
    if (text.size() > kLongestText) text.resize(kLongestText);
    if (in_event())
      event_text(text);
    else if (in_args() && !event_.full())
      event_.texts[key_] = text;
    else if (!in_events_)
      about(text);
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return enter(true); }
  bool key(string_t& text) override {
    key_.assign(text, 0, kLongestText);
    return true;
  }
  bool end_object() override {
    if (in_event()) {
      reader_.add(event_);
      event_ = {};
    }
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override { return enter(false); }
  bool end_array() override {
    if (in_events_ && depth_ == events_depth_) in_events_ = false;
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error = "it is not valid JSON at byte " + std::to_string(position);
    return false;
  }
  std::string error;
  bool found_events = false;

 private:
  static constexpr int kDeepest = 64;
  static constexpr size_t kLongestText = 1 << 16;  // longer texts are cut

  bool enter(bool object) {
    if (++depth_ > kDeepest) {
      error = "it is nested more than " + std::to_string(kDeepest) + " levels deep";
      return false;
    }
    if (!object && !in_events_ && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"))) {
      in_events_ = found_events = true;
      events_depth_ = depth_;
    }
    if (depth_ == 2 && !in_events_) section_ = key_;
    if (depth_ == 3 && !in_events_) entry_ = key_;
    if (in_events_ && object && depth_ == events_depth_ + 2) args_ = key_ == "args";
    if (in_events_ && !object && depth_ == events_depth_ + 3) triple_at_ = 0;
    return true;
  }
  bool in_event() const { return in_events_ && depth_ == events_depth_ + 1; }
  bool in_args() const { return in_events_ && args_ && depth_ == events_depth_ + 2; }

  // The field of the event that takes the value as text.
  std::string* text_field() {
    if (key_ == "ph") return &event_.phase;
    if (key_ == "cat") return &event_.category;
    if (key_ == "name") return &event_.name;
    if (key_ == "pid") return &event_.process;
    if (key_ == "tid") return &event_.thread;
    return key_ == "sf" ? &event_.stack : nullptr;
  }

  void event_text(const std::string& text) {
    if (std::string* field = text_field())
      *field = text;
    else if (key_ == "ts" || key_ == "dur")
      time(text, std::strtod(text.c_str(), nullptr));
  }

  void time(const std::string& text, double us) {
    int64_t ns = 0;
    if (!us_to_ns(text, ns)) ns = us_to_ns(us);
    (key_ == "ts" ? event_.time : event_.duration) = ns;
    event_.has_duration |= key_ == "dur";
  }

  bool number(int64_t whole, double value, const std::string& text) {
    if (in_event()) {
      if (key_ == "ts" || key_ == "dur")
        time(text, value);
      else if (key_ == "step")
        event_.step = whole;
      else if (key_ == "epoch")
        event_.epoch = value;
      else if (key_ == "wall_s")
        event_.wall_s = value;
      else if (std::string* field = text_field())
        *field = text;
    } else if (in_args() && !event_.full()) {
      event_.integers[key_] = whole;
      event_.numbers[key_] = value;
    } else if (in_events_ && args_ && depth_ == events_depth_ + 3 && triple_at_ < 3 && !event_.full()) {
      event_.triples[key_][triple_at_++] = whole;
    } else if (depth_ == 1 && key_ == "baseTimeNanoseconds") {
      reader_.set_base(whole);
    } else if (depth_ == 2 && !in_events_ && section_ == "distributedInfo") {
      reader_.set_world(key_, whole);
    } else if (in_card()) {
      reader_.set_device(key_, text);
    }
    return true;
  }

  void about(const std::string& text) {
    if (depth_ == 1) reader_.set_about(key_, text);
    if (depth_ == 2 && (section_ == "warpsight" || section_ == kNameBefore)) reader_.set_kept(key_, text);
    if (depth_ == 3 && section_ == "stackFrames") reader_.set_frame(entry_, key_, text);
    if (in_card()) reader_.set_device(key_, text);
  }
  bool in_card() const { return !in_events_ && depth_ == 3 && section_ == "deviceProperties"; }

  ChromeSink& reader_;
  ChromeEvent event_;
  std::string key_, section_, entry_;
  int depth_ = 0, events_depth_ = 0;
  bool in_events_ = false, args_ = false;
  size_t triple_at_ = 0;
};

// Reads a file, plain or compressed, until its end or until the sink throws. Throws Failure if it is not a trace.
void read_chrome(const std::string& path, ChromeSink& sink);
// Converts the events that `source` passes to the sink.
RunData read_events(const std::function<void(ChromeSink&)>& source);

}  // namespace ws::prof

#include "app/core/remote/serve.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/core/remote/byte_source.h"
#include "app/core/remote/frame.h"
#include "app/core/remote/line_pace.h"
#include "app/core/remote/pipe_process.h"
#include "app/core/remote/remote_job.h"
#include "app/core/runs/machine.h"
#include "engine/devices/devices.h"
#include "profiling/base/byte_reader.h"
#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "profiling/base/ownership.h"
#include "profiling/base/sqlite_log.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/version.h"
#include "profiling/base/whole_file.h"
#include "profiling/run_file/run_file.h"
#include "profiling/run_file/sqlite.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kChunk = 16u << 10;        // bytes of a stream in one frame
constexpr size_t kQueued = 64u << 10;       // bytes waiting for the pipe
constexpr int kTickMs = 10;
constexpr size_t kMostStreams = 256, kMostRuns = 20'000;
constexpr size_t kMostText = 8u << 20;      // for the output of a command
constexpr size_t kMostLate = 256;           // questions that wait for their answer
constexpr std::ptrdiff_t kMostAtOnce = 4;   // of these, those that are worked on
constexpr size_t kMostUnread = 8u << 20;    // bytes of answers that the client has not taken; then no more requests are read

// most urgent first; files come last
constexpr std::array<std::string_view, 5> kOfJob{"now", "news", "curves", "log", "trace"};

std::unique_ptr<ByteSource> source_of(const JobFolder& job, const std::string& what) {
  if (what == "now") return state_of(job, "now");
  if (what == "news" || what == "log") return growing_file(job, what == "news" ? "news" : "log");
  if (what == "curves") return curves_of(job);
  if (what == "trace") return newest_trace_of(job);
  throw Failure("The program there does not know \"" + what + "\".");
}

std::string path_in(const std::string& runs, const std::string& name) {
  if (!is_plain_name(name)) throw Failure("\"" + name + "\" cannot be the name of a run.");
  return runs + "/" + name;
}

json hello(const std::string& runs) {
  json machine = machine_json();
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  std::error_code none;
  return {{"protocol", kLineProtocol},
          {"version", version()},
          {"host", host.data()},
          {"machine", machine},
          {"why_no_gpu", device_info().cuda ? "" : device_info().why_not},
          {"memory_bytes", static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE))},
          {"free_disk_bytes", static_cast<double>(fs::space(runs, none).available)},
          {"folder", runs}};
}

json row_of(const fs::path& path) {
  const std::string name = path.filename().string();
  json row{{"file", name}};
  std::error_code none;
  row["bytes"] = static_cast<double>(fs::file_size(path, none));
  try {
    const prof::RunSummary run = prof::read_run_summary(path.string());
    const bool written = !owner_of(path.string()).empty();
    row["name"] = run.name, row["device"] = run.device, row["created"] = run.created, row["steps"] = run.steps;
    row["status"] = run.status == "running" && !written ? "ended early" : run.status;
    row["us_per_step"] = run.step_time.known() ? run.step_time.us.value : run.us_per_step;
    row["origin"] = run.origin;
  } catch (const std::exception& problem) {
    row["problem"] = problem.what();
  }
  return row;
}

json list_of(const std::string& runs) {
  json rows = json::array();
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(runs, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".wsrun") || !is_plain_name(name) || rows.size() >= kMostRuns) continue;
    json row = row_of(entry.path());
    row["job"] = JobFolder(runs, name.substr(0, name.size() - 6)).running();
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const json& a, const json& b) { return a["file"] < b["file"]; });  // by time
  return rows;
}

// The jobs that run here now, with their start requests.
json jobs_of(const std::string& runs) {
  json jobs = json::array();
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(runs + "/.jobs", none)) {
    const std::string name = entry.path().filename().string();
    if (!is_plain_name(name) || jobs.size() >= kMostRuns) continue;
    const JobFolder job(runs, name);
    if (job.running()) jobs.push_back({{"run", name}, {"job", parse_json_or_null(prof::whole_text(job.file("job.json")))}});
  }
  std::sort(jobs.begin(), jobs.end(), [](const json& a, const json& b) { return a["run"] < b["run"]; });
  return jobs;
}

// A run whose writer was killed has a part of its data in a separate log (-wal). Merges it into
// one file before others read it.
void fold(const std::string& path) {
  if (!owner_of(path).empty()) throw Failure(fs::path(path).filename().string() + " is still being written. Stop it first.");
  if (prof::bytes_of_log(path) == 0) return;
  try {
    prof::Database(path, prof::Database::Mode::Update).fold();
  } catch (const Failure& failure) {
    throw Failure("the run file cannot be completed on the other machine. Free some space there. " +
                  std::string(failure.what()));
  }
}

// Appends what was read. Returns false once the stream is closed.
bool append_output(const std::optional<std::string>& more, std::string& text) {
  if (more) text += *more;
  if (text.size() > kMostText) throw Failure("The answer is longer than 8 MiB. Copy the run file here and ask again.");
  return more.has_value();
}

// Runs a command of this program and returns its output.
json answer_of(std::vector<std::string> words) {
  words.insert(words.begin(), program_file().string());
  PipeProcess command(words);
  std::string text, errors;
  for (bool more = true, more_errors = true; more || more_errors;) {
    std::array<pollfd, 2> ends{pollfd{more ? command.output() : -1, POLLIN, 0},
                               pollfd{more_errors ? command.errors() : -1, POLLIN, 0}};
    poll(ends.data(), ends.size(), 1000);
    more = more && append_output(command.read_output(), text);
    more_errors = more_errors && append_output(command.read_errors(), errors);
  }
  return {{"text", text}, {"errors", errors}, {"status", command.wait(10'000).value_or(1)}};
}

struct Stream {
  uint32_t number;
  int urgency;  // lowest first
  std::unique_ptr<ByteSource> source;
  uint64_t at;
};

class Server {
 public:
  Server(int in, int out, std::string runs, std::chrono::milliseconds silence)
      : in_(in), out_(out), runs_(std::move(runs)), silence_(silence) {
    fcntl(in_, F_SETFL, fcntl(in_, F_GETFL) | O_NONBLOCK);
    fcntl(out_, F_SETFL, fcntl(out_, F_GETFL) | O_NONBLOCK);
    // The greeting is on its own line, even if a shell has written text before it.
    waiting_ = "\n" + std::string(kLineMagic) + std::to_string(kLineProtocol) + " " + version() + "\n";
  }

  void run() {
    while (open_) {
      wait();
      read();
      answer_late();
      while (waiting_.size() < kQueued && send_more()) {
      }
      write();
    }
  }

 private:
  void wait() {
    const bool busy = !streams_.empty() || !late_.empty();
    std::array<pollfd, 2> ends{pollfd{in_, static_cast<short>(takes_requests() ? POLLIN : 0), 0}, pollfd{out_, static_cast<short>(waiting_.empty() ? 0 : POLLOUT), 0}};
    const int timeout_ms = more_ ? 0 : busy ? kTickMs : 1000;
    poll(ends.data(), ends.size(), timeout_ms);
    if ((ends[1].revents & POLLERR) != 0) open_ = false;
  }

  bool takes_requests() const { return waiting_.size() < kMostUnread; }

  void read() {
    std::array<char, 1 << 16> part;
    if (!takes_requests()) return;
    const ssize_t got = ::read(in_, part.data(), part.size());
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) open_ = false;
    if (std::chrono::steady_clock::now() - last_received_ > silence_) open_ = false;
    if (got <= 0) return;
    last_received_ = std::chrono::steady_clock::now();
    frames_.add({part.data(), static_cast<size_t>(got)});
    while (const auto frame = frames_.next()) take(*frame);
  }

  void take(const Frame& frame) {
    const auto kind = static_cast<LineKind>(frame.kind);
    if (kind == LineKind::Received) return pace_.received(ByteReader(frame.payload, "The connection").value<uint64_t>("a count"), prof::steady_ns());
    if (kind != LineKind::Request) throw Failure("The connection is damaged: not a request");
    const json request = parse_json(frame.payload, "A request");
    const JsonInput in(request, "");
    const int64_t number = in.required("number").whole(0);
    try {
      answer(number, {{"ok", do_it(in, number)}});
    } catch (const std::exception& problem) {
      answer(number, {{"error", problem.what()}});
    }
  }

  void answer(int64_t number, json what) {
    if (what.contains("ok") && what["ok"].is_null()) return;  // answered later
    what["number"] = number;
    send(LineKind::Answer, what);
  }

  void send(LineKind kind, const json& what) {
    waiting_ += frame_of(static_cast<uint8_t>(kind), what.dump(-1, ' ', false, json::error_handler_t::replace));
  }

  json do_it(const JsonInput& in, int64_t number) {
    const std::string what = in.required("do").text();
    if (what == "ping") return json::object();
    if (what == "hello") return hello(runs_);
    if (what == "start") return start(in);
    if (what == "ask") return ask(in);
    if (what == "job") return read_json(job_in(in).file("job.json"));
    if (what == "jobs") return {{"jobs", jobs_of(runs_)}};
    if (what == "follow") return follow(in);
    if (what == "leave") return leave(in);
    if (what == "list") return later(number, [runs = runs_] { return json{{"runs", list_of(runs)}}; });
    if (what == "output") return output(in, number);
    throw Failure("The program there does not know \"" + what + "\".");
  }

  json start(const JsonInput& in) {
    start_job({runs_, in.required("run").text()}, in.required("job").value());
    return {{"runs", runs_}};
  }

  // Sends a request to a running job: pause, step, stop, a change.
  json ask(const JsonInput& in) {
    const JobFolder job(runs_, in.required("run").text());
    if (!job.running()) throw Failure(job.name() + " has ended.");
    add_request(job, in.required("request").value());
    return json::object();
  }

  JobFolder job_in(const JsonInput& in) const {
    JobFolder job(runs_, in.required("run").text());
    if (!fs::exists(job.file("job.json"))) throw Failure("There is no job " + job.name() + " there.");
    return job;
  }

  json follow(const JsonInput& in) {
    if (streams_.size() >= kMostStreams) throw Failure("Too many files are followed at once.");
    const std::string what = in.required("what").text();
    Stream stream{static_cast<uint32_t>(in.required("stream").whole(0, 0, UINT32_MAX)), static_cast<int>(kOfJob.size()), nullptr,
                  static_cast<uint64_t>(in.at("offset").whole(0, 0))};
    if (what == "file") {
      const std::string path = file_of(in);
      fold(path);
      stream.source = finished_file(path);
      if (in.at("version").text() != stream.source->version()) stream.at = 0;
    } else {
      stream.source = source_of(job_in(in), what);
      stream.urgency = static_cast<int>(std::ranges::find(kOfJob, what) - kOfJob.begin());
    }
    std::erase_if(streams_, [&](const Stream& other) { return other.number == stream.number; });
    json out{{"offset", stream.at}, {"version", stream.source->version()}};
    const auto place = std::ranges::upper_bound(streams_, stream.urgency, {}, &Stream::urgency);
    streams_.insert(place, std::move(stream));
    return out;
  }

  // Path of a run, or of a file that a job left beside it.
  std::string file_of(const JsonInput& in) const {
    const std::string name = in.required("file").text();
    if (!in.at("run").there()) return path_in(runs_, name);
    const JobFolder job(runs_, in.at("run").text());
    return path_in(in.at("folder").there() ? path_in(job.path(), in.at("folder").text()) : job.path(), name);
  }

  json leave(const JsonInput& in) {
    const int64_t number = in.required("stream").whole(0);
    std::erase_if(streams_, [number](const Stream& stream) { return stream.number == number; });
    return json::object();
  }

  json output(const JsonInput& in, int64_t number) {
    static const std::array<std::string, 1> kAllowed{"stats"};
    const std::string command = in.required("command").text();
    if (std::ranges::find(kAllowed, command) == kAllowed.end()) throw Failure("The program there does not run \"" + command + "\" for others.");
    std::vector<std::string> words{command};
    for (const JsonInput& word : in.at("options").items()) words.push_back(word.text());
    words.insert(words.end(), {"--", path_in(runs_, in.required("file").text())});
    return later(number, [words] { return answer_of(words); });
  }

  // Runs the work on another thread while the connection continues, a few at a time.
  json later(int64_t number, std::function<json()> work) {
    if (late_.size() >= kMostLate) throw Failure("The program there has too many other questions to answer. Ask again later.");
    late_.push_back({number, std::move(work), {}});
    return nullptr;
  }

  void start_late() {
    auto running = std::ranges::count_if(late_, [](const Late& late) { return late.result.valid(); });
    for (Late& late : late_)
      if (late.work && running < kMostAtOnce) late.result = std::async(std::launch::async, std::exchange(late.work, nullptr)), ++running;
  }

  void answer_late() {
    start_late();
    for (Late& late : late_) {
      if (!late.result.valid() || late.result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) continue;
      try {
        answer(late.number, {{"ok", late.result.get()}});
      } catch (const std::exception& problem) {
        answer(late.number, {{"error", problem.what()}});
      }
    }
    std::erase_if(late_, [](const Late& late) { return !late.result.valid() && !late.work; });
  }

  // Sends one piece of the most urgent stream that has data. Returns false if there is nothing to send or no space.
  bool send_more() {
    more_ = false;
    for (size_t i = 0; i < streams_.size(); ++i) {
      Stream& stream = streams_[i];
      if (pace_.space_left() == 0) return false;
      if (send_piece(stream)) return more_ = true;
      if (stream.source) continue;
      streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    return false;
  }

  bool send_piece(Stream& stream) {
    try {
      const bool grows = stream.source->may_grow();  // asked first: data written before this call is then read
      const NextBytes next = stream.source->next(stream.at, kChunk);
      if (!next.nothing()) {
        send_bytes(stream, next);
        return true;
      }
      if (grows) return false;
      send(LineKind::Event, {{"stream", stream.number}, {"end", stream.source->at_end()}});
    } catch (const std::exception& problem) {
      send(LineKind::Event, {{"stream", stream.number}, {"error", problem.what()}});
    }
    stream.source.reset();
    return false;
  }

  void send_bytes(Stream& stream, const NextBytes& next) {
    ByteWriter to;
    to.value(stream.number);
    to.value(stream.at);
    if (next.instead) to.value(next.until);
    to.raw(next.bytes);
    stream.at = next.until;
    waiting_ += frame_of(static_cast<uint8_t>(next.instead ? LineKind::Instead : LineKind::Bytes), to.bytes());
    pace_.sent(next.bytes.size(), prof::steady_ns());
  }

  void write() {
    while (!waiting_.empty()) {
      const ssize_t went = ::write(out_, waiting_.data(), waiting_.size());
      if (went < 0 && errno == EINTR) continue;
      if (went < 0 && errno != EAGAIN) open_ = false;
      if (went <= 0) return;
      waiting_.erase(0, static_cast<size_t>(went));
    }
  }

  struct Late {
    int64_t number;
    std::function<json()> work;  // empty once it runs
    std::future<json> result;
  };
  int in_, out_;
  std::string runs_, waiting_;
  const std::chrono::milliseconds silence_;
  std::chrono::steady_clock::time_point last_received_ = std::chrono::steady_clock::now();
  FrameReader frames_{"The connection"};
  LinePace pace_;
  std::vector<Stream> streams_;  // most urgent first
  std::vector<Late> late_;
  bool open_ = true, more_ = false;
};

}  // namespace

void serve(int in, int out, const std::string& runs, std::chrono::milliseconds silence) {
  std::error_code error;
  const std::string folder = fs::absolute(runs, error).lexically_normal().string();
  fs::create_directories(folder, error);
  if (error) throw Failure(folder + ": cannot be made: " + error.message());
  signal(SIGPIPE, SIG_IGN);
  Server(in, out, folder, silence).run();
}

}  // namespace ws::app

#include "engine/ranks/rank_processes.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>

#include "profiling/base/byte_reader.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"

namespace ws {
namespace {

constexpr std::string_view kMark = "Warpsight rank";
constexpr uint64_t kLongestHello = 1 << 20;
constexpr int kMostProcesses = 64;  // limit of exec.gpus

struct Hello {
  std::string mark{kMark}, version = ws::version(), host, choices;
  int32_t rank = 0, ranks = 0;
  int64_t process = 0;
};

std::string bytes_of(const Hello& hello) {
  ByteWriter out;
  for (const std::string* text : {&hello.mark, &hello.version, &hello.host, &hello.choices}) out.text(*text);
  out.value(hello.rank), out.value(hello.ranks), out.value(hello.process);
  return out.take();
}

Hello read_hello(int socket) {
  RankMessage message = read_message(socket, kLongestHello);
  if (message.kind == MessageKind::Alive) message = read_message(socket, kLongestHello);
  ByteReader in(message.bytes, "a rank's greeting");
  Hello hello;
  for (std::string* text : {&hello.mark, &hello.version, &hello.host, &hello.choices}) *text = in.text("a text");
  if (message.kind != MessageKind::Hello || hello.mark != kMark) in.fail("it is not of a rank");
  hello.rank = in.value<int32_t>("the rank"), hello.ranks = in.value<int32_t>("the number of ranks");
  hello.process = in.value<int64_t>("the process");
  return hello;
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

std::string name_of(const Hello& hello) {
  return "Rank " + std::to_string(hello.rank) + " (process " + std::to_string(hello.process) + " on " + hello.host +
         ")";
}

// Names the first choice that differs.
std::string difference(const std::string& mine, const std::string& theirs) {
  try {
    const auto changes = diff(parse_spec(mine), parse_spec(theirs));
    if (!changes.empty()) return changes[0].key + " = " + changes[0].to + ", and rank 0 with " + changes[0].from;
  } catch (const std::exception&) {  // a rank resumes
  }
  return "other options than rank 0";
}

// Returns an empty string if the rank fits.
std::string why_refused(const Hello& hello, const LaunchedRank& self, const std::string& choices) {
  if (hello.version != version())
    return name_of(hello) + " is Warpsight " + hello.version + ", and rank 0 is Warpsight " + version() +
           ": install one version everywhere.";
  if (hello.ranks != self.ranks || hello.rank < 1 || hello.rank >= self.ranks)
    return name_of(hello) + " is of a training with " + std::to_string(hello.ranks) + " ranks, and rank 0 waits for " +
           std::to_string(self.ranks) + ".";
  if (hello.choices != choices)
    return name_of(hello) + " was started with " + difference(choices, hello.choices) +
           ": start every rank with the same settings.";
  return {};
}

template <class T>
uint32_t checksum(const std::vector<T>& values, uint32_t earlier) {
  if (values.empty()) return earlier;  // zlib would restart
  return static_cast<uint32_t>(
      crc32_z(earlier, reinterpret_cast<const Bytef*>(values.data()), values.size() * sizeof(T)));
}

}  // namespace

uint32_t fingerprint(const data::Dataset& data) {
  uint32_t sum = checksum(std::vector<int64_t>{data.features, data.outputs, data.train.rows, data.test.rows}, 0);
  for (const data::Split* split : {&data.train, &data.test})
    sum = checksum(split->targets, checksum(split->labels, checksum(split->x, sum)));
  return sum;
}

RankProcesses::RankProcesses(const LaunchedRank& self, const std::string& choices, const RunSpec& spec)
    : self_(self), spec_(spec), meeting_(rank_meeting(self)), channels_(static_cast<size_t>(std::max(1, self.ranks))) {
  if (self.rank < 0 || self.rank >= self.ranks || self.ranks > kMostProcesses)
    throw Failure("The launcher says rank " + std::to_string(self.rank) + " of " + std::to_string(self.ranks) +
                  ": a training has at most " + std::to_string(kMostProcesses) + " ranks, numbered from 0.");
  self.rank == 0 ? gather(choices) : join(choices);
}

void RankProcesses::gather(const std::string& choices) {
  const auto limit = 3 * rank_patience();
  const RankSocket listening = listen_at(meeting_);
  try {
    for (const auto begin = std::chrono::steady_clock::now(); !missing().empty();) {
      if (std::chrono::steady_clock::now() - begin > limit)
        throw Failure("No sign of rank " + missing() + " at " + meeting_.text() + " within " +
                      duration_text(std::chrono::duration<double>(limit).count()) +
                      ": start all ranks together, on hosts that reach this address.");
      pollfd one{listening.number(), POLLIN, 0};
      if (poll(&one, 1, 100) <= 0) continue;
      welcome(RankSocket(accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC)), choices);
    }
  } catch (const Failure& problem) {
    abandon(problem.what());
    throw;
  }
}

void RankProcesses::welcome(RankSocket socket, const std::string& choices) {
  Hello hello;
  try {
    hello = read_hello(socket.number());
  } catch (const Failure&) {
    return;  // not a rank: any program can connect to a port
  }
  std::string why = why_refused(hello, self_, choices);
  if (why.empty() && channels_[static_cast<size_t>(hello.rank)])
    why = name_of(hello) + " is there twice: each process needs a rank of its own.";
  auto channel = std::make_unique<RankChannel>(socket.release(), name_of(hello));
  if (!why.empty()) {
    channel->abandon(why);
    throw Failure(why);
  }
  channel->send(MessageKind::Welcome, spec_text(spec_));
  channels_[static_cast<size_t>(hello.rank)] = std::move(channel);
}

void RankProcesses::join(const std::string& choices) {
  channels_[0] = std::make_unique<RankChannel>(connect_to(meeting_).release(), "Rank 0 (at " + meeting_.text() + ")");
  Hello hello;
  hello.rank = self_.rank, hello.ranks = self_.ranks, hello.process = getpid();
  hello.host = host_name(), hello.choices = choices;
  channels_[0]->send(MessageKind::Hello, bytes_of(hello));
  spec_ = parse_spec(channels_[0]->receive().bytes);
}

std::string RankProcesses::missing() const {
  std::string ranks;
  for (size_t i = 1; i < channels_.size(); ++i)
    if (!channels_[i]) ranks += (ranks.empty() ? "" : ", ") + std::to_string(i);
  return ranks;
}

void RankProcesses::abandon(const std::string& why) noexcept {
  for (const auto& channel : channels_)
    if (channel) channel->abandon(why);
}

void RankProcesses::end(std::string_view outcome) {
  for (const auto& channel : channels_) try {
      if (channel) channel->send(MessageKind::End, outcome);
    } catch (const Failure&) {  // that process has ended already
    }
}

void RankProcesses::wait_for_others() {
  for (const auto& channel : channels_)
    if (channel) channel->wait_until_closed();
}

uint32_t RankProcesses::fingerprint_of(const data::Dataset& data) {
  const std::lock_guard lock(mutex_);
  if (!fingerprint_) fingerprint_ = fingerprint(data);
  return *fingerprint_;
}

}  // namespace ws

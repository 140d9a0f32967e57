// Runs a fuzz target without a fuzzing engine: first every seed as it is, then random changes of them, for some
// seconds.
//
//   fuzz_targets TARGET [--seconds N] [--seed N] FOLDER|FILE...
//
// WARPSIGHT_FUZZ_SECONDS sets the time as well. An input may take 25 s and 2 GB. An input that kills the target is kept
// as find-TARGET.bin.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

// Sanitizer settings: a find ends the program, and so does a request for more memory than any seed could deserve.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:allocator_may_return_null=0:hard_rss_limit_mb=2048";
}
extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {
using ws::fuzz::Bytes;
namespace fs = std::filesystem;

constexpr size_t kMostBytes = 64 * 1024;
constexpr unsigned kMostSecondsPerInput = 25;
constexpr rlim_t kMostMemory = rlim_t{2} << 30;

struct Options {
  double seconds = 1;
  uint64_t seed = 1;
  std::vector<fs::path> inputs;
};

Bytes current;       // what the target is working on
std::string target;

void keep_current() {
  const std::string path = "find-" + target + ".bin";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  if (write(file, current.data(), current.size()) == static_cast<ssize_t>(current.size()))
    std::fprintf(stderr, "fuzz: the input is kept as %s\n", path.c_str());
  close(file);
}

void on_signal(int signal) {
  std::fprintf(stderr, "fuzz: %s\n", signal == SIGALRM ? "one input takes too long" : strsignal(signal));
  keep_current();
  _exit(1);
}

// A sanitizer brings its own handlers for crashes; without one these take their place.
void watch_for_finds() {
  std::signal(SIGALRM, on_signal);
  std::signal(SIGABRT, on_signal);
  if (__sanitizer_set_death_callback) {
    __sanitizer_set_death_callback(keep_current);
    return;  // a sanitizer reserves more than that, and limits memory by its own setting
  }
  const rlimit memory{kMostMemory, kMostMemory};
  setrlimit(RLIMIT_DATA, &memory);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, on_signal);
}

void run_one(Bytes input) {
  current = std::move(input);
  alarm(kMostSecondsPerInput);
  ws::fuzz::targets().at(target)({reinterpret_cast<const char*>(current.data()), current.size()});
  alarm(0);
}

Bytes read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// In order of name, so that a seed number means the same run everywhere.
std::vector<Bytes> read_seeds(const std::vector<fs::path>& inputs) {
  std::vector<fs::path> files;
  for (const fs::path& input : inputs) {
    if (!fs::is_directory(input))
      files.push_back(input);
    else
      for (const fs::directory_entry& entry : fs::directory_iterator(input)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> seeds;
  for (const fs::path& file : files) seeds.push_back(read_bytes(file));
  return seeds;
}

Options read_options(int count, char** words) {
  Options options;
  if (const char* seconds = std::getenv("WARPSIGHT_FUZZ_SECONDS")) options.seconds = std::atof(seconds);
  for (int i = 2; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--seconds" && i + 1 < count)
      options.seconds = std::atof(words[++i]);
    else if (word == "--seed" && i + 1 < count)
      options.seed = std::strtoull(words[++i], nullptr, 10);
    else
      options.inputs.emplace_back(word);
  }
  return options;
}

uint64_t run_mutations(const std::vector<Bytes>& seeds, const Options& options) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  ws::fuzz::Random random(options.seed);
  uint64_t runs = 0;
  for (; Clock::now() < end; ++runs) {
    const Bytes& seed = seeds[random() % seeds.size()];
    const Bytes& other = seeds[random() % seeds.size()];
    run_one(ws::fuzz::mutate(seed, other, kMostBytes, random));
  }
  return runs;
}

}  // namespace

int main(int count, char** words) {
  target = count > 1 ? words[1] : "";
  const Options options = read_options(count, words);
  const std::vector<Bytes> seeds = read_seeds(options.inputs);
  if (seeds.empty() || !ws::fuzz::targets().contains(target)) {
    std::fprintf(stderr, "usage: %s TARGET [--seconds N] [--seed N] FOLDER|FILE...\n", words[0]);
    return 2;
  }
  watch_for_finds();
  run_one({});
  for (const Bytes& seed : seeds) run_one(seed);
  const uint64_t runs = run_mutations(seeds, options);
  std::printf("%s: %zu seeds, %llu changed inputs, nothing found\n", target.c_str(), seeds.size(),
              static_cast<unsigned long long>(runs));
  return 0;
}

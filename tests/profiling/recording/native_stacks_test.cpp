#include "tests/support/sanitizers.h"
#include "profiling/recording/native_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/launch_frames.h"
#include "profiling/recording/native_code.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/kernel_names.h"

namespace ws::prof::spinning {

std::atomic<bool> g_over{false};
std::atomic<pid_t> g_task{0};
std::atomic<uint64_t> g_count{0};

__attribute__((noinline)) uint64_t innermost(uint64_t n) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; ++i) {
    sum += i * (sum ^ n);
    __asm__ volatile("" : "+r"(sum));
  }
  g_count += sum;
  return sum;
}
// Its frame has a size that the compiler does not know: it is found by another register than the stack's.
__attribute__((noinline)) uint64_t middle(uint64_t n) {
  auto* const space = static_cast<volatile char*>(__builtin_alloca(64 + n % 64));
  space[0] = 1;
  return innermost(n * 100) + static_cast<uint64_t>(space[0]);
}
struct Outer {
  template <class T>
  __attribute__((noinline)) T operator()(T n) const {
    return static_cast<T>(middle(static_cast<uint64_t>(n)) + 1);
  }
};

void work() {
  g_task = static_cast<pid_t>(syscall(SYS_gettid));
  while (!g_over) Outer()(1000L);
}

}  // namespace ws::prof::spinning

extern "C" unsigned short call_in_driver(unsigned short (*called)(unsigned short), unsigned short op);

namespace ws::prof {
namespace {

#if defined(__x86_64__)
// Stacks of one thread, as text, innermost first.
std::set<std::string> stacks_of(NativeStacks& natives, pid_t task, int rounds) {
  std::set<std::string> stacks;
  for (int i = 0; i < rounds; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    natives.ask();
    for (const NativeStack& stack : natives.take()) {
      std::string text;
      for (const uint64_t code : stack.code) text += frame_text(NativeCode::instance().frame(code)) + " < ";
      if (stack.task == task) stacks.insert(text);
    }
  }
  return stacks;
}

int64_t ran_ns(pid_t task) {
  constexpr unsigned kOfThread = 6;  // the kernel's way to name the clock of any thread
  timespec time{};
  clock_gettime(static_cast<clockid_t>(~static_cast<unsigned>(task) << 3 | kOfThread), &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// However busy the machine is.
void wait_until_all_have_run(const std::vector<pid_t>& tasks, int64_t ns) {
  std::vector<int64_t> wanted;
  for (const pid_t task : tasks) wanted.push_back(ran_ns(task) + ns);
  for (size_t i = 0; i < tasks.size(); ++i)
    while (ran_ns(tasks[i]) < wanted[i]) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

OpTag g_op = kNoOp;

[[gnu::noipa]] void launches(OpTag op) {
  g_op = with_native_frames(op);
  asm volatile("" ::: "memory");  // no tail call
}
[[gnu::noipa]] void launches_from_here(OpTag op) {
  launches(op);
  asm volatile("" ::: "memory");
}
[[gnu::noipa]] void launches_from_there(OpTag op) {
  auto* const space = static_cast<volatile char*>(__builtin_alloca(512));  // at another depth
  space[0] = 1;
  launches_from_here(op);
  space[1] = 2;
}

std::string functions_of(OpTag op) {
  std::string text;
  const OpInfo info = op_info(op);
  for (const CodeFrame& frame : stack_of(info)) text += frame.function + ";";
  return text;
}

// What launches has the functions that led to it, behind the line of the program. A stack that was seen is known again.
TEST(LaunchFrames, AnOpHasTheFunctionsThatLaunchedIt) {
  if (!NativeCode::kFollows) GTEST_SKIP() << "stacks of this processor are not followed";
  const OpTag line = ProgramRanges::instance().line(*stack_from_text("train.py:3 in step"));
  launches_from_here(line);
  const OpTag here = g_op;
  EXPECT_THAT(functions_of(here), testing::StartsWith("step;"));
  EXPECT_THAT(functions_of(here), testing::HasSubstr("launches_from_here;"));
  EXPECT_EQ(line_of(op_info(here)), "train.py:3 in step");
  launches_from_here(line);
  EXPECT_EQ(g_op, here);
  launches_from_there(line);
  EXPECT_NE(g_op, here);
  EXPECT_THAT(functions_of(g_op), testing::HasSubstr("launches_from_there;ws::prof::{anonymous}::launches_from_here;"));
  std::thread([&] { launches(line); }).join();  // a stack that ends soon
  EXPECT_THAT(functions_of(g_op), testing::Not(testing::HasSubstr("launches_from")));
}

TEST(LaunchFrames, AProgramWithoutPythonHasItsOwnFunctionAsLine) {
  if (!NativeCode::kFollows) GTEST_SKIP() << "stacks of this processor are not followed";
  launches_from_here(kNoOp);
  EXPECT_THAT(op_info(g_op).name, testing::HasSubstr("launches"));
  EXPECT_THAT(line_of(op_info(g_op)), testing::HasSubstr("profiling_collector_test in "));
}

// CUDA's own files stand between: NVIDIA's driver for an H100 does not describe all of its frames.
[[gnu::noipa]] void launches_through_driver(OpTag op) {
  g_op = call_in_driver(with_native_frames, op);
  asm volatile("" ::: "memory");
}
TEST(LaunchFrames, FramesBehindADriverThatDescribesNoneAreFound) {
  if (!NativeCode::kFollows) GTEST_SKIP() << "stacks of this processor are not followed";
  if (test::kSanitized) GTEST_SKIP() << "old words of earlier calls lie between the variables that a sanitizer watches";
  const OpTag line = ProgramRanges::instance().line(*stack_from_text("train.py:12 in step"));
  launches_through_driver(line);
  EXPECT_THAT(functions_of(g_op), testing::StartsWith("step;"));
  EXPECT_THAT(functions_of(g_op), testing::EndsWith("launches_through_driver;"));
  const OpTag here = g_op;
  launches_through_driver(line);
  EXPECT_EQ(g_op, here);
  launches_through_driver(kNoOp);
  EXPECT_THAT(line_of(op_info(g_op)), testing::HasSubstr("launches_through_driver"));
}

// A look at the addresses, not at the tables: most of the time that a program launches.
TEST(LaunchFrames, AKnownStackIsFoundQuickly) {
  if (!NativeCode::kFollows) GTEST_SKIP() << "stacks of this processor are not followed";
  const OpTag line = ProgramRanges::instance().line(*stack_from_text("train.py:9 in step"));
  const auto fastest_ns = [&](int calls, const auto& each) {
    int64_t best = INT64_MAX;
    for (int round = 0; round < 20; ++round) {
      const int64_t begin = steady_ns();
      for (int i = 0; i < calls; ++i) each();
      best = std::min(best, (steady_ns() - begin) / calls);
    }
    return best;
  };
  launches_from_here(line);
  const int64_t known = fastest_ns(1000, [&] { launches_from_here(line); });
  const int64_t followed = fastest_ns(20, [&] {
    ucontext_t context;
    getcontext(&context);
    NativeCode::Registers registers;
    copy_registers(context, registers);
    NativeCode::instance().follow(registers, [](uint64_t at) { return *reinterpret_cast<const uint64_t*>(at); });
  });
  RecordProperty("known_ns", std::to_string(known));
  EXPECT_LT(known * 3, followed) << known << " ns, to follow it " << followed << " ns";
}

TEST(NativeStacks, FollowAThreadThatRuns) {
  const auto natives = NativeStacks::begin();
  ASSERT_TRUE(natives);
  spinning::g_over = false, spinning::g_task = 0;
  std::thread other(spinning::work);
  while (spinning::g_task == 0) std::this_thread::yield();
  const auto stacks = stacks_of(*natives, spinning::g_task, 300);
  spinning::g_over = true;
  other.join();
  const std::string file = std::filesystem::read_symlink("/proc/self/exe").filename().string();
  const std::string wanted = "ws::prof::spinning::innermost (" + file + ") < ws::prof::spinning::middle (" + file +
                             ") < ws::prof::spinning::Outer::operator() (" + file + ") < ws::prof::spinning::work (" + file + ")";
  EXPECT_TRUE(std::ranges::any_of(stacks, [&](const std::string& stack) { return stack.starts_with(wanted); }))
      << wanted << "\nnot among " << stacks.size() << ", such as " << (stacks.empty() ? "" : *stacks.begin());
}

TEST(NativeStacks, LeaveAThreadAloneThatWaits) {
  const auto natives = NativeStacks::begin();
  ASSERT_TRUE(natives);
  std::atomic<bool> over{false};
  std::atomic<int> interrupted{0}, sleeps{0};
  std::thread other([&] {
    while (!over) {
      spinning::innermost(500'000);
      interrupted += usleep(1500) != 0 && errno == EINTR;
      ++sleeps;
    }
  });
  for (int i = 0; i < 500; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    natives->ask();
    natives->take();
  }
  over = true;
  other.join();
  ASSERT_GT(sleeps, 20);
  EXPECT_LT(interrupted, sleeps / 10 + 3) << "of " << sleeps;
}

// A processor with many cores has more threads that run than can be asked at a time.
TEST(NativeStacks, OfManyThreadsAllAreAskedAndSomeFirst) {
  const auto natives = NativeStacks::begin();
  ASSERT_TRUE(natives);
  constexpr size_t kThreads = 24, kMostRounds = 12;
  spinning::g_over = false;
  std::vector<std::thread> threads;
  std::vector<pid_t> tasks;
  for (size_t i = 0; i < kThreads; ++i) {
    spinning::g_task = 0;
    threads.emplace_back(spinning::work);
    while (spinning::g_task == 0) std::this_thread::yield();
    tasks.push_back(spinning::g_task);
  }
  std::map<pid_t, size_t> answers;
  natives->ask();
  for (size_t round = 1; round <= kMostRounds && answers.size() < kThreads; ++round) {
    wait_until_all_have_run(tasks, 1'000'000);
    natives->ask({tasks.back()});
    wait_until_all_have_run(tasks, 1'000'000);  // a thread answers when it runs
    for (const NativeStack& stack : natives->take()) ++answers[stack.task];
    EXPECT_EQ(answers[tasks.back()], round);
  }
  spinning::g_over = true;
  for (std::thread& thread : threads) thread.join();
  for (const pid_t task : tasks) EXPECT_GE(answers[task], 1u);
}

// The program may take the signal for itself at any time.
TEST(NativeStacks, AskNobodyOnceTheProgramHasTheSignal) {
  const auto natives = NativeStacks::begin();
  ASSERT_TRUE(natives);
  static std::atomic<int> arrived{0};
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) std::signal(signal, [](int) { ++arrived; });
  spinning::g_over = false, spinning::g_task = 0;
  std::thread other(spinning::work);
  while (spinning::g_task == 0) std::this_thread::yield();
  EXPECT_TRUE(stacks_of(*natives, spinning::g_task, 50).empty());
  EXPECT_EQ(NativeStacks::begin(), nullptr) << "no signal is left";
  spinning::g_over = true;
  other.join();
  EXPECT_EQ(arrived, 0);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) std::signal(signal, SIG_DFL);
}
#endif

TEST(ElfFile, NamesAreShort) {
  EXPECT_EQ(short_function_name("main"), "main");
  EXPECT_EQ(short_function_name("f"), "f");
  EXPECT_EQ(short_function_name("_ZN2at4_ops2mm4callERKNS_6TensorES4_"), "at::_ops::mm::call");
  EXPECT_EQ(short_function_name("_ZN12_GLOBAL__N_13addIfEEvT_"), "{anonymous}::add");
  EXPECT_EQ(short_function_name("_ZlsRSoRKSs"), "operator<<");
  EXPECT_EQ(short_function_name("_ZNSt17_Function_handlerIFvvEZ4mainEUlvE_E9_M_invokeERKSt9_Any_data"), "std::_Function_handler::_M_invoke");
  EXPECT_EQ(short_function_name("_Z not a name"), "_Z not a name");
  // Cut off, or in a newer form of names: what comes before the first template argument.
  EXPECT_EQ(short_function_name("_ZN3c1012function_refIFvPPcPKlllEE11callback_fnIZN2at18TensorIt"), "c10::function_ref<…>");
  EXPECT_EQ(short_function_name("_ZNK3xla14HloInstruction14backend_configINS_3gpu16GpuBackendConfigETnPNSt9enable"),
            "xla::HloInstruction::backend_config<…>");
  EXPECT_EQ(short_function_name("_ZNSt4pairINSt7__cxx11XX"), "std::pair<…>");
  EXPECT_EQ(short_function_name("_ZN12_GLOBAL__N_13addITnT_XXE"), "{anonymous}::add<…>");
  EXPECT_EQ(short_function_name("_ZN99"), "_ZN99");
}

// No file, no ELF file, and this program cut short or changed at each of many places: only missing answers.
TEST(ElfFile, BadFilesGiveNoAnswers) {
  EXPECT_EQ(ElfFile::open("/no such file"), nullptr);
  const auto path = std::filesystem::temp_directory_path() / ("warpsight-elf-" + std::to_string(getpid()));
  std::ofstream(path) << "no ELF file";
  EXPECT_EQ(ElfFile::open(path), nullptr);
  std::ifstream self("/proc/self/exe", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(self)), {});
  for (size_t i = 0; i < 60; ++i) {
    std::string bytes = whole.substr(0, i % 2 ? whole.size() : whole.size() * i / 60);
    for (size_t at = 16 + i; at < bytes.size(); at += i % 4 ? 997 : 97) bytes[at] = static_cast<char>(at * i);
    std::ofstream(path, std::ios::binary) << bytes;
    if (const auto file = ElfFile::open(path))
      for (uint64_t address = 0; address < (1 << 22); address += 65'537) file->function_at(address), unwind_rule(*file, address);
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ws::prof

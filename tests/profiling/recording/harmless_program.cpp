// A program that does to its descriptors, processes, threads and limits what programs do. harmless_test.py runs it bare and
// recorded, and compares what it prints, writes and ends with. usage: harmless_program ACTION MOMENT
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace {

std::string g_self;

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(1, text.data(), text.size()) < 0) return;
}

void wait_ms(int ms) { usleep(static_cast<useconds_t>(ms) * 1000); }

void close_range_of(int first, int last) {
  for (int file = first; file < last; ++file) close(file);
}

// Opens files, which get the numbers that are free, and writes them in pieces with pauses, so that everybody else could write, too.
void work(const char* name, int files = 12) {
  std::vector<int> open_files;
  std::string numbers;
  for (int i = 0; i < files; ++i) {
    const int file = open((std::string(name) + std::to_string(i)).c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    open_files.push_back(file);
    numbers += " " + std::to_string(file);
  }
  say(std::string(name) + " has" + numbers);
  int refused = 0;
  for (int piece = 0; piece < 30; ++piece) {
    for (size_t i = 0; i < open_files.size(); ++i) {
      const std::string bytes(4096, static_cast<char>('a' + (piece + static_cast<int>(i)) % 26));
      if (open_files[i] >= 0 && write(open_files[i], bytes.data(), bytes.size()) < 0) ++refused;
    }
    wait_ms(3);
  }
  for (const int file : open_files)
    if (file >= 0 && close(file) != 0) say("a file was closed by somebody else");
  say(std::to_string(refused) + " writes were refused");
}

void duplicate_over(int first, int last) {
  const int file = open("over", O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int number = first; number < last; ++number)
    if (number != file) dup2(file, number);
  for (int i = 0; i < 40; ++i) {
    if (write(first + i % (last - first), "0123456789", 10) != 10) say("a write is refused");
    wait_ms(3);
  }
  close_range_of(first, last);
}

void exhaust() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 200;
  setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<int> all;
  for (int file = dup(1); file >= 0; file = dup(1)) all.push_back(file);
  say(std::to_string(all.size()) + " more descriptors, then " + std::strerror(errno));
  wait_ms(120);
  for (const int file : all) close(file);
}

void limit_files(rlim_t most) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = most;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void limit_size() {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit small{50'000, 50'000};
  setrlimit(RLIMIT_FSIZE, &small);
}

int child(void (*act)(), bool leaves) {
  const pid_t number = fork();
  if (number == 0) {
    act();
    leaves ? _exit(3) : exit(4);
  }
  int status = 0;
  waitpid(number, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void any_child() {
  int status = 0;
  const pid_t number = waitpid(-1, &status, WNOHANG | __WALL);
  const std::string state = number < 0 ? std::string("no child: ") + std::strerror(errno) : number == 0 ? "a child runs" : "a child ended";
  say(state);
}

void daemonise() {
  if (fork() != 0) _exit(0);
  setsid();
  if (fork() != 0) _exit(0);
  close_range_of(0, 1024);
  open("/dev/null", O_RDWR), dup(0), dup(0);
  work("daemon");
  std::ofstream("done") << "yes";
  _exit(0);
}

void execute(const char* action) {
  char* words[] = {g_self.data(), const_cast<char*>(action), const_cast<char*>("now"), nullptr};
  execv(words[0], words);
}

void run_by_vfork() {
  char* words[] = {const_cast<char*>("/bin/echo"), const_cast<char*>("by vfork"), nullptr};
  const pid_t number = vfork();
  if (number == 0) {
    execv(words[0], words);
    _exit(127);
  }
  int status = 0;
  waitpid(number, &status, 0);
  say("it ended with " + std::to_string(status));
}

void run_by_spawn() {
  char* words[] = {const_cast<char*>("/bin/echo"), const_cast<char*>("by spawn"), nullptr};
  pid_t number = 0;
  const int failed = posix_spawn(&number, words[0], nullptr, nullptr, words, environ);
  int status = 0;
  waitpid(number, &status, 0);
  say(std::to_string(failed));
  say("it ended with " + std::to_string(status));
}

int g_ended = 0;
void count_children() {
  struct sigaction action {};
  action.sa_handler = [](int) { ++g_ended; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGCHLD, &action, nullptr);
  wait_ms(150);
  say(std::to_string(g_ended) + " signals of children");
  child([] {}, true);
  say(std::to_string(g_ended) + " signals of children");
}

void list_descriptors() {
  std::string numbers;
  for (int file = 0; file < 2048; ++file)
    if (fcntl(file, F_GETFD) >= 0) numbers += " " + std::to_string(file);
  say("open:" + numbers);
}

int recurse(int depth) {
  volatile char page[512];
  page[depth % 512] = static_cast<char>(depth);
  return depth == 0 ? page[0] : recurse(depth - 1) + page[depth % 512] % 2;
}

void threads_at_exit() {
  for (int i = 0; i < 8; ++i)
    std::thread([] {
      for (;;) wait_ms(1);
    }).detach();
}

void blocked_signals() {
  sigset_t every, now;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, nullptr);
  work("blocked");
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  say(std::to_string(sigismember(&now, SIGTERM)));
}

void alarms() {
  signal(SIGALRM, [](int) {});
  const itimerval each{{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &each, nullptr);
  work("alarm", 3);
  const itimerval none{};
  setitimer(ITIMER_REAL, &none, nullptr);
}

const std::map<std::string, void (*)()> kActions{
    {"nothing", [] { work("file"); }},
    {"close-1024", [] { close_range_of(3, 1024); work("file"); }},
    {"close-65536", [] { close_range_of(3, 65536); work("file"); }},
    {"close-all", [] { close_range_of(0, 65536); work("file"); }},
    {"close_range", [] { syscall(436, 3u, ~0u, 0u); work("file"); }},
    {"close-often", [] { for (int i = 0; i < 40; ++i) { close_range_of(3, 1024); wait_ms(2); } work("file"); }},
    {"dup-64", [] { duplicate_over(3, 64); work("file"); }},
    {"dup-1024", [] { duplicate_over(3, 1024); work("file"); }},
    {"exhaust", [] { exhaust(); work("file"); }},
    {"few-files", [] { limit_files(8); work("file"); }},
    {"no-files", [] { limit_files(0); work("file"); }},
    {"small-files", [] { limit_size(); work("file"); }},
    {"list", [] { list_descriptors(); work("file", 3); list_descriptors(); }},
    {"sockets", [] {
       close_range_of(3, 1024);
       int pair[2];
       for (int i = 0; i < 20; ++i) {
         if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || write(pair[0], "abc", 3) != 3) say("no socket");
         wait_ms(8);
         char got[64];
         say(std::to_string(read(pair[1], got, sizeof got)));
       }
     }},
    {"pipes", [] {
       close_range_of(3, 1024);
       int ends[2];
       if (pipe(ends) == 0 && write(ends[1], "abc", 3) == 3) wait_ms(200);
       char got[64];
       say(std::to_string(read(ends[0], got, sizeof got)));
     }},
    {"children", [] { any_child(); wait_ms(100); any_child(); }},
    {"signals-of-children", count_children},
    {"fork", [] { say(std::to_string(child([] { work("child"); }, true))); work("file"); }},
    {"fork-exit", [] { say(std::to_string(child([] { work("child"); }, false))); work("file"); }},
    {"fork-close", [] { say(std::to_string(child([] { close_range_of(3, 1024); work("child"); }, false))); work("file"); }},
    {"fork-often", [] { for (int i = 0; i < 30; ++i) say(std::to_string(child([] {}, i % 2 == 0))); }},
    {"vfork", run_by_vfork},
    {"spawn", run_by_spawn},
    {"exec", [] { execute("nothing"); }},
    {"close-exec", [] { close_range_of(3, 1024); execute("close-1024"); }},
    {"daemon", daemonise},
    {"threads", threads_at_exit},
    {"deep", [] { say(std::to_string(recurse(9000))); work("file", 2); }},
    {"blocked", blocked_signals},
    {"alarms", alarms},
    {"leave", [] { work("file", 2); _exit(9); }},
    {"quick-exit", [] { work("file", 2); std::quick_exit(8); }},
    {"abort", [] { const rlimit none{}; setrlimit(RLIMIT_CORE, &none); work("file", 2); abort(); }},
    {"killed", [] { work("file", 2); raise(SIGKILL); }},
    {"terminated", [] { work("file", 2); raise(SIGTERM); }},
    {"main-thread-ends", [] { std::thread([] { wait_ms(150); work("late", 3); exit(6); }).detach(); pthread_exit(nullptr); }},
    {"chdir", [] { if (mkdir("away", 0700) == 0 && chdir("away") == 0) work("file", 2); }},
    {"gone", [] { if (mkdir("away", 0700) == 0 && chdir("away") == 0 && rmdir("../away") == 0) { say("gone"); wait_ms(150); } }},
    {"chroot", [] { if (mkdir("root", 0700) == 0 && chroot("root") == 0 && chdir("/") == 0) work("file", 2); else say("not root"); }},
    {"umask", [] { umask(0777); work("file", 2); umask(022); }},
    {"session", [] { setsid(); setpgid(0, 0); work("file", 2); }},
    {"undumpable", [] { prctl(PR_SET_DUMPABLE, 0); work("file", 2); }},
    {"subreaper", [] { prctl(PR_SET_CHILD_SUBREAPER, 1); any_child(); wait_ms(100); any_child(); }},
    {"one-core", [] {
       cpu_set_t one;
       CPU_ZERO(&one);
       CPU_SET(0, &one);
       sched_setaffinity(0, sizeof one, &one);
       work("file", 2);
     }},
};

void (*g_late)() = nullptr;

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    for (const auto& [name, act] : kActions) say(name);
    return 0;
  }
  g_self = words[0];
  const auto found = kActions.find(words[1]);
  if (found == kActions.end()) return 99;
  void (*const act)() = found->second;
  const std::string moment = words[2];
  if (moment == "soon") wait_ms(20);
  if (moment == "later") wait_ms(250);
  if (moment == "thread") {
    std::thread(act).join();
  } else if (moment == "exit") {
    g_late = act, std::atexit([] { g_late(); });
  } else if (moment == "child") {
    say("the child ended with " + std::to_string(child(act, true)));
  } else if (moment == "twice") {
    act(), wait_ms(70), act();
  } else {
    act();
  }
  say("the end");
  return 7;
}

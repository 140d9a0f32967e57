#include "app/cli/restart.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "profiling/base/failure.h"

namespace ws::cli {

constexpr const char* kAnew = "WARPSIGHT_STARTED_ANEW";

bool started_anew() { return std::getenv(kAnew) != nullptr; }

void start_anew() {
  setenv(kAnew, "1", 1);
  std::vector<std::string> words;
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
  throw Failure(std::string("The program could not restart: ") + std::strerror(errno));
}

}  // namespace ws::cli

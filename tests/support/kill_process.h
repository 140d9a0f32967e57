// kill() takes 0 for "all of my process group" and -1 for "all processes": a number that a test did not find would end the test's
// runner. This one refuses both.
#pragma once
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace ws::test {

inline bool kill_process(pid_t process, int signal = SIGKILL) { return process > 1 && kill(process, signal) == 0; }

// The processes of a recording, as the lock file beside its run names them; 0: not there yet.
struct Recorders {
  pid_t writer = 0, program = 0;
  static Recorders of(const std::filesystem::path& file) {
    std::ifstream lock(file.parent_path() / ("." + file.filename().string() + ".owner"));
    Recorders found;
    std::string boot, start, host;
    lock >> boot >> found.writer >> start >> host >> found.program;
    return found;
  }
};

}  // namespace ws::test

// warpsight-writer: writes the run file of a recorded program. The library in the program starts it, see writer_process.h.
#include <signal.h>

#include <cstdlib>
#include <exception>

#include "profiling/recording/program_writer.h"

// It ends once the program has ended, not when a terminal or a service does. A limit on the size of files is an error of the
// write, not a signal.
int main(int count, char** words) {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP, SIGXFSZ}) signal(number, SIG_IGN);
  try {
    ws::prof::FrameRing ring(count == 2 ? std::atoi(words[1]) : -1);
    return ws::prof::write_run(ring) ? 0 : 1;
  } catch (const std::exception&) {  // somebody else started it
    return 1;
  }
}

// The side of the GPU: answers one line over two streams. Whatever runs there is a process of its own; this is only the
// connection, and as many of them as people like may stand at a time.
#pragma once
#include <string>

namespace ws::app {

std::string usual_runs_folder();  // as the window takes it

// Until `in` closes. Throws Failure when what comes is no protocol.
void serve(int in, int out, const std::string& runs);

}  // namespace ws::app

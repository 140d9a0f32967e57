// The server on the machine with the GPU: it answers requests of one connection over two streams. Jobs run in their
// own processes, and any number of connections can be open at a time.
#pragma once
#include <chrono>
#include <string>

namespace ws::app {


// Runs until `in` closes, or until nothing arrived for `silence`: a client asks every two seconds, so its network is
// gone. Throws Failure if the input does not follow the protocol.
void serve(int in, int out, const std::string& runs, std::chrono::milliseconds silence = std::chrono::minutes(5));

}  // namespace ws::app

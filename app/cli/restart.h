// The same command in a new process: what a driver asks for after a fault on the GPU.
#pragma once

namespace ws::cli {

[[noreturn]] void start_anew();  // with the same arguments and process id; throws Failure
bool started_anew();             // this process is such a one

}  // namespace ws::cli

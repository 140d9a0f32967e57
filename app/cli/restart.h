// Starts the same command in a new process image. A driver needs this after a fault on the GPU.
#pragma once

namespace ws::cli {

[[noreturn]] void start_anew();  // same arguments and process id; throws Failure
bool started_anew();             // True if this process was started by start_anew()

}  // namespace ws::cli

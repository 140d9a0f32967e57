// Completes the recording of a program that ended too early to do it.
#pragma once
#include <string>

namespace ws::prof {

// Finds the steps of a run file whose status is still "running", and sets it to "stopped". Only for a file that no
// process writes any more. Returns false if there was nothing to do. Throws Failure; the file is then unchanged.
bool finish_recording(const std::string& path, const std::string& why);

}  // namespace ws::prof

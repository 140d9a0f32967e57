// What is left of a recording whose program did not live to end it.
#pragma once
#include <string>

namespace ws::prof {

// Finds the steps of a run file that still says it is being written, and says that it was stopped. Only for a file that
// nobody writes any more. False when there was nothing to do. Throws Failure; the file then stays as it was.
bool finish_recording(const std::string& path, const std::string& why);

}  // namespace ws::prof

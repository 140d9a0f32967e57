// The name of a recording.
#pragma once
#include <string>
#include <vector>

namespace ws::prof {

// The program, or the script that Python runs. {"python3", "-u", "train.py"} is "train.py".
std::string name_of_command(const std::vector<std::string>& command);

}  // namespace ws::prof

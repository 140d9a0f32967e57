// The words of a recorded command: its name, and which of them are secret.
#pragma once
#include <string>
#include <vector>

namespace ws::prof {

// The program, or the script that Python runs. {"python3", "-u", "train.py"} is "train.py".
std::string name_of_command(const std::vector<std::string>& command);

inline constexpr const char* kMask = "•••";

// Values of options and variables with such names, known forms of keys, and passwords in addresses are replaced by kMask.
std::vector<std::string> without_secrets(std::vector<std::string> command);
// Throws Failure if a word was masked: it cannot be run again.
void refuse_masked(const std::vector<std::string>& command);

}  // namespace ws::prof

// Masks what looks like a key, a token or a password in a command, because run files and pages are handed to others.
#pragma once
#include <string>
#include <vector>

namespace ws::prof {

inline constexpr const char* kMask = "•••";

// Values of options and variables with such names, known forms of keys, and passwords in addresses are replaced by kMask.
std::vector<std::string> without_secrets(std::vector<std::string> command);
// Throws Failure if a word was masked: it cannot be run again.
void refuse_masked(const std::vector<std::string>& command);

}  // namespace ws::prof

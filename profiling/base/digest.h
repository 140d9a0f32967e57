// SHA-256 and base64, for a page whose browser accepts only the script that we wrote.
#pragma once
#include <string>
#include <string_view>

namespace ws {

std::string sha256(std::string_view bytes);  // 32 bytes
std::string base64(std::string_view bytes);

}  // namespace ws

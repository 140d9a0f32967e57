// The source file of a place in a recorded program, with the time of each of its lines.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ws::prof {

struct SourcePlace {
  std::string path;  // as recorded: below the program's folder, or whole
  int line = 0;
  bool operator==(const SourcePlace&) const = default;
};
std::optional<SourcePlace> source_place(std::string_view place);  // "net.py:12 in Net.forward"

struct SourceFile {
  std::vector<std::string> lines;
  std::string problem;   // why there are no lines: "net.py is not on this machine."
  bool changed = false;  // since it was recorded
};
// `folder`: where the program ran. `recorded_s`: when, in seconds since 1970.
SourceFile source_of_text(std::string_view text);  // of code that is in no file
SourceFile read_source(const std::string& folder, const std::string& path, int64_t recorded_s);

}  // namespace ws::prof

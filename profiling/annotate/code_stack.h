// The source lines and functions through which a program reached an op.
#pragma once
#include <compare>
#include <cstddef>
#include <string>
#include <vector>

namespace ws::prof {

struct CodeFrame {
  std::string path;  // of a source file; of a library, if the line is not known
  int line = 0;      // 0: not known
  std::string function;
  auto operator<=>(const CodeFrame&) const = default;
};

struct CodeStack {
  std::vector<CodeFrame> frames;  // outermost first
  size_t own = 0;  // the frame that the op stands for; it calls the later ones. frames.size(): none
  bool operator==(const CodeStack&) const = default;
};

}  // namespace ws::prof

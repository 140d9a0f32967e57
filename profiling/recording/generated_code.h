// Code that torch.compile (Inductor) generated: which ops of the program a generated kernel stands for. Inductor writes
// them into a comment above each launch.
#pragma once
#include <string>

namespace ws::prof {

// `function`: with its class, where Python has it. Reads the begin of the file.
bool is_generated(const std::string& function, const std::string& path);
// "aten.relu + aten.add", or "" if there is no such comment above the line.
std::string generated_ops(const std::string& path, int line);
// Takes a comment: "# Source Nodes: [relu, add], Original ATen: [aten.relu, aten.add]".
std::string ops_of_comment(const std::string& comment);

}  // namespace ws::prof

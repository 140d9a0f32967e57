// Opens the window: `warpsight`, `warpsight a.wsrun`, `warpsight ssh://me@host`.
#pragma once

namespace ws::cli {

// True if the words name no command: there are none, or the first one is a file, a folder or a machine.
bool asks_for_window(int argc, char** argv);
// Becomes the window's program, which is installed beside this one. Throws Failure if it is not.
[[noreturn]] void open_window(char** argv);

}  // namespace ws::cli

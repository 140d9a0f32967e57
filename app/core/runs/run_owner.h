// Who writes a run file: tells a run that trains in another window from one whose program was killed.
#pragma once
#include <string>

namespace ws::app {

std::string writer_mark();                      // of this process: machine, boot, process and its start
bool writer_is_alive(const std::string& mark);  // on this machine; empty: false

}  // namespace ws::app

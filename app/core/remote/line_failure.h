// Returns in one sentence why a line to another machine cannot be made.
#pragma once
#include <string>

#include "app/core/remote/remote_address.h"

namespace ws::app {

// `status` and `errors` of the process that was the line: ssh, or the program there. `noise`: it said something, but it is
// not Warpsight.
std::string why_no_line(const RemoteAddress& address, int status, const std::string& errors, bool noise);
bool asks_a_person(int status, const std::string& errors);  // true if another attempt would only ask again
// `greeting` is what the server says first. Returns "" if it speaks as this program does.
std::string why_other_version(const RemoteAddress& address, const std::string& greeting);

}  // namespace ws::app

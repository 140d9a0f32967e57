#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "app/core/remote/remote_link.h"

namespace ws::app {

// Copies a remote file to this machine, completely or not at all, and continues after cuts. `what` is as for
// RemoteLink::follow(), without "what". `progress` gets the bytes so far and returns false to stop. Throws Failure.
void fetch_file(RemoteLink& link, nlohmann::json what, const std::string& path,
                const std::function<bool(uint64_t bytes)>& progress = {});

}  // namespace ws::app

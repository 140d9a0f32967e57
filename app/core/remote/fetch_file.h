#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "app/core/remote/remote_link.h"
#include "profiling/base/file_identity.h"

namespace ws::app {

// Copies a remote file to this machine, completely or not at all, and continues after cuts. `what` is as for
// RemoteLink::follow(), without "what". `progress` gets the bytes so far and returns false to stop. `found` is as for
// write_whole_file(). Throws Failure.
void fetch_file(RemoteLink& link, nlohmann::json what, const std::string& path,
                const std::function<bool(uint64_t bytes)>& progress = {}, const std::optional<FoundFile>& found = {});

}  // namespace ws::app

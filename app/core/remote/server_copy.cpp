#include "app/core/remote/server_copy.h"

#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "datasets/locate.h"
#include "engine/devices/kernel_code.h"
#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/base/temporary_folder.h"
#include "profiling/base/process.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;

// Libraries that every Linux has, or must provide itself: the C library and the driver.
constexpr const char* kNeverCopied[] = {"linux-vdso", "ld-linux", "libc.", "libm.", "libdl.", "librt.", "libpthread.",
                                        "libutil.", "libresolv.", "libcuda."};

// The GPUs that the packages have machine code for (CMakePresets.json).
constexpr const char* kPackaged[] = {"8.0", "8.6", "8.9", "9.0"};

// Our lines have a prefix, because a shell profile may print other lines.
constexpr const char* kLook = R"sh(echo; echo "warpsight kind $(uname -s) $(uname -m)"
mkdir -p "$HOME"/.local/share/warpsight; echo "warpsight free $(df -Pk "$HOME"/.local/share/warpsight | awk 'END{print $4}')"
echo "warpsight gpu $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n1)"
for l in $( (ldconfig -p || /sbin/ldconfig -p) 2>/dev/null | awk '/=>/{print $1}' | sort -u); do echo "warpsight library $l"; done
echo "warpsight end")sh";

constexpr const char* kTake = R"sh(set -e; cd "$HOME"; d=COPY; rm -rf "$d.part"; mkdir -p "$d.part"; cd "$d.part"; tar -xf -
sha256sum --quiet -c MANIFEST >&2 || { echo "a file arrived damaged" >&2; exit 41; }
cd "$HOME"; rm -rf "$d"; mv "$d.part" "$d"; "$d/bin/warpsight" --version >/dev/null; echo; echo "warpsight end")sh";

constexpr const char* kStarter = R"sh(#!/bin/sh
d=$(dirname "$(readlink -f "$0")")/..
LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$d/lib" exec "$d/program/warpsight" "$@"
)sh";

[[noreturn]] void refuse(const RemoteAddress& to, const std::string& why) { throw Failure(to.place() + ": " + why); }

}  // namespace

ServerCopy::ServerCopy(RemoteAddress to, const std::string& program) : to_(std::move(to)) {
  if (!to_.pipe.empty()) throw Failure("A copy goes to ssh://user@host only.");
  const CommandOutput seen = output_of(to_.ssh(std::string("sh -c ") + shell_quoted(kLook)));
  if (seen.text.find("warpsight end") == seen.text.npos) refuse(to_, "it cannot be read: " + printable(last_line(seen.text)));
  std::vector<std::string> known;
  double free_kib = 0;
  std::string kind, line;
  for (std::istringstream in(seen.text); std::getline(in, line);) {
    if (line.starts_with("warpsight kind ")) kind = line.substr(15);
    if (line.starts_with("warpsight free ")) free_kib = std::atof(line.c_str() + 15);
    if (line.starts_with("warpsight gpu ")) compute_ = line.substr(14);
    if (line.starts_with("warpsight library ")) known.push_back(line.substr(18));
  }
  utsname here{};
  uname(&here);
  if (const std::string ours = std::string(here.sysname) + " " + here.machine; kind != ours)
    refuse(to_, "it is " + printable(kind) + ", this program is for " + ours + ". Build Warpsight there.");
  add(program, "program/warpsight");
  for (const fs::path& part : {collector_library(program), run_writer(program)})
    if (!part.empty()) add(part, "lib/warpsight/" + part.filename().string());
  add_libraries(known);
  for (const char* part : {"presets", "experiments", "lab", "page"}) add((resources_folder() / part).string(), std::string("share/warpsight/resources/") + part);
  add(python_folder().string(), "share/warpsight/python");
  for (const std::string& root : data::data_roots())
    if (fs::exists(root)) {
      for (const char* set : {"iris", "mnist"}) add(root + "/" + set, std::string("share/warpsight/datasets/") + set);
      break;
    }
  if (free_kib * 1024 < static_cast<double>(bytes_))
    refuse(to_, "the disk there is too full: " + bytes_text(static_cast<double>(bytes_)) + " are needed, " + bytes_text(free_kib * 1024) + " are free.");
}

void ServerCopy::add(const std::string& from, const std::string& to) {
  std::error_code none;
  if (!fs::exists(from, none)) return;
  if (!fs::is_directory(from, none)) {
    files_.push_back({from, to});
    bytes_ += fs::file_size(from, none);
    return;
  }
  for (const auto& entry : fs::recursive_directory_iterator(from, none))
    if (entry.is_regular_file(none)) add(entry.path().string(), to + "/" + fs::relative(entry.path(), from, none).string());
}

// Parses lines such as "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x…)".
void ServerCopy::add_libraries(const std::vector<std::string>& known_there) {
  std::string line;
  for (std::istringstream in(output_of({"ldd", files_.front().from}).text); std::getline(in, line);) {
    std::istringstream words(line);
    std::string name, arrow, path;
    words >> name >> arrow >> path;
    const bool never = std::ranges::any_of(kNeverCopied, [&](const char* begin) { return name.starts_with(begin); });
    if (path.find("/without_cuda/") != path.npos)  // answers that there is no driver, where no real one is found
      add(fs::canonical(path).string(), "lib/warpsight/without_cuda/" + name);
    else if (arrow == "=>" && path.starts_with('/') && !never && std::ranges::find(known_there, name) == known_there.end())
      add(fs::canonical(path).string(), "lib/" + name);
  }
}

std::string ServerCopy::note() const {
  if (compute_.find('.') == compute_.npos || !driver_compiles_for(compute_)) return {};
  const std::string note = "This build has no machine code for the GPU there (compute capability " + printable(compute_) +
                           "), so its driver compiles the kernels when they are first used, once.";
  if (std::ranges::find(kPackaged, compute_) == std::end(kPackaged)) return note;
  return note + " To copy machine code, run cmake/build_package in the source, then build/package/app/warpsight install --on " + to_.text() + ".";
}

std::string ServerCopy::question() const {
  return (note().empty() ? "" : note() + "\n") + "Copy Warpsight (" + bytes_text(static_cast<double>(bytes_)) + ") to ~/" + copy_folder() + " on " + to_.place() + "?";
}

void ServerCopy::copy() const {
  const TemporaryFolder stage;
  const auto place = [&stage](const std::string& name) {
    const fs::path path = stage.path() / name;
    fs::create_directories(path.parent_path());
    return path;
  };
  for (const File& file : files_) fs::create_symlink(fs::absolute(file.from), place(file.to));
  std::ofstream(place("bin/warpsight")) << kStarter;
  fs::permissions(stage.path() / "bin/warpsight", fs::perms::owner_all);
  std::string take = kTake;
  take.replace(take.find("COPY"), 4, shell_quoted(copy_folder()));
  std::string line = "cd " + shell_quoted(stage.path().string()) + " && find -L . -type f ! -name MANIFEST | xargs -d '\\n' sha256sum > MANIFEST && tar -chf - . |";
  for (const std::string& word : to_.ssh("sh -c " + shell_quoted(take))) line += " " + shell_quoted(word);
  const CommandOutput done = output_of({"sh", "-c", line});
  if (done.text.find("warpsight end") == done.text.npos) refuse(to_, "the copy did not succeed: " + printable(last_line(done.text)));
}

}  // namespace ws::app

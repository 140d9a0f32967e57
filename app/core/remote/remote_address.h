// Where another Warpscope runs: "ssh://user@host:22/folder", or "pipe:COMMAND" for any command whose streams reach one.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace ws::app {

struct RemoteAddress {
  std::string user, host, folder, run;  // folder: of the runs there; empty: the usual one. run: "a.wsrun", or empty
  int port = 0;                         // 0: what ssh takes by itself
  std::string pipe;                     // the command, instead of ssh
  std::string program = "warpscope-cli";

  std::vector<std::string> command() const;  // starts the other side and speaks over its standard streams
  std::vector<std::string> ssh(const std::string& command) const;  // runs a command of the shell there
  std::string place() const;                 // "user@host", for people
  std::string text() const;                  // as parse_remote() reads it, without the run
};

// Of the program that was copied there, in the home there.
std::string copy_folder();

bool is_remote(const std::string& text);
// "ssh://user@host[:port][/folder]"; a run there stands behind a colon, or is the last part: "ssh://host:a.wsrun",
// "ssh://host/folder/a.wsrun". Throws Failure.
RemoteAddress parse_remote(const std::string& text);

}  // namespace ws::app

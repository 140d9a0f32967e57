// The address of another Warpsight: "ssh://user@host:22/folder", or "pipe:COMMAND" for
// any command that connects to one.
#pragma once
#include <string>
#include <vector>

namespace ws::app {

struct RemoteAddress {
  std::string user, host, folder, run;  // folder: with the runs there; empty: the default. run: "a.wsrun", or empty
  int port = 0;                         // 0: the default of ssh
  std::string pipe;                     // a command instead of ssh
  std::string program = "warpsight";

  std::vector<std::string> command() const;  // starts the server there and connects to its standard streams
  std::vector<std::string> ssh(const std::string& command) const;  // runs a shell command there
  std::string place() const;                 // "user@host", to show
  std::string text() const;                  // as parse_remote() reads it, without the run
};

// The folder of the program that we copied there, relative to the home there.
std::string copy_folder();

bool is_remote(const std::string& text);
// Parses "ssh://user@host[:port][/folder]". A run follows a colon, or is the last part: "ssh://host:a.wsrun",
// "ssh://host/folder/a.wsrun". Throws Failure.
RemoteAddress parse_remote(const std::string& text);

// Why a line to another machine cannot be made, in one sentence.
// `status` and `errors` of the process that was the line: ssh, or the program there. `noise`: it said something, but it is
// not Warpsight.
std::string why_no_line(const RemoteAddress& address, int status, const std::string& errors, bool noise);
bool asks_a_person(int status, const std::string& errors);  // true if another attempt would only ask again
// `greeting` is what the server says first. Returns "" if it speaks as this program does.
std::string why_other_version(const RemoteAddress& address, const std::string& greeting);

}  // namespace ws::app

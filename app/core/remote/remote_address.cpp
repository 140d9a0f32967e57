#include "app/core/remote/remote_address.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "app/core/remote/frame.h"
#include "profiling/base/failure.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/version.h"

namespace ws::app {
namespace {

constexpr const char* kProgram = "warpsight";
constexpr std::string_view kSsh = "ssh://", kPipe = "pipe:", kRun = ".wsrun";

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Failure(text + ": " + why + "; expected ssh://user@host, ssh://host:port/folder or ssh://host:run.wsrun");
}

bool all_digits(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

// Checks a word for ssh's command line. It must not look like an option, nor contain characters that
// are special to a shell or ssh.
void check_word(const std::string& text, const std::string& word, const char* what) {
  if (word.starts_with('-')) refuse(text, std::string("the ") + what + " begins with a hyphen");
  for (const unsigned char c : word)
    if (c <= ' ' || c == 0x7f || std::string_view("'\"`$\\;|&<>()*?!").find(static_cast<char>(c)) != std::string_view::npos)
      refuse(text, std::string("the ") + what + " holds a letter that no " + what + " has");
}

// "host", "host:22", "host:a.wsrun", "[::1]:22"
void take_host(const std::string& text, std::string rest, RemoteAddress& to) {
  if (const size_t at = rest.rfind('@'); at != rest.npos) to.user = rest.substr(0, at), rest.erase(0, at + 1);
  const size_t bracket = rest.starts_with('[') ? rest.find(']') : rest.npos;
  const size_t colon = rest.find(':', bracket == rest.npos ? 0 : bracket);
  if (colon != rest.npos) {
    const std::string behind = rest.substr(colon + 1);
    if (all_digits(behind) && behind.size() <= 5)
      to.port = std::atoi(behind.c_str());
    else if (behind.ends_with(kRun))
      to.run = behind;
    else
      refuse(text, "a port or a run must follow the colon");
    if (to.run.empty() && (to.port < 1 || to.port > 65535)) refuse(text, "there is no port " + behind);
    rest.erase(colon);
  }
  to.host = bracket == rest.npos ? rest : rest.substr(1, bracket - 1);
  if (to.host.empty()) refuse(text, "has no host");
  check_word(text, to.host, "host");
  check_word(text, to.user, "user");
}

void take_folder(std::string path, RemoteAddress& to) {
  const size_t slash = path.rfind('/');
  if (to.run.empty() && path.ends_with(kRun)) to.run = path.substr(slash + 1), path.erase(slash);
  if (path.starts_with("/~")) path.erase(0, 1);  // ssh://host/~/runs
  if (path != "/") to.folder = path;
}

}  // namespace

std::string copy_folder() { return std::string(".local/share/warpsight/server/") + version(); }

bool is_remote(const std::string& text) { return text.starts_with(kSsh) || text.starts_with(kPipe); }

RemoteAddress parse_remote(const std::string& text) {
  RemoteAddress address;
  if (const char* program = std::getenv("WARPSIGHT_REMOTE_PROGRAM"); program && *program) address.program = program;
  if (text.starts_with(kPipe)) {
    address.pipe = text.substr(kPipe.size());
    if (address.pipe.empty()) refuse(text, "has no command");
    return address;
  }
  if (!text.starts_with(kSsh)) refuse(text, "is not an address");
  const std::string rest = text.substr(kSsh.size());
  const size_t slash = rest.find('/');
  take_host(text, rest.substr(0, slash), address);
  if (slash != rest.npos) take_folder(rest.substr(slash), address);
  return address;
}

std::vector<std::string> RemoteAddress::command() const {
  if (!pipe.empty()) return {"sh", "-c", pipe};
  std::string there = program + " serve";
  // A copied program has our version.
  if (program == kProgram) there = "PATH=\"$HOME\"/" + copy_folder() + "/bin:\"$PATH\" " + there;
  // Only the shell there knows its home directory.
  if (folder.starts_with("~/")) there += " --folder \"$HOME\"/" + shell_quoted(folder.substr(2));
  else if (!folder.empty()) there += " --folder " + shell_quoted(folder);
  return ssh(there);
}

std::vector<std::string> RemoteAddress::ssh(const std::string& command) const {
  std::vector<std::string> words{"ssh", "-T"};
  if (port != 0) words.insert(words.end(), {"-p", std::to_string(port)});
  words.insert(words.end(), {"--", place(), command});
  return words;
}

std::string RemoteAddress::place() const {
  constexpr size_t kMostLetters = 24;
  if (!pipe.empty()) return pipe.size() <= kMostLetters ? pipe : pipe.substr(0, kMostLetters) + "…";
  return (user.empty() ? "" : user + "@") + host;
}

std::string RemoteAddress::text() const {
  if (!pipe.empty()) return std::string(kPipe) + pipe;
  const std::string name = host.find(':') == host.npos ? host : "[" + host + "]";
  const std::string at = folder.starts_with('~') ? "/" + folder : folder;
  return std::string(kSsh) + (user.empty() ? "" : user + "@") + name + (port ? ":" + std::to_string(port) : "") + at;
}

namespace {

std::string last_line(std::string text) {
  while (!text.empty() && std::string_view("\r\n .").find(text.back()) != std::string_view::npos) text.pop_back();
  return printable(text.substr(text.find_last_of('\n') + 1));
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

std::string install_advice(const RemoteAddress& a) {
  if (!a.pipe.empty()) return "";
  return " Copy it there: warpsight install --on " + a.text() + "; or name it: WARPSIGHT_REMOTE_PROGRAM=/path/to/" +
         a.program.substr(a.program.rfind('/') + 1) + ".";
}

// What ssh says when no key and no password is accepted. Shells have other words behind "Permission denied".
constexpr std::string_view kDenied = "Permission denied (", kTooMany = "Too many authentication failures";
constexpr int kStatusOfSsh = 255;  // other statuses come from the shell or the program there

// Returns the line that holds `part`.
std::string line_with(const std::string& text, std::string_view part) {
  const size_t at = text.find(part), begin = text.rfind('\n', at) + 1;
  return last_line(text.substr(begin, text.find('\n', at) - begin));
}

// Returns in one sentence why ssh could not connect, or "" if it does not say.
std::string why_no_ssh(const std::string& at, const std::string& errors) {
  constexpr std::string_view kUnreachable[] = {"timed out", "No route to host", "unreachable"};
  constexpr std::string_view kReasons[] = {"Could not resolve hostname", "Host key verification failed", kDenied,
                                           "Connection refused", "timed out", "No route to host", "unreachable"};
  const auto said = [&errors](std::string_view part) { return holds(errors, part); };
  if (said("jumphost") || said("stdio forwarding failed") || said("UNKNOWN port 65535")) {
    const auto* const reason = std::ranges::find_if(kReasons, said);
    return at + ": the jump host (ProxyJump) cannot reach it: " +
           (reason == std::end(kReasons) ? last_line(errors) : line_with(errors, *reason)) + ".";
  }
  if (said("Could not resolve hostname")) return at + ": no machine of that name is known. Check the name, or ~/.ssh/config.";
  if (said("REMOTE HOST IDENTIFICATION HAS CHANGED"))
    return at + ": its key is not the one that ssh remembers. If the machine was installed anew, forget the old key with "
                "ssh-keygen -R; if not, another machine answers.";
  if (said("Host key verification failed"))
    return at + ": ssh does not know the key of that machine. Connect once with ssh to see it, then try again.";
  if (said(kDenied) || said(kTooMany)) return at + ": ssh was refused. That machine accepts neither your key nor your password.";
  if (said("Connection refused")) return at + ": no ssh server answers there.";
  if (std::ranges::any_of(kUnreachable, said)) return at + ": the machine cannot be reached: " + last_line(errors) + ".";
  return {};
}

}  // namespace

std::string why_no_line(const RemoteAddress& a, int status, const std::string& errors, bool noise) {
  const std::string at = a.place();
  if (status == kStatusOfSsh)
    if (std::string why = why_no_ssh(at, errors); !why.empty()) return why;
  if (holds(errors, "error while loading shared libraries"))
    return at + ": " + a.program + " does not start there, because a library is missing: " + last_line(errors) + "." + install_advice(a);
  if (status == 127) return at + ": there is no program " + a.program + "." + install_advice(a);
  if (status == 126 && holds(errors, "Permission denied"))
    return at + ": " + a.program + " cannot run there: " + last_line(errors) + ". Make the file executable.";
  if (status == 126) return at + ": " + a.program + " cannot run there: " + last_line(errors) + ". It may be of another architecture.";
  if (noise) return at + ": the answer does not come from Warpsight. Check that no shell profile there prints or asks "
                         "something.";
  return at + ": the connection ended" + (errors.empty() ? std::string(" without a message.") : ": " + last_line(errors) + ".");
}

bool asks_a_person(int status, const std::string& errors) {
  return status == kStatusOfSsh && (holds(errors, kDenied) || holds(errors, kTooMany) || holds(errors, "Host key verification failed"));
}

std::string why_other_version(const RemoteAddress& a, const std::string& greeting) {
  if (std::atoi(greeting.c_str()) == kLineProtocol) return {};
  const size_t space = greeting.find(' ');
  return a.place() + ": version " + printable(space == greeting.npos ? "?" : greeting.substr(space + 1)) +
         " there and " + ws::version() + " here are not compatible." + (a.pipe.empty() ? install_advice(a) : " Install the same version on both.");
}

}  // namespace ws::app

#include "app/core/remote/line_failure.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "app/core/remote/frame.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/version.h"

namespace ws::app {
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

#include "app/cli/remote_watch.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/cli/interrupt.h"
#include "app/core/remote/fetch_file.h"
#include "app/core/remote/remote_run.h"
#include "profiling/base/json_input.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/run_file/run_file.h"

namespace ws::cli {
namespace {

using app::LineState;
using nlohmann::json;

// Prints once that the line is cut, and once that it is up again.
class LineNews {
 public:
  LineNews(app::RemoteLink& link, ProgressLine& line) : link_(link), line_(line) {}
  void look() {
    const app::LineStatus now = link_.status();
    if (now.state == LineState::Refused) throw Failure(now.sentence);
    if (now.state == LineState::Cut && !cut_) line_.say("connection lost; the job goes on there, reconnecting: " + now.sentence);
    if (now.state == LineState::Up && cut_) line_.say("connected again");
    if (now.state == LineState::Cut || now.state == LineState::Up) cut_ = now.state == LineState::Cut;
  }

 private:
  app::RemoteLink& link_;
  ProgressLine& line_;
  bool cut_ = false;
};

enum class Wish { Watch, Stop, Leave };

Wish wish_of(const std::string& at_interrupt, ProgressLine& line) {
  if (terminal_closed()) return Wish::Leave;  // nobody asked to stop it
  const bool can_ask = isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
  if (at_interrupt == "leave") return Wish::Leave;
  if (at_interrupt == "stop" || !can_ask) return Wish::Stop;
  line.clear();
  std::fputs("Stop it there (s), leave it running (l), or continue watching (Enter)? ", stderr);
  std::string answer;
  if (!std::getline(std::cin, answer)) return Wish::Leave;
  return answer == "s" ? Wish::Stop : answer == "l" ? Wish::Leave : Wish::Watch;
}

void keep(const app::RemoteUpdate& update, RemoteOutcome& outcome) {
  if (update.run.summary) outcome.summary = update.run.summary, outcome.account = update.run.account;
  if (update.recording) outcome.recording = *update.recording;
  if (!update.files.empty()) outcome.files = update.files;
  if (update.exit_status) outcome.exit_status = update.exit_status;
}

}  // namespace

void RemoteArguments::add_to(CLI::App& command) {
  command
      .add_option("--on", on, "run on another machine: ssh://user@host[:port][/folder for its runs], or pipe:COMMAND")
      ->type_name("MACHINE");
  add_interrupt_to(command);
}

void RemoteArguments::add_interrupt_to(CLI::App& command) {
  command
      .add_option(
          "--at-interrupt", at_interrupt,
          "what Ctrl+C does with a job on another machine: ask, stop or leave (without a terminal: stop). A closed "
          "terminal leaves it running")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"ask", "stop", "leave"}));
}

app::RemoteAddress RemoteArguments::address(const std::string& copy) {
  if (!copy.empty()) found = prof::check_run_file(copy);
  try {
    return app::parse_remote(on);
  } catch (const Failure& failure) {
    throw UsageError(std::string("--on ") + failure.what());
  }
}

RemoteOutcome watch(app::RemoteRun& run, ProgressLine& line, const WatchOptions& options) {
  RemoteOutcome outcome;
  LineNews news(run.link(), line);
  app::FirstProgress first;
  catch_interrupts();
  for (bool over = false; !over;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    over = run.over();
    news.look();
    app::RemoteUpdate update = run.take();
    first.order(update.run, over || update.recording.has_value());  // a recording has no progress
    if (const std::string log = run.take_log(); !log.empty()) {
      line.clear();
      std::fputs(printable(log).c_str(), options.log);
      std::fflush(options.log);
    }
    line.show(update.run);
    keep(update, outcome);
    if (options.each) options.each(update);
    if (!interrupted()) continue;
    const Wish wish = wish_of(options.at_interrupt, line);
    catch_again();
    if (wish == Wish::Stop) run.stop();
    if (wish == Wish::Leave) {
      line.say("the job goes on there; to return to it: warpsight attach " + run.link().address().text() + " --job " + run.name());
      outcome.left = true;
      return outcome;
    }
  }
  line.clear();
  return outcome;
}

void fetch(app::RemoteRun& run, const json& what, const std::string& path, ProgressLine& line, const std::optional<FoundFile>& found) {
  auto said = std::chrono::steady_clock::now();
  const auto progress = [&](uint64_t bytes) {
    if (std::chrono::steady_clock::now() - said < std::chrono::seconds(2)) return !interrupted();
    said = std::chrono::steady_clock::now();
    line.say("copied " + bytes_text(static_cast<double>(bytes)) + " of " + what.value("file", ""));
    return !interrupted();
  };
  try {
    app::fetch_file(run.link(), what, path, progress, found);
  } catch (const Failure& failure) {
    throw Failure(std::string(failure.what()) + "\nThe file is kept there. To copy it again: warpsight attach " +
                  run.link().address().text() + " --job " + run.name() +
                  (what.contains("folder") ? " --out FOLDER" : " --run FILE"));
  }
}

int print_from_there(const std::string& source, const std::string& command, const std::vector<std::string>& options) {
  const app::RemoteAddress address = app::parse_remote(source);
  if (address.run.empty()) throw UsageError(source + ": name a run of that machine, for example " + address.text() + ":a.wsrun");
  app::RemoteLink link(address);
  const json answer =
      link.ask({{"do", "output"}, {"command", command}, {"file", address.run}, {"options", options}}, 600);
  const JsonInput in(answer, "");
  std::fputs(printable(in.at("text").text()).c_str(), stdout);
  std::fputs(printable(in.at("errors").text()).c_str(), stderr);
  return static_cast<int>(in.at("status").whole(kFailed, 0, 255));
}

}  // namespace ws::cli

#include "app/cli/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"

namespace ws::cli {
namespace {

constexpr double kLineEvery = 0.5;  // seconds: many short epochs must not flood the screen

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

size_t width_of(std::FILE* out) {
  winsize size{};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

std::string drawn_bar(double share, int width) {
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  std::string text = "[";
  for (int i = 0; i < width; ++i) text += i < full ? '#' : '.';
  return text + "]";
}

// The accuracy if there is one: regression has none.
std::string accuracy_text(const char* label, double accuracy) {
  return std::isfinite(accuracy) ? "  " + std::string(label) + " " + percent(accuracy) : "";
}

}  // namespace

ProgressLine::ProgressLine(std::FILE* out) : out_(out), terminal_(isatty(fileno(out))) {}

void ProgressLine::show(const app::RunUpdate& update) {
  for (const app::RunMessage& message : update.messages) say(message.text);
  for (const Change& c : update.changes) say("step " + count_text(c.step) + ": " + c.key + " " + c.from + " → " + c.to);
  if (update.progress) epochs_ = update.progress->epochs;
  for (size_t i = 0; i < update.epochs.size(); ++i) epoch_line(update.epochs[i], update.epochs[i].epoch == epochs_);
  if (!update.steps.empty()) {
    loss_ = static_cast<double>(update.steps.back().loss);
    accuracy_ = static_cast<double>(update.steps.back().accuracy);
  }
  if (update.progress && terminal_) bar(*update.progress);
}

void ProgressLine::say(const std::string& line) {
  clear();
  std::fprintf(out_, "%s\n", printable(line).c_str());
  std::fflush(out_);
}

void ProgressLine::clear() {
  if (drawn_) std::fputs("\r\033[K", out_);
  drawn_ = false;
}

void ProgressLine::epoch_line(const EpochResult& e, bool last) {
  if (!last && now_s() - last_line_s_ < kLineEvery) return;
  last_line_s_ = now_s();
  std::string line = "epoch " + std::to_string(e.epoch) + (epochs_ ? "/" + std::to_string(epochs_) : "") +
                     formatted("  loss {:.4g}", e.train_loss) + accuracy_text("accuracy", e.train_accuracy);
  if (e.test) line += formatted("  test loss {:.4g}", e.test->loss) + accuracy_text("test accuracy", e.test->accuracy);
  say(line + "  " + duration_text(e.wall_s));
}

void ProgressLine::bar(const Progress& p) {
  const double share = p.steps ? static_cast<double>(p.step) / static_cast<double>(p.steps) : 0;
  std::string line = "epoch " + std::to_string(p.epoch) + "/" + std::to_string(p.epochs) + " " + drawn_bar(share, 24) +
                     formatted(" loss {:.4g}", loss_) + accuracy_text("accuracy", accuracy_) + "  " +
                     count_text(p.samples_per_s) + " samples/s  " + duration_text(p.left_s) + " left";
  std::fprintf(out_, "\r\033[K%s", formatted("{:.{}}", line, width_of(out_) - 1).c_str());
  std::fflush(out_);
  drawn_ = true;
}

}  // namespace ws::cli

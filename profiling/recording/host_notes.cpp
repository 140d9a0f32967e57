#include "profiling/recording/host_notes.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/trace/batch_codec.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

// True for "val_loss", "loss/test" and "valLoss", but not for "value_loss" or "interval".
bool names_a_test(std::string_view lower) {
  constexpr std::string_view kTests[] = {"val", "valid", "validation", "test", "eval", "evaluation"};
  constexpr std::string_view kMeasures[] = {"", "loss", "acc", "accuracy"};
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  for (size_t at = 0; at < lower.size(); ++at) {
    size_t end = at;
    while (end < lower.size() && is_letter(lower[end])) ++end;
    const std::string_view word = lower.substr(at, end - at);
    for (const std::string_view test : kTests)
      for (const std::string_view measure : kMeasures)
        if (word.size() == test.size() + measure.size() && word.starts_with(test) && word.ends_with(measure))
          return true;
    at = end;
  }
  return false;
}

// True if a word ends with "loss" or "losses": "train_loss", "loss_d", "losses/box". False for "loss_scale".
bool names_a_loss(std::string_view lower) {
  constexpr std::string_view kNone[] = {"scale", "scaler", "scaling", "weight", "weights", "coef", "factor", "ratio"};
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  bool found = false;
  for (size_t at = 0; at < lower.size(); ++at) {
    size_t end = at;
    while (end < lower.size() && is_letter(lower[end])) ++end;
    const std::string_view word = lower.substr(at, end - at);
    if (std::ranges::find(kNone, word) != std::end(kNone)) return false;
    found |= word.ends_with("loss") || word.ends_with("losses");
    at = end;
  }
  return found;
}

}  // namespace

ScalarRole scalar_role(std::string_view name) {
  std::string lower(name.substr(0, name.find('(')));  // a place may stand in parentheses
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool test = names_a_test(lower);
  const bool accuracy = lower.ends_with("acc") || lower.ends_with("accuracy");
  if (names_a_loss(lower)) return test ? ScalarRole::TestLoss : ScalarRole::Loss;
  if (accuracy) return test ? ScalarRole::TestAccuracy : ScalarRole::Accuracy;
  return ScalarRole::Other;
}

void HostNotes::scalar(std::string_view name, double value, int64_t step) {
  const int64_t now = steady_ns();
  std::lock_guard lock(mutex_);
  if (waiting_.scalars.size() >= kMostWaiting) return void(++waiting_.refused);
  waiting_.scalars.push_back({now, step, value, std::string(name)});
}

uint32_t HostNotes::number(std::string key, std::variant<std::string, std::shared_ptr<const CodeStack>> name) {
  std::lock_guard lock(mutex_);
  if (numbers_.size() >= kMostNames) key = "(other stacks)", name = key;
  const auto [at, fresh] = numbers_.try_emplace(std::move(key), static_cast<uint32_t>(numbers_.size()));
  if (fresh) waiting_.names.push_back(std::move(name));
  return at->second;
}

uint32_t HostNotes::name(std::string_view text) { return number(std::string(text), std::string(text)); }

uint32_t HostNotes::stack(CodeStack stack) {
  std::string key = '\0' + encode_stack(stack);  // no text begins like this
  return number(std::move(key), std::make_shared<CodeStack>(std::move(stack)));
}

void HostNotes::sample(std::string_view row, uint32_t name, int64_t begin, int64_t end) {
  std::lock_guard lock(mutex_);
  if (waiting_.samples.size() >= kMostWaiting || name >= numbers_.size()) return void(++waiting_.refused);
  waiting_.samples.push_back({begin, std::max(begin, end), name, std::string(row)});
}

void HostNotes::fact(std::string_view key, std::string_view value) {
  std::lock_guard lock(mutex_);
  waiting_.facts[std::string(key)] = value;
}

HostNotes::Taken HostNotes::take() {
  std::lock_guard lock(mutex_);
  Taken taken = std::move(waiting_);
  waiting_ = {};
  return taken;
}

void HostNotes::capture(bool on) {
  const int64_t now = steady_ns();
  std::lock_guard lock(mutex_);
  if (waiting_.captures.size() < kMostWaiting) waiting_.captures.push_back({now, on});
}

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Returns the row of this step: the open one or a new one.
template <class Row>
Row& row_of(int64_t step, const Row& fresh, std::vector<Row>& open, std::vector<Row>& done) {
  if (!open.empty() && open[0].step != step) {
    done.push_back(open[0]);
    open.clear();
  }
  if (open.empty()) open.push_back(fresh);
  return open[0];
}

}  // namespace

// A program may have several losses, or log the loss of a step and at the end the mean of all: "train/loss" and
// "train/train_loss". Then it must be known which one the metrics are.
bool NotesReader::is_first_of(ScalarRole role, const HostNotes::Scalar& scalar, TimeNs time) {
  Role& known = roles_[role];
  if (known.first.empty()) known.first = scalar.name;
  if (known.first == scalar.name) return true;
  const CounterKind kind = role == ScalarRole::Loss ? CounterKind::LossName : CounterKind::TestLossName;
  const bool loss = role == ScalarRole::Loss || role == ScalarRole::TestLoss;
  if (loss && !std::exchange(known.named, true)) builder_.counter(known.first, unit_of(kind), {time, scalar.value}, kind);
  return false;
}

void NotesReader::read(const HostNotes::Scalar& scalar, double wall_s, Rows& rows, RunSummary& summary) {
  const ScalarRole role = scalar_role(scalar.name);
  const auto time = static_cast<TimeNs>(wall_s * 1e9);
  if (role == ScalarRole::Other || !is_first_of(role, scalar, time)) {
    CounterKind kind = CounterKind::Other;
    if (role == ScalarRole::Loss) kind = CounterKind::Loss;
    if (role == ScalarRole::TestLoss) kind = CounterKind::TestLoss;
    builder_.counter(scalar.name, unit_of(kind), {time, scalar.value}, kind);
    return;
  }
  if (role == ScalarRole::Loss || role == ScalarRole::Accuracy) {
    Metric& row = row_of(scalar.step, Metric{scalar.step, wall_s, kUnknown, kUnknown}, open_metric_, rows.metrics);
    (role == ScalarRole::Loss ? row.loss : row.accuracy) = scalar.value;
    if (role == ScalarRole::Loss) summary.train_loss = scalar.value;
    return;
  }
  Evaluation& row = row_of(scalar.step, Evaluation{scalar.step, kUnknown, wall_s, kUnknown, kUnknown}, open_evaluation_,
                           rows.evaluations);
  (role == ScalarRole::TestLoss ? row.test_loss : row.test_accuracy) = scalar.value;
  (role == ScalarRole::TestLoss ? summary.test_loss : summary.final_accuracy) = scalar.value;
}

NotesReader::Rows NotesReader::read(HostNotes::Taken&& notes, int64_t origin, RunSummary& summary) {
  Rows rows;
  for (auto& [key, value] : notes.facts) summary.extra[key] = std::move(value);
  for (const HostNotes::Scalar& scalar : notes.scalars)
    read(scalar, static_cast<double>(scalar.time - origin) * 1e-9, rows, summary);
  for (const auto& name : notes.names)
    sample_names_.push_back(std::visit([this](const auto& one) { return &builder_.name(one); }, name));
  builder_.losses().dropped_records += notes.refused;
  for (const HostNotes::Sample& sample : notes.samples) {
    if (sample.name >= sample_names_.size()) continue;  // sent by a damaged program
    Span span;
    span.start = sample.begin - origin;
    span.duration = static_cast<uint64_t>(sample.end - sample.begin);
    span.kind = static_cast<uint64_t>(SpanKind::Other);
    span.meaning = static_cast<uint64_t>(Meaning::Other);
    span.name = builder_.id(*sample_names_[sample.name]);
    builder_.row(kind_of_row(TrackKind::Other, sample.row), sample.row, "CPU").spans.push_back(span);
  }
  rows.batch = builder_.finish();
  return rows;
}

NotesReader::Rows NotesReader::last() {
  Rows rows;
  rows.metrics = std::move(open_metric_);
  rows.evaluations = std::move(open_evaluation_);
  return rows;
}

}  // namespace ws::prof

#include "profiling/formats/scalars.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>

#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws::prof {

namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kTagMark = "-tag-";  // in the names of TensorBoard downloads

std::string small_letters(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return result;
}

std::vector<std::string> words_of(std::string_view tag) {
  std::vector<std::string> words(1);
  for (const char c : small_letters(tag)) {
    if (c == '/' || c == '_' || c == '-' || c == '.' || c == ' ')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

// Splits a line into fields. Fields with commas are quoted.
std::vector<std::string> fields_of(std::string_view line) {
  constexpr size_t kMost = 1000;
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (fields.size() > kMost) break;
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

std::optional<double> number_of_field(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const bool good = std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
  return good ? std::optional(value) : std::nullopt;
}

// Positions of the columns, by the names in TensorBoard's downloads and data frames.
struct Columns {
  size_t wall, step, value, tag;
  explicit Columns(std::string_view line) {
    std::vector<std::string> names = fields_of(line);
    for (std::string& name : names) {
      name = small_letters(name);
      std::ranges::replace(name, '_', ' ');
    }
    const auto place = [&](const char* name) { return size_t(std::ranges::find(names, name) - names.begin()); };
    wall = place("wall time"), step = place("step"), value = place("value"), tag = place("tag");
    if (std::max({wall, step, value}) >= names.size())
      throw Failure("The CSV file does not begin with the columns Wall time,Step,Value.");
  }
};

struct ReadScalar {
  double wall;
  int64_t step;
  double value;
};

// Assigns the values of each tag to metrics and evaluations of a run.
class ScalarReader {
 public:
  ScalarReader(std::string_view head, const std::string& name, Budget budget)
      : columns_(head), of_file_(tag_of_file(name)), budget_(budget) {}

  void take(std::string_view line) {
    const std::vector<std::string> fields = fields_of(line);
    const auto number = [&](size_t column) {
      return column < fields.size() ? number_of_field(fields[column]) : std::nullopt;
    };
    const auto wall = number(columns_.wall), step = number(columns_.step), value = number(columns_.value);
    if (!wall || !step || !value || !std::isfinite(*wall) || !(std::abs(*step) < 9e15)) {
      bad_ += !line.empty() && line != "\r";
      return;
    }
    start_ = std::min(start_, *wall);
    budget_.take(kValueBytes);
    auto& values = tags_[columns_.tag < fields.size() ? fields[columns_.tag] : std::string()];
    if (values.empty()) budget_.take(kTagBytes + 2 * line.size());
    values.push_back({*wall, static_cast<int64_t>(*step), *value});
  }

  RunData finish() {
    for (const auto& [tag, values] : tags_) put(tag, tag.empty() ? of_file_ : tag_of(tag), values);
    std::ranges::stable_sort(run_.metrics, {}, &Metric::wall_s);
    std::ranges::stable_sort(run_.evaluations, {}, &Evaluation::wall_s);
    if (bad_ > 0)
      run_.problems.push_back(std::to_string(bad_) + (bad_ == 1 ? " line is" : " lines are") + " not three numbers.");
    summarize();
    return std::move(run_);
  }

 private:
  void put(const std::string& tag, ScalarTag what, const std::vector<ReadScalar>& values) {
    using enum ScalarKind;
    if (what.kind == Other) {
      const TrackId track = run_.trace.counter(tag.empty() ? "value" : tag, "");
      std::vector<CounterPoint> points;
      for (const ReadScalar& v : values)
        points.push_back({static_cast<TimeNs>(std::min(v.wall - start_, 1e9) * 1e9), v.value});
      run_.trace.append_counter(track, std::move(points));
    } else if (what.test) {
      fill(run_.evaluations, what.kind == Loss ? &Evaluation::test_loss : &Evaluation::test_accuracy, values);
    } else {
      fill(run_.metrics, what.kind == Loss ? &Metric::loss : &Metric::accuracy, values);
    }
  }

  // Puts a value into a row of the same step that another tag created, or into a new row.
  template <class Row>
  void fill(std::vector<Row>& rows, double Row::*value, const std::vector<ReadScalar>& values) {
    std::multimap<int64_t, size_t> free;
    for (size_t i = 0; i < rows.size(); ++i)
      if (std::isnan(rows[i].*value)) free.emplace(rows[i].step, i);
    for (const ReadScalar& v : values) {
      const auto at = free.find(v.step);
      size_t index = rows.size();
      if (at != free.end()) {
        index = at->second;
        free.erase(at);
      } else {
        rows.push_back(row_at(v, static_cast<Row*>(nullptr)));
      }
      rows[index].*value = v.value;
    }
  }
  Metric row_at(const ReadScalar& v, Metric*) const { return {v.step, v.wall - start_, kNotMeasured, kNotMeasured}; }
  Evaluation row_at(const ReadScalar& v, Evaluation*) const {
    return {v.step, 0, v.wall - start_, kNotMeasured, kNotMeasured};
  }

  void summarize() {
    RunSummary& s = run_.summary;
    s.origin = "tensorboard";
    s.status = "finished";
    for (const Metric& m : run_.metrics) {
      if (!std::isnan(m.loss)) s.train_loss = m.loss;
      s.steps = m.step + (run_.metrics.front().step == 0 ? 1 : 0);  // steps may count from 0 or 1
      s.wall_s = m.wall_s;
    }
    for (const Evaluation& e : run_.evaluations) {
      if (!std::isnan(e.test_loss)) s.test_loss = e.test_loss;
      if (!std::isnan(e.test_accuracy)) s.final_accuracy = e.test_accuracy;
    }
  }

  // While lists grow, their old and their new space exist.
  static constexpr uint64_t kValueBytes = 3 * (sizeof(ReadScalar) + sizeof(Evaluation)), kTagBytes = 2048;
  Columns columns_;
  ScalarTag of_file_;
  Budget budget_;
  std::map<std::string, std::vector<ReadScalar>> tags_;
  double start_ = std::numeric_limits<double>::infinity();
  size_t bad_ = 0;
  RunData run_;
};

}  // namespace

ScalarTag tag_of(std::string_view tag) {
  ScalarTag result;
  for (const std::string& word : words_of(tag)) {
    if (word.ends_with("loss") || word == "xent" || word == "nll") result.kind = ScalarKind::Loss;
    if (result.kind != ScalarKind::Loss && (word == "acc" || word.starts_with("accuracy") || word == "top1"))
      result.kind = ScalarKind::Accuracy;
    for (const char* other : {"test", "val", "valid", "validation", "eval", "evaluation", "dev"})
      result.test |= word == other;
  }
  return result;
}

ScalarTag tag_of_file(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const char* ending : {".csv", ".scalars"})
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view(ending).size());
  if (const size_t mark = name.rfind(kTagMark); mark != name.npos) {
    ScalarTag tag = tag_of(std::string_view(name).substr(mark + kTagMark.size()));
    // "run-test-tag-loss": if runs are folders, the run name says which data was measured.
    tag.test |= tag.kind != ScalarKind::Other && tag_of(std::string_view(name).substr(0, mark)).test;
    tag.named = true;
    return tag;
  }
  ScalarTag tag = tag_of(name);
  if (tag.kind == ScalarKind::Other) tag = {ScalarKind::Loss, false, false};
  return tag;
}

namespace {

RunData parse(std::string_view text, const std::string& name, Budget budget) {
  size_t at = 0;
  const auto next_line = [&] {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    return line;
  };
  ScalarReader reader(next_line(), name, budget);
  while (at < text.size()) reader.take(next_line());
  return reader.finish();
}

}  // namespace

RunData parse_scalars_csv(std::string_view text, const std::string& name) { return parse(text, name, Budget()); }

RunData import_scalars_csv(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure("Cannot open " + path + ".");
  if (std::filesystem::file_size(path) > (size_t{1} << 30))
    throw Failure(path + " is larger than 1 GB; a list of losses is not.");
  Budget budget;
  budget.take(std::filesystem::file_size(path));
  std::string text(std::filesystem::file_size(path), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  RunData run = parse(text, path, budget);
  run.summary.name = std::filesystem::path(path).stem().string();
  return run;
}

}  // namespace ws::prof

// Turns text fields into features and labels: finds number columns, missing values and classes.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "datasets/csv.h"
#include "datasets/locate.h"
#include "datasets/split.h"
#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws::data {
namespace {

constexpr size_t kMostNumericClasses = 20;
constexpr size_t kMostWords = 50;
constexpr size_t kMostReported = 5;
constexpr double kRowBytes = 32;  // labels and row numbers, which grow

bool is_missing(std::string_view field) {
  static const char* const spellings[] = {"", "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "?"};
  return std::find(std::begin(spellings), std::end(spellings), field) != std::end(spellings);
}

std::optional<float> to_number(std::string_view field) {
  float value = 0;
  const char* first = field.data() + (field.starts_with('+') ? 1 : 0);
  const char* last = field.data() + field.size();
  const auto [end, problem] = std::from_chars(first, last, value);
  if (problem != std::errc() || end != last || !std::isfinite(value)) return std::nullopt;
  return value;
}

int64_t find_label(const CsvTable& table, const std::string& name) {
  if (name.empty()) return table.columns() - 1;
  const auto found = std::find(table.header.begin(), table.header.end(), name);
  if (found != table.header.end()) return found - table.header.begin();
  std::string all;
  for (const std::string& column : table.header) all += (all.empty() ? "" : ", ") + column;
  throw Failure(table.name + ": has no column " + name + "; its columns are " + all);
}

// Throws a Failure that lists the first few missing values by line and counts the rest.
void refuse_missing(const CsvTable& table) {
  std::string places;
  size_t gaps = 0;
  for (int64_t r = 0; r < table.rows(); ++r) {
    for (int64_t c = 0; c < table.columns(); ++c) {
      if (!is_missing(table.field(r, c)) || ++gaps > kMostReported) continue;
      places += (places.empty() ? "line " : ", line ") + std::to_string(table.lines[static_cast<size_t>(r)]) + " (" +
                table.header[static_cast<size_t>(c)] + ")";
    }
  }
  if (gaps == 0) return;
  if (gaps > kMostReported) places += " and " + std::to_string(gaps - kMostReported) + " more";
  throw Failure(table.name + ": " + std::to_string(gaps) + (gaps == 1 ? " value is" : " values are") +
                " missing: " + places + "; remove or fill these rows");
}

std::vector<std::string_view> different_words(const CsvTable& table, int64_t column) {
  std::unordered_set<std::string_view> seen;
  for (int64_t r = 0; r < table.rows(); ++r) seen.insert(table.field(r, column));
  std::vector<std::string_view> words(seen.begin(), seen.end());
  std::sort(words.begin(), words.end());
  return words;
}

bool holds_only_words(const CsvTable& table, int64_t column) {
  for (int64_t r = 0; r < table.rows(); ++r)
    if (to_number(table.field(r, column))) return false;
  return true;
}

template <class Value>
size_t position(const std::vector<Value>& sorted, Value value) {
  return static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
}

// A column of numbers is one feature. A column of words is one 0/1 feature per word.
struct FeatureColumn {
  int64_t column = 0;
  std::vector<std::string_view> words;  // empty for a number column
};

std::vector<FeatureColumn> plan_features(const CsvTable& table, int64_t label, Dataset& set) {
  std::vector<FeatureColumn> plan;
  for (int64_t c = 0; c < table.columns(); ++c) {
    if (c == label) continue;
    const std::string& name = table.header[static_cast<size_t>(c)];
    std::vector<std::string_view> words;
    if (holds_only_words(table, c)) words = different_words(table, c);
    if (words.size() > kMostWords)
      throw Failure(table.name + ": column " + name + " holds " + std::to_string(words.size()) +
                    " different words; at most " + std::to_string(kMostWords) + " can be made into features");
    if (words.empty()) set.feature_names.push_back(name);
    for (std::string_view word : words) set.feature_names.push_back(name + "=" + std::string(word));
    plan.push_back({c, std::move(words)});
  }
  set.features = static_cast<int64_t>(set.feature_names.size());
  return plan;
}

// A table of short words can become a hundred times its size.
void refuse_growth(const CsvTable& table, const std::vector<FeatureColumn>& plan) {
  size_t features = 0;
  for (const FeatureColumn& feature : plan) features += feature.words.size();
  const double bytes = static_cast<double>(features) * static_cast<double>(table.rows()) * sizeof(float);
  if (bytes <= static_cast<double>(limits::most_of_words(table.text->size()))) return;
  throw Failure(table.name + ": its columns of words would become " + std::to_string(features) + " features, which take " +
                bytes_text(bytes) + " of memory; leave some of these columns out, or write numbers for their words");
}

void append_features(const CsvTable& table, int64_t row, const FeatureColumn& feature, std::vector<float>& x) {
  const std::string_view field = table.field(row, feature.column);
  if (!feature.words.empty()) {
    const size_t start = x.size();
    x.resize(start + feature.words.size(), 0.0f);
    x[start + position(feature.words, field)] = 1.0f;
    return;
  }
  const std::optional<float> value = to_number(field);
  if (!value)
    throw Failure(table.name + ": line " + std::to_string(table.lines[static_cast<size_t>(row)]) + ": \"" +
                  std::string(field.substr(0, 40)) + "\" in column " +
                  table.header[static_cast<size_t>(feature.column)] + " is not a number");
  x.push_back(*value);
}

void take_features(const CsvTable& table, int64_t label, Dataset& set) {
  const std::vector<FeatureColumn> plan = plan_features(table, label, set);
  refuse_growth(table, plan);
  // Held-out rows are there twice for a moment.
  const double of_row = 2.0 * static_cast<double>(set.features) * sizeof(float) + kRowBytes;
  check_memory(table.bytes() + static_cast<double>(table.rows()) * of_row, table.name);
  set.train.x.reserve(static_cast<size_t>(table.rows() * set.features));
  for (int64_t r = 0; r < table.rows(); ++r)
    for (const FeatureColumn& feature : plan) append_features(table, r, feature, set.train.x);
}

// Returns the label column as numbers, or nullopt if a field is not a number.
std::optional<std::vector<float>> label_numbers(const CsvTable& table, int64_t label) {
  std::vector<float> numbers;
  for (int64_t r = 0; r < table.rows(); ++r) {
    const std::optional<float> value = to_number(table.field(r, label));
    if (!value) return std::nullopt;
    numbers.push_back(*value);
  }
  return numbers;
}

void refuse_one_class(const CsvTable& table, int64_t label, size_t classes) {
  if (classes >= 2) return;
  throw Failure(table.name + ": column " + table.header[static_cast<size_t>(label)] + " holds only the class " +
                std::string(table.field(0, label)) + "; at least two are needed");
}

void take_numbers(const CsvTable& table, int64_t label, std::vector<float> numbers, Dataset& set) {
  std::vector<float> different = numbers;
  std::sort(different.begin(), different.end());
  different.erase(std::unique(different.begin(), different.end()), different.end());
  const bool whole = std::all_of(different.begin(), different.end(), [](float v) { return v == std::floor(v); });
  if (!whole || different.size() > kMostNumericClasses) {
    set.task = Task::Regression;
    set.outputs = 1;
    set.train.targets = std::move(numbers);
    return;
  }
  refuse_one_class(table, label, different.size());
  set.outputs = static_cast<int64_t>(different.size());
  for (float value : different) set.class_names.push_back(fixed(static_cast<double>(value), 0));
  for (float value : numbers) set.train.labels.push_back(static_cast<int32_t>(position(different, value)));
}

void take_classes(const CsvTable& table, int64_t label, Dataset& set) {
  const std::vector<std::string_view> words = different_words(table, label);
  refuse_one_class(table, label, words.size());
  // A label column with mostly different values holds names or dates, not classes.
  if (words.size() > kMostWords && words.size() * 2 > static_cast<size_t>(table.rows()))
    throw Failure(table.name + ": column " + table.header[static_cast<size_t>(label)] + " holds " +
                  std::to_string(words.size()) + " different words in " + std::to_string(table.rows()) +
                  " rows: these are not classes");
  set.outputs = static_cast<int64_t>(words.size());
  set.class_names.assign(words.begin(), words.end());
  for (int64_t r = 0; r < table.rows(); ++r)
    set.train.labels.push_back(static_cast<int32_t>(position(words, table.field(r, label))));
}

}  // namespace

Dataset to_dataset(const CsvTable& table, const std::string& label_column) {
  Dataset set;
  const int64_t label = find_label(table, label_column);
  refuse_missing(table);
  take_features(table, label, set);
  set.task = Task::Classification;
  if (std::optional<std::vector<float>> numbers = label_numbers(table, label))
    take_numbers(table, label, std::move(*numbers), set);
  else
    take_classes(table, label, set);
  set.train.rows = table.rows();
  return set;
}

Dataset load_csv(const DataSpec& spec) {
  PackedReader reader(spec.path);
  Dataset set = to_dataset(read_csv(reader), spec.label_column);
  hold_out(set, spec.validation, spec.seed);
  standardise_features(set);
  standardise_targets(set);
  return set;
}

Dataset load_iris(const DataSpec& spec) {
  PackedReader reader(locate("iris/iris.csv"));
  Dataset set = to_dataset(read_csv(reader), "species");
  hold_out(set, spec.validation, spec.seed);
  standardise_features(set);
  return set;
}

}  // namespace ws::data

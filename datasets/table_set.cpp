// From fields of text to features and labels: which columns are numbers, what is missing, what the classes are.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "datasets/csv.h"
#include "datasets/locate.h"
#include "datasets/split.h"
#include "profiling/failure.h"

namespace ws::data {
namespace {

constexpr size_t kMostNumericClasses = 20;
constexpr size_t kMostReported = 5;

bool is_missing(const std::string& field) {
  static const char* const spellings[] = {"", "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "?"};
  return std::find(std::begin(spellings), std::end(spellings), field) != std::end(spellings);
}

std::optional<float> to_number(const std::string& field) {
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

// One sentence that lists the first few gaps by line and counts the rest.
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

void take_features(const CsvTable& table, int64_t label, Dataset& set) {
  set.features = table.columns() - 1;
  set.train.x.reserve(static_cast<size_t>(table.rows() * set.features));
  for (int64_t r = 0; r < table.rows(); ++r) {
    for (int64_t c = 0; c < table.columns(); ++c) {
      if (c == label) continue;
      const std::optional<float> value = to_number(table.field(r, c));
      if (!value)
        throw Failure(table.name + ": line " + std::to_string(table.lines[static_cast<size_t>(r)]) + ": \"" +
                      table.field(r, c) + "\" in column " + table.header[static_cast<size_t>(c)] + " is not a number");
      set.train.x.push_back(*value);
    }
  }
  for (int64_t c = 0; c < table.columns(); ++c)
    if (c != label) set.feature_names.push_back(table.header[static_cast<size_t>(c)]);
}

std::vector<std::string> different_values(const CsvTable& table, int64_t column) {
  std::vector<std::string> values;
  for (int64_t r = 0; r < table.rows(); ++r) values.push_back(table.field(r, column));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

bool all_numbers(const std::vector<std::string>& values) {
  return std::all_of(values.begin(), values.end(), [](const std::string& v) { return to_number(v).has_value(); });
}

bool few_whole_numbers(const std::vector<std::string>& values) {
  if (values.size() > kMostNumericClasses) return false;
  return std::all_of(values.begin(), values.end(),
                     [](const std::string& v) { return *to_number(v) == std::floor(*to_number(v)); });
}

void take_targets(const CsvTable& table, int64_t label, Dataset& set) {
  set.task = Task::Regression;
  set.outputs = 1;
  for (int64_t r = 0; r < table.rows(); ++r) set.train.targets.push_back(*to_number(table.field(r, label)));
}

void take_classes(const CsvTable& table, int64_t label, std::vector<std::string> names, Dataset& set) {
  if (names.size() < 2)
    throw Failure(table.name + ": column " + table.header[static_cast<size_t>(label)] + " holds only the class " +
                  names.front() + "; at least two are needed");
  set.task = Task::Classification;
  set.outputs = static_cast<int64_t>(names.size());
  for (int64_t r = 0; r < table.rows(); ++r) {
    const auto found = std::lower_bound(names.begin(), names.end(), table.field(r, label));
    set.train.labels.push_back(static_cast<int32_t>(found - names.begin()));
  }
  set.class_names = std::move(names);
}

}  // namespace

Dataset to_dataset(const CsvTable& table, const std::string& label_column) {
  Dataset set;
  const int64_t label = find_label(table, label_column);
  refuse_missing(table);
  take_features(table, label, set);
  std::vector<std::string> values = different_values(table, label);
  const bool numbers = all_numbers(values);
  if (numbers && !few_whole_numbers(values))
    take_targets(table, label, set);
  else
    take_classes(table, label, std::move(values), set);
  set.train.rows = table.rows();
  return set;
}

Dataset load_csv(const DataSpec& spec) {
  if (spec.path.empty()) throw Failure("The data set csv needs the path of a CSV file");
  ByteReader reader(spec.path);
  Dataset set = to_dataset(read_csv(reader), spec.label_column);
  hold_out(set, spec.validation, spec.seed);
  standardise_features(set);
  standardise_targets(set);
  set.origin = "The file " + spec.path +
               (set.task == Task::Regression ? "; columns and target are scaled to mean 0 and deviation 1."
                                             : "; columns are scaled to mean 0 and deviation 1.");
  return set;
}

Dataset load_iris(const DataSpec& spec) {
  ByteReader reader(locate("iris/iris.csv"));
  Dataset set = to_dataset(read_csv(reader), "species");
  hold_out(set, spec.validation, spec.seed);
  standardise_features(set);
  set.origin = "Iris, 150 flowers measured by Anderson and published by Fisher in 1936; columns are standardised.";
  return set;
}

}  // namespace ws::data

// Comma-separated text with a header: a table of fields, and a data set made of one. The parser is our own, because fields
// stay where they are in the text and every complaint names its line.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/dataset.h"
#include "profiling/base/packed_file.h"

namespace ws::data {

struct CsvTable {
  std::string name;  // of the file, for messages
  std::vector<std::string> header;
  std::unique_ptr<std::string> text;     // what the fields point into
  std::vector<std::string_view> fields;  // row by row, header.size() each
  std::vector<int64_t> lines;            // where each row starts in the file, from 1

  int64_t columns() const { return static_cast<int64_t>(header.size()); }
  int64_t rows() const { return static_cast<int64_t>(lines.size()); }
  std::string_view field(int64_t row, int64_t column) const {
    return fields[static_cast<size_t>(row * columns() + column)];
  }
};

// The separator is whichever of comma, semicolon and tab the header uses most. Fields may be quoted.
CsvTable read_csv(PackedReader& reader);

// All rows as the training part. The label column (empty: the last one) decides the task: words or at most 20 different
// whole numbers are classes, anything else is a number to predict. A feature column of words becomes one of 0 and 1 for
// each word.
Dataset to_dataset(const CsvTable& table, const std::string& label_column);

Dataset load_csv(const DataSpec& spec);
Dataset load_iris(const DataSpec& spec);

}  // namespace ws::data

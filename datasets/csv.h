// Reads comma-separated text with a header into a table, and turns the table into a data set. We have our own parser so
// that fields stay in place in the text and every error names its line.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/dataset.h"
#include "profiling/base/packed_file.h"

namespace ws::data {

struct CsvTable {
  std::string name;  // file name, for messages
  std::vector<std::string> header;
  std::unique_ptr<std::string> text;     // owns the characters that the fields point into
  std::vector<std::string_view> fields;  // row by row, header.size() per row
  std::vector<int64_t> lines;            // line of the file where each row starts, from 1

  int64_t columns() const { return static_cast<int64_t>(header.size()); }
  double bytes() const;  // memory that it takes
  int64_t rows() const { return static_cast<int64_t>(lines.size()); }
  std::string_view field(int64_t row, int64_t column) const {
    return fields[static_cast<size_t>(row * columns() + column)];
  }
};

// The separator is the one of comma, semicolon and tab that occurs most often in the header. Fields may be quoted.
CsvTable read_csv(PackedReader& reader);
// The names in the first row, without reading the rest. Throws Failure if the file cannot be read.
std::vector<std::string> csv_columns(const std::string& path);

// Puts all rows into the training part. The label column (empty: the last column) decides the task: words or at most 20
// different whole numbers are classes, anything else is a regression target. A feature column of words becomes one 0/1
// column per word.
Dataset to_dataset(const CsvTable& table, const std::string& label_column);

Dataset load_csv(const DataSpec& spec);
Dataset load_iris(const DataSpec& spec);

}  // namespace ws::data

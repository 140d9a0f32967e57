#include "datasets/csv.h"

#include <algorithm>
#include <unordered_set>

#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws::data {
namespace {

// Parses the text in one pass and tracks line and byte offset for messages.
class CsvParser {
 public:
  CsvParser(const std::string& name, std::string& text) : name_(name), text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    separator_ = find_separator();
  }

  // Reads the next row that is not blank. Returns false at the end.
  bool next_row(std::vector<std::string_view>& row) {
    skip_blank_lines();
    if (at_ >= text_.size()) return false;
    row_line_ = line_;
    row_offset_ = at_;
    row.clear();
    do {
      if (row.size() == limits::kMostColumns)
        fail("more than " + count_text(static_cast<double>(limits::kMostColumns)) + " fields");
      row.push_back(next_field());
    } while (take(separator_));
    end_line();
    return true;
  }

  int64_t row_line() const { return row_line_; }
  char separator() const { return separator_; }

  [[noreturn]] void fail(const std::string& reason) const {
    throw Failure(name_ + ": line " + std::to_string(row_line_) + " (at byte " + std::to_string(row_offset_) +
                  "): " + reason);
  }

 private:
  char find_separator() const {
    const std::string_view header = std::string_view(text_).substr(0, text_.find('\n'));
    char best = ',';
    for (char c : {';', '\t'})
      if (std::count(header.begin(), header.end(), c) > std::count(header.begin(), header.end(), best)) best = c;
    return best;
  }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void end_line() {
    take('\r');
    if (take('\n')) ++line_;
  }

  void skip_blank_lines() {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
      if (text_[at_] == '\n') ++line_;
      ++at_;
    }
  }

  std::string_view next_field() {
    while (take(' ')) continue;
    if (take('"')) return quoted_field();
    const size_t start = at_;
    while (at_ < text_.size() && !at_field_end()) ++at_;
    size_t end = at_;
    while (end > start && text_[end - 1] == ' ') --end;
    return view(start, end);
  }

  // Replaces doubled quotes by one quote in place; the text can only become shorter.
  std::string_view quoted_field() {
    const size_t start = at_;
    size_t end = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"' && !take('"')) {
        check_after_quote();
        return view(start, end);
      }
      if (c == '\n') ++line_;
      text_[end++] = c;
    }
    fail("a quoted field has no closing quote");
  }

  void check_after_quote() {
    while (take(' ')) continue;
    if (at_ < text_.size() && !at_field_end()) fail("there is text behind a closing quote");
  }

  bool at_field_end() const { return text_[at_] == separator_ || text_[at_] == '\n' || text_[at_] == '\r'; }
  std::string_view view(size_t start, size_t end) const { return std::string_view(text_).substr(start, end - start); }

  const std::string& name_;
  std::string& text_;
  char separator_ = ',';
  size_t at_ = 0, row_offset_ = 0;
  int64_t line_ = 1, row_line_ = 1;
};

// Reserves memory for all rows at once: vectors that grow take three times their size for a moment.
void reserve_rows(CsvTable& table, char separator) {
  size_t ends = 1, separators = 0;
  for (const char c : *table.text) {
    ends += c == '\n' || c == '\r';
    separators += c == separator;
  }
  const size_t fields = std::min(ends * table.header.size(), ends + separators);
  const size_t rows = std::min(ends, fields / table.header.size() + 1);
  check_memory(table.bytes() + static_cast<double>(fields) * sizeof(table.fields[0]) +
                   static_cast<double>(rows) * sizeof(table.lines[0]),
               table.name);
  table.fields.reserve(fields);
  table.lines.reserve(rows);
}

void check_header(const CsvParser& parser, const std::vector<std::string>& header) {
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i].empty()) parser.fail("column " + std::to_string(i + 1) + " has no name");
    if (!seen.insert(header[i]).second) parser.fail("two columns are named " + header[i]);
  }
  if (header.size() < 2) parser.fail("only one column; a label and at least one feature are needed");
}

}  // namespace

double CsvTable::bytes() const {
  return static_cast<double>(text->capacity() + fields.capacity() * sizeof(fields[0]) +
                             lines.capacity() * sizeof(lines[0]));
}

CsvTable read_csv(PackedReader& reader) {
  CsvTable table{.name = reader.name()};
  table.text = std::make_unique<std::string>(reader.read_text());
  CsvParser parser(table.name, *table.text);
  std::vector<std::string_view> row;
  if (!parser.next_row(row)) throw Failure(table.name + ": is empty");
  table.header.assign(row.begin(), row.end());
  check_header(parser, table.header);
  reserve_rows(table, parser.separator());
  while (parser.next_row(row)) {
    if (row.size() != table.header.size())
      parser.fail(std::to_string(row.size()) + " fields, but the header names " + std::to_string(table.header.size()));
    table.lines.push_back(parser.row_line());
    table.fields.insert(table.fields.end(), row.begin(), row.end());
  }
  if (table.rows() == 0) throw Failure(table.name + ": has a header, but no rows");
  return table;
}

std::vector<std::string> csv_columns(const std::string& path) {
  constexpr size_t kHead = 64 << 10;
  PackedReader reader(path);
  std::string head(kHead, '\0');
  head.resize(reader.read_some(reinterpret_cast<uint8_t*>(head.data()), kHead));
  CsvParser parser(reader.name(), head);
  std::vector<std::string_view> row;
  if (!parser.next_row(row)) throw Failure(reader.name() + ": is empty");
  std::vector<std::string> columns(row.begin(), row.end());
  check_header(parser, columns);
  return columns;
}

}  // namespace ws::data

// SQLite with exceptions: a database that closes itself and statements that bind by type. SQLiteCpp would replace a
// third of this code, but not what matters here. Untrusted files are opened hardened, with bounded values, even on
// read-only media. The library that is loaded into other programs must not need another shared library.
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/base/failure.h"

namespace ws::prof {

// Another connection is reading or writing at the moment.
class DatabaseBusy : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

struct Blob {
  std::string_view bytes;
};

// Limits for queries of an untrusted file. A file stores each byte once: a table with more rows or bytes than the file
// must repeat pages.
struct QueryBounds {
  int64_t rows = 0, bytes = 0, work = 0;  // work: instructions of SQLite
  int64_t work_left = 0;                  // for the running query
};

class Statement {
 public:
  Statement(sqlite3* db, std::string_view sql, QueryBounds* bounds = nullptr);

  // Binds all parameters in order and runs a statement that returns no rows.
  template <class... Values>
  void run(const Values&... values) {
    bind_all(values...);
    while (step()) {
    }
    sqlite3_reset(handle_.get());
  }
  // Binds all parameters before a loop over step().
  template <class... Values>
  void bind_all(const Values&... values) {
    sqlite3_reset(handle_.get());
    begin();
    int index = 0;
    (bind(++index, values), ...);
  }
  bool step();  // false: no more rows

  int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  double real(int column) const { return sqlite3_column_double(handle_.get(), column); }
  bool null(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }
  std::string_view text(int column) const;  // valid until the next step
  std::string_view blob(int column) const;

 private:
  void bind(int index, int64_t value) { check(sqlite3_bind_int64(handle_.get(), index, value)); }
  void bind(int index, int value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, uint32_t value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, size_t value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, double value);  // NaN becomes NULL
  void bind(int index, std::string_view value);
  void bind(int index, const std::string& value) { bind(index, std::string_view(value)); }
  void bind(int index, const char* value) { bind(index, std::string_view(value)); }
  void bind(int index, Blob value);
  void bind(int index, std::nullptr_t) { check(sqlite3_bind_null(handle_.get(), index)); }
  void check(int code) const;

  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  void begin();
  std::string_view counted(const char* bytes, int column) const;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  QueryBounds* bounds_ = nullptr;  // null: the file is trusted
  int64_t rows_left_ = 0;
  mutable int64_t bytes_left_ = 0;
};

class Database {
 public:
  // Create: an existing file is replaced. Update: the file is ours. Amend: changes values of a file that is not trusted.
  enum class Mode { Create, Update, Amend, Read };
  Database(const std::string& path, Mode mode);

  void exec(const char* sql);
  Statement prepare(std::string_view sql) { return Statement(handle_.get(), sql, bounds_.get()); }
  const QueryBounds& bounds() const { return *bounds_; }  // only for a file that is not trusted
  bool has_table(std::string_view name);
  std::vector<std::string> columns(std::string_view table);
  int64_t integer(std::string_view sql);  // first column of the first row, or 0
  bool has_moved();                       // true if its path now belongs to another file or to none
  // A name by which the log beside the file is known to belong to it. name_log() gives the file a new one.
  void name_log();
  std::string log_name();
  void fold();                            // moves the log into the file and leaves no file beside it

 private:
  void harden();
  int take_back_change(const std::string& path);  // returns whether the file can be read now, as a code of SQLite
  void open_for_reading(const std::string& path, bool immutable);
  void bound(const std::string& path);
  void refuse_computed(const std::string& path);
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  std::unique_ptr<QueryBounds> bounds_;  // null if the file is ours; SQLite also keeps its address
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace ws::prof

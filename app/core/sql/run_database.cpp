#include "app/core/sql/run_database.h"

#include <sqlite3.h>

#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "profiling/base/failure.h"
#include "profiling/base/text.h"
#include "profiling/formats/join_ranks.h"

namespace ws::app {
namespace {

constexpr int kLongestValue = 1 << 20, kCheckedEach = 1000;  // bytes; instructions of SQLite

// A view inside of SQLite. Its rows are made when a query first reads them.
struct ViewSource {
  const SqlView* view;
  const SqlRuns* runs;
  std::unique_ptr<SqlRows> made = nullptr;
  std::map<int, std::unordered_map<int64_t, std::vector<size_t>>> indexes = {};  // by column: rows by value
  const SqlRows& rows() {
    if (!made) made = view->rows(*runs);
    return *made;
  }
  const std::vector<size_t>& rows_with(int column, int64_t value) {
    static const std::vector<size_t> none;
    const auto [index, fresh] = indexes.try_emplace(column);
    if (fresh)
      for (size_t row = 0; row < rows().count(); ++row)
        if (const SqlValue cell = rows().cell(row, static_cast<size_t>(column)); std::holds_alternative<int64_t>(cell))
          index->second[std::get<int64_t>(cell)].push_back(row);
    const auto found = index->second.find(value);
    return found == index->second.end() ? none : found->second;
  }
};

struct ViewTable : sqlite3_vtab {
  ViewSource* source;
};
struct Cursor : sqlite3_vtab_cursor {
  const SqlRows* rows = nullptr;
  const std::vector<size_t>* some = nullptr;  // only these rows
  size_t at = 0, count = 0;
  size_t row() const { return some ? (*some)[at] : at; }
};

std::string declaration(const SqlView& view) {
  std::string text = "CREATE TABLE x(";
  for (const SqlColumn& column : view.columns) text += (text.ends_with('(') ? "\"" : ",\"") + column.name + "\"";
  return text + ")";
}

// SQLite is C: no exception may pass through it.
template <class Work>
int guarded(Work work) {
  try {
    work();
    return SQLITE_OK;
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (const std::exception&) {
    return SQLITE_ERROR;
  }
}

int connect(sqlite3* db, void* source, int, const char* const*, sqlite3_vtab** out, char**) {
  auto* view = static_cast<ViewSource*>(source);
  if (const int code = sqlite3_declare_vtab(db, declaration(*view->view).c_str()); code != SQLITE_OK) return code;
  return guarded([&] {
    auto* table = new ViewTable{};
    table->source = view;
    *out = table;
  });
}
int disconnect(sqlite3_vtab* table) {
  delete static_cast<ViewTable*>(table);
  return SQLITE_OK;
}
int best_index(sqlite3_vtab* table, sqlite3_index_info* info) {
  const bool made = static_cast<ViewTable*>(table)->source->made != nullptr;
  info->estimatedRows = made ? static_cast<sqlite3_int64>(static_cast<ViewTable*>(table)->source->made->count()) : 100'000;
  info->estimatedCost = static_cast<double>(info->estimatedRows);
  const auto& columns = static_cast<ViewTable*>(table)->source->view->columns;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& asked = info->aConstraint[i];
    if (asked.iColumn < 0 || !asked.usable || asked.op != SQLITE_INDEX_CONSTRAINT_EQ || !columns[static_cast<size_t>(asked.iColumn)].joins) continue;
    info->aConstraintUsage[i].argvIndex = 1;  // SQLite compares again, so text and fractions need no care here
    info->idxNum = asked.iColumn + 1;
    info->estimatedRows = 10, info->estimatedCost = 20;
    break;
  }
  return SQLITE_OK;
}
int open_cursor(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  return guarded([&] { *out = new Cursor{}; });
}
int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}
int filter(sqlite3_vtab_cursor* at, int looked_up, const char*, int, sqlite3_value** values) {
  auto* cursor = static_cast<Cursor*>(at);
  return guarded([&] {
    ViewSource& source = *static_cast<ViewTable*>(cursor->pVtab)->source;
    cursor->rows = &source.rows();
    cursor->some = looked_up > 0 ? &source.rows_with(looked_up - 1, sqlite3_value_int64(values[0])) : nullptr;
    cursor->at = 0, cursor->count = cursor->some ? cursor->some->size() : cursor->rows->count();
  });
}
int next(sqlite3_vtab_cursor* at) {
  ++static_cast<Cursor*>(at)->at;
  return SQLITE_OK;
}
int eof(sqlite3_vtab_cursor* at) { return static_cast<Cursor*>(at)->at >= static_cast<Cursor*>(at)->count; }
int rowid(sqlite3_vtab_cursor* at, sqlite3_int64* out) {
  *out = static_cast<sqlite3_int64>(static_cast<Cursor*>(at)->row());
  return SQLITE_OK;
}

struct Answer {
  sqlite3_context* context;
  void operator()(std::monostate) const { sqlite3_result_null(context); }
  void operator()(int64_t value) const { sqlite3_result_int64(context, value); }
  void operator()(double value) const { sqlite3_result_double(context, value); }
  void operator()(std::string_view value) const { sqlite3_result_text64(context, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8); }
  void operator()(const std::string& value) const { sqlite3_result_text64(context, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8); }
};
int column(sqlite3_vtab_cursor* at, sqlite3_context* context, int index) {
  const auto* cursor = static_cast<Cursor*>(at);
  return guarded([&] { std::visit(Answer{context}, cursor->rows->cell(cursor->row(), static_cast<size_t>(index))); });
}

// Without xCreate there is one table of this name, which nobody makes or drops.
sqlite3_module view_module() {
  sqlite3_module module{};
  module.xConnect = connect, module.xDisconnect = disconnect, module.xBestIndex = best_index;
  module.xOpen = open_cursor, module.xClose = close_cursor, module.xFilter = filter;
  module.xNext = next, module.xEof = eof, module.xColumn = column, module.xRowid = rowid;
  return module;
}

int only_reads(void*, int action, const char*, const char* function, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return function && sqlite3_stricmp(function, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

void bound_sizes(sqlite3* db) {
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 200);
  sqlite3_limit(db, SQLITE_LIMIT_COMPOUND_SELECT, 50);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 1 << 20);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

SqlCell cell_of(sqlite3_stmt* statement, int i) {
  switch (sqlite3_column_type(statement, i)) {
    case SQLITE_INTEGER: return static_cast<int64_t>(sqlite3_column_int64(statement, i));
    case SQLITE_FLOAT: return sqlite3_column_double(statement, i);
    case SQLITE_NULL: return {};
    default: {
      const void* bytes = sqlite3_column_blob(statement, i);
      return std::string(static_cast<const char*>(bytes), bytes ? static_cast<size_t>(sqlite3_column_bytes(statement, i)) : 0);
    }
  }
}

std::string view_names() {
  std::string names;
  for (const SqlView& view : sql_views()) names += (names.empty() ? "" : ", ") + view.name;
  return names;
}

enum class Stopped { No, Late, Memory, Cancelled };

constexpr const char* kTooMuchMemory = "The query needs more memory than it may use. Ask for fewer rows or columns.";

[[noreturn]] void refuse_stopped(Stopped why, const SqlBounds& bounds) {
  if (why == Stopped::Cancelled) throw Failure("The query was stopped.");
  if (why == Stopped::Memory) throw Failure(kTooMuchMemory);
  throw Failure("The query took longer than " + formatted("{:g}", std::chrono::duration<double>(bounds.time).count()) +
                " s and was stopped. Ask for less, or allow more time.");
}

[[noreturn]] void refuse(sqlite3* db, int code) {
  switch (code & 0xff) {
    case SQLITE_NOMEM:
      throw Failure(kTooMuchMemory);
    case SQLITE_AUTH:
      throw Failure("A query may only read the views: begin it with SELECT or WITH.");
    case SQLITE_TOOBIG:
      throw Failure("A value of the query is too large.");
    default: {
      const std::string said = sqlite3_errmsg(db);
      throw Failure("SQL: " + said + "." + (said.starts_with("no such table") ? " The views are " + view_names() + "." : ""));
    }
  }
}

size_t bytes_of(const SqlCell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return sizeof(SqlCell) + (text ? text->size() : 0);
}

}  // namespace

std::vector<std::string> sql_run_names(const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const std::string& one : wanted) {
    std::string name = one;
    for (int i = 2; !taken.insert(name).second; ++i) name = one + "-" + std::to_string(i);
    names.push_back(name);
  }
  return names;
}

namespace {

std::vector<std::string> file_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) names.push_back(std::filesystem::path(path).stem().string());
  return names;
}

SqlRuns read_runs(const std::vector<std::string>& paths, const std::vector<std::string>& wanted) {
  SqlRuns runs;
  const auto names = sql_run_names(wanted);
  for (size_t i = 0; i < paths.size(); ++i) runs.push_back({names[i], paths[i], prof::import_ranks({paths[i]})});
  return runs;
}

}  // namespace

struct RunDatabase::Impl {
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  SqlRuns runs;
  std::vector<ViewSource> sources;
  std::unique_ptr<sqlite3, Close> db;  // closed before the sources end
  // The query at hand.
  SqlBounds bounds;
  std::chrono::steady_clock::time_point deadline;
  int64_t most_memory = 0;
  Stopped stopped = Stopped::No;

  explicit Impl(SqlRuns all) : runs(std::move(all)) {
    static const sqlite3_module module = view_module();
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE, nullptr);
    db.reset(opened);
    if (code != SQLITE_OK) throw Failure("SQLite could not be started.");
    sqlite3_exec(opened, "PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF", nullptr, nullptr, nullptr);
    for (const SqlView& view : sql_views()) sources.push_back({&view, &runs});
    for (ViewSource& source : sources) sqlite3_create_module_v2(opened, source.view->name.c_str(), &module, &source, nullptr);
    connect_views();
    bound_sizes(opened);
    sqlite3_set_authorizer(opened, only_reads, nullptr);
    sqlite3_progress_handler(opened, kCheckedEach, must_stop, this);
  }
  // SQLite declares a view when it first sees its name. With only_reads() it could not.
  void connect_views() {
    for (const SqlView& view : sql_views()) {
      sqlite3_stmt* statement = nullptr;
      if (sqlite3_prepare_v2(db.get(), ("SELECT * FROM " + view.name).c_str(), -1, &statement, nullptr) != SQLITE_OK)
        throw Failure("The view " + view.name + " could not be made: " + sqlite3_errmsg(db.get()) + ".");
      sqlite3_finalize(statement);
    }
  }
  // SQLite's own memory limit is for the whole process: a training that writes its run would meet it too.
  static int must_stop(void* self) {
    auto* it = static_cast<Impl*>(self);
    if (it->bounds.cancelled && *it->bounds.cancelled) it->stopped = Stopped::Cancelled;
    else if (sqlite3_memory_used() > it->most_memory) it->stopped = Stopped::Memory;
    else if (std::chrono::steady_clock::now() > it->deadline) it->stopped = Stopped::Late;
    return it->stopped != Stopped::No;
  }
  void begin(const SqlBounds& asked) {
    bounds = asked, stopped = Stopped::No;
    deadline = std::chrono::steady_clock::now() + bounds.time;
    most_memory = sqlite3_memory_used() + bounds.bytes;
  }

  Statement prepared(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    const char* rest = nullptr;
    const int code = sqlite3_prepare_v2(db.get(), sql.data(), static_cast<int>(sql.size()), &statement, &rest);
    Statement made(statement);
    if (code != SQLITE_OK) refuse(db.get(), code);
    if (!made) throw Failure("The query is empty: write a SELECT.");
    const std::string after(rest, sql.data() + sql.size());
    if (after.find_first_not_of(" \t\r\n;") != std::string::npos) throw Failure("Only one statement can be asked at a time.");
    if (!sqlite3_stmt_readonly(statement) || sqlite3_stmt_isexplain(statement) != 0 || sqlite3_column_count(statement) == 0)
      throw Failure("A query may only read the views: begin it with SELECT or WITH.");
    return made;
  }
};

RunDatabase::RunDatabase(const std::vector<std::string>& paths, const std::vector<std::string>& names)
    : RunDatabase(read_runs(paths, names.empty() ? file_names(paths) : names)) {}
RunDatabase::RunDatabase(SqlRuns runs) : impl_(std::make_unique<Impl>(std::move(runs))) {}
RunDatabase::~RunDatabase() = default;

SqlTable RunDatabase::query(const std::string& sql, const SqlBounds& bounds) {
  impl_->begin(bounds);
  const Statement statement = impl_->prepared(sql);
  SqlTable table;
  const int columns = sqlite3_column_count(statement.get());
  for (int i = 0; i < columns; ++i) table.columns.emplace_back(sqlite3_column_name(statement.get(), i));
  int code = SQLITE_ROW;
  auto left = static_cast<size_t>(bounds.bytes);
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    if (table.rows.size() == bounds.rows) throw Failure("The query gives more than " + std::to_string(bounds.rows) + " rows. Add LIMIT, or group them.");
    auto& row = table.rows.emplace_back();
    for (int i = 0; i < columns; ++i) row.push_back(cell_of(statement.get(), i));
    for (const SqlCell& cell : row) {
      if (bytes_of(cell) > left) throw Failure(kTooMuchMemory);
      left -= bytes_of(cell);
    }
  }
  if (impl_->stopped != Stopped::No) refuse_stopped(impl_->stopped, bounds);
  if (code != SQLITE_DONE) refuse(impl_->db.get(), code);
  return table;
}

std::vector<std::string> RunDatabase::problems() const {
  std::vector<std::string> all;
  for (const SqlRun& run : impl_->runs)
    for (const std::string& problem : run.data.problems) all.push_back(run.path + ": " + problem);
  return all;
}

}  // namespace ws::app

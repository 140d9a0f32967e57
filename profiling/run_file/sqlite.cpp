#include "profiling/run_file/sqlite.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "profiling/base/ownership.h"
#include "profiling/base/sqlite_log.h"
#include "profiling/base/text.h"

namespace ws::prof {

namespace {

constexpr int64_t kShortestLimit = 1 << 20, kLongestLimit = 256 << 20;

int64_t bytes_of_file(const std::string& path) {
  std::error_code missing;
  const auto size = std::filesystem::file_size(path, missing);
  return bytes_of_log(path) + (missing ? 0 : static_cast<int64_t>(size));
}

std::string as_name(std::string_view name) {
  std::string result = "\"";
  for (char c : name) result.append(c == '"' ? 2 : 1, c);
  return result + '"';
}

// Throws by the code of SQLite: is it the system, another connection, or what the file holds?
[[noreturn]] void fail(int code, const std::string& sentence) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw DatabaseBusy(sentence);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_FULL:
      throw Unavailable(sentence);
    default:
      throw Failure(sentence);
  }
}

// Opens immutable if the reader cannot write beside the file (read-only folder, disk of another machine).
sqlite3* open_handle(const std::string& path, int flags, bool immutable) {
  sqlite3* handle = nullptr;
  std::string uri = "file:";
  for (char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) || c == '/' || c == '.' || c == '-' || c == '_';
    uri += plain ? std::string(1, c) : formatted("%{:02X}", byte);
  }
  if (immutable) uri += "?immutable=1";
  const int code = sqlite3_open_v2(uri.c_str(), &handle, flags | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (code == SQLITE_OK) return handle;
  const std::string reason = handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  sqlite3_close_v2(handle);
  fail(code, "Cannot open " + path + ": " + reason + ".");
}

// Adds the system's reason, because SQLite only says "disk I/O error".
std::string reason_of(sqlite3* handle) {
  std::string text = sqlite3_errmsg(handle);
  const int code = sqlite3_errcode(handle) & 0xff, error = sqlite3_system_errno(handle);
  if (error != 0 && (code == SQLITE_IOERR || code == SQLITE_CANTOPEN))
    text += std::string(" (") + std::strerror(error) + ")";
  return text;
}

std::string sentence_of(int code, sqlite3* handle) {
  if ((code & 0xff) == SQLITE_FULL) return "The disk is full.";
  return "The database says: " + reason_of(handle) + ".";
}

// The file is not damaged, but no normal program writes such content.
class Refused : public Failure {
 public:
  using Failure::Failure;
};

constexpr const char* kLogName = "SELECT name FROM log_name";

// The file itself, whatever its log says, has another name or none. Where the machine lost its power in the middle of a
// checkpoint, the name may be unreadable: then the log is what makes the file whole.
bool has_another_name(const std::string& path, const std::string& name) {
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> file(open_handle(path, SQLITE_OPEN_READONLY, true), sqlite3_close_v2);
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(file.get(), kLogName, -1, &statement, nullptr);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  const auto* const text = code == SQLITE_ROW ? reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)) : nullptr;
  const bool other = !text || name != text;
  sqlite3_finalize(statement);
  return other && code != SQLITE_CORRUPT;
}

// Somebody moved another file over one that was being written: the log that lies beside it belongs to the file that is gone.
// SQLite would replay it into this one. The lock file of the writer, alive or killed, says of which file the log is.
bool log_is_foreign(const std::string& path) {
  if (bytes_of_log(path) == 0) return false;
  const std::string said = said_by_owner(path);
  return !said.empty() && has_another_name(path, said);
}

int try_to_read(sqlite3* handle) {
  return sqlite3_exec(handle, "SELECT count(*) FROM sqlite_master", nullptr, nullptr, nullptr);
}

}  // namespace

Statement::Statement(sqlite3* db, std::string_view sql, QueryBounds* bounds) : bounds_(bounds) {
  begin();
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) fail(code, "The database refuses a query: " + reason_of(db) + ".");
  handle_.reset(statement);
}

void Statement::begin() {
  if (!bounds_) return;
  rows_left_ = bounds_->rows, bytes_left_ = bounds_->bytes;
  bounds_->work_left = bounds_->work;
}

void Statement::check(int code) const {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  fail(code, sentence_of(code, sqlite3_db_handle(handle_.get())));
}

bool Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_INTERRUPT) throw Failure("The database asks for more work than its size allows.");
  check(code);
  if (code == SQLITE_ROW && bounds_ && --rows_left_ < 0)
    throw Failure("The database gives more rows than fit into its pages.");
  return code == SQLITE_ROW;
}

std::string_view Statement::counted(const char* bytes, int column) const {
  if (!bytes) return {};
  const auto size = static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column));
  if (bounds_ && (bytes_left_ -= static_cast<int64_t>(size)) < 0)
    throw Failure("The database gives more bytes than it has.");
  return {bytes, size};
}

std::string_view Statement::text(int column) const {
  return counted(reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column)), column);
}

std::string_view Statement::blob(int column) const {
  return counted(static_cast<const char*>(sqlite3_column_blob(handle_.get(), column)), column);
}

void Statement::bind(int index, double value) {
  check(std::isnan(value) ? sqlite3_bind_null(handle_.get(), index) : sqlite3_bind_double(handle_.get(), index, value));
}

void Statement::bind(int index, std::string_view value) {
  check(sqlite3_bind_text64(handle_.get(), index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::bind(int index, Blob value) {
  check(sqlite3_bind_blob64(handle_.get(), index, value.bytes.data(), value.bytes.size(), SQLITE_TRANSIENT));
}

Database::Database(const std::string& path, Mode mode) {
  if (mode == Mode::Create) {
    remove_database(path);
    handle_.reset(open_handle(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, false));
    harden();
  } else if (!std::filesystem::is_regular_file(path)) {
    throw Failure("There is no file " + path + ".");
  } else if (mode == Mode::Update || mode == Mode::Amend) {
    if (log_is_foreign(path)) remove_log(path);
    handle_.reset(open_handle(path, SQLITE_OPEN_READWRITE, false));
    harden();
    if (mode == Mode::Amend) bound(path), refuse_computed(path);
  } else {
    const bool alone = log_is_foreign(path);
    open_for_reading(path, alone);
    int code = try_to_read(handle_.get());
    if (sqlite3_extended_errcode(handle_.get()) == SQLITE_READONLY_ROLLBACK) code = take_back_change(path);
    if (code == SQLITE_NOTADB)
      throw Failure(path + " holds something else than a database, or its beginning is damaged.");
    if (code != SQLITE_OK) open_for_reading(path, true);
    refuse_computed(path);
  }
}

// A program that ended in the middle of a change left its journal. Without it a reader would see half of the change.
int Database::take_back_change(const std::string& path) {
  try_to_read(Database(path, Mode::Amend).handle_.get());
  open_for_reading(path, false);
  return try_to_read(handle_.get());
}

void Database::open_for_reading(const std::string& path, bool immutable) {
  handle_.reset(open_handle(path, SQLITE_OPEN_READONLY, immutable));
  harden();
  bound(path);
}

// A value cannot be longer than its file, unless the schema computes one to exhaust our memory.
void Database::bound(const std::string& path) {
  constexpr int kAtOnce = 10'000;  // SQLite instructions
  const int64_t bytes = bytes_of_file(path);
  bounds_ = std::make_unique<QueryBounds>(QueryBounds{bytes / limits::kDatabaseRowBytes + 1000, 2 * bytes + (1 << 20),
                                                      limits::kDatabaseStart + limits::kDatabaseWork * bytes, 0});
  bounds_->work_left = bounds_->work;
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_LENGTH,
                static_cast<int>(std::clamp(bytes, kShortestLimit, kLongestLimit)));
  sqlite3_progress_handler(
      handle_.get(), kAtOnce,
      [](void* bounds) { return static_cast<int>((static_cast<QueryBounds*>(bounds)->work_left -= kAtOnce) < 0); },
      bounds_.get());
  sqlite3_exec(handle_.get(), "PRAGMA cell_size_check = ON", nullptr, nullptr, nullptr);
}

// Normal programs write values. Computed columns and virtual tables serve only to make the reader execute code.
void Database::refuse_computed(const std::string& path) {
  std::vector<std::string> tables;
  try {
    Statement query = prepare("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'");
    for (; query.step(); tables.emplace_back(query.text(0))) {
      if (query.integer(1) == 0) throw Refused(path + " holds a table that runs code when it is read; it is refused.");
      if (tables.size() > limits::kMostTables) throw Refused(path + " holds too many tables; it is refused.");
    }
    for (const std::string& table : tables) {
      Statement columns = prepare("PRAGMA table_xinfo(" + as_name(table) + ")");
      while (columns.step())
        if (columns.integer(6) > 1) throw Refused(path + " holds columns that are computed; it is refused.");
    }
  } catch (const Refused&) {
    throw;
  } catch (const Unavailable&) {
    throw;
  } catch (const Failure&) {
  }  // damaged: reads what is readable
}

// The file is not trusted: nothing in its schema may run code. A truncated file must still show its beginning.
void Database::harden() {
  static const auto once = sqlite3_hard_heap_limit64(memory_limit());
  static_cast<void>(once);
  sqlite3_busy_timeout(handle_.get(), 2000);
  for (int option : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW}) {
    sqlite3_db_config(handle_.get(), option, 0, nullptr);
  }
  const bool reads = sqlite3_db_readonly(handle_.get(), "main") == 1;
  sqlite3_db_config(handle_.get(), reads ? SQLITE_DBCONFIG_WRITABLE_SCHEMA : SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
}

void Database::exec(const char* sql) {
  const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, sentence_of(code, handle_.get()));
}

bool Database::has_table(std::string_view name) {
  Statement query = prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
  query.bind_all(name);
  return query.step();
}

std::vector<std::string> Database::columns(std::string_view table) {
  std::vector<std::string> names;
  Statement query = prepare("PRAGMA table_info(" + as_name(table) + ")");
  while (query.step()) names.emplace_back(query.text(1));
  return names;
}

int64_t Database::integer(std::string_view sql) {
  Statement query = prepare(sql);
  return query.step() ? query.integer(0) : 0;
}

bool Database::has_moved() {
  int moved = 0;
  sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

void Database::name_log() {
  constexpr int kBytes = 16;
  unsigned char random[kBytes];
  sqlite3_randomness(kBytes, random);
  std::string name;
  for (const unsigned char byte : random) name += formatted("{:02x}", byte);
  exec("CREATE TABLE log_name(name TEXT)");
  prepare("INSERT INTO log_name VALUES(?)").run(name);
}

std::string Database::log_name() {
  if (!has_table("log_name")) return {};
  Statement query = prepare(kLogName);
  return query.step() ? std::string(query.text(0)) : std::string();
}

void Database::fold() {
  exec("PRAGMA wal_checkpoint(TRUNCATE)");
  exec("PRAGMA journal_mode = DELETE");
  remove_log(sqlite3_db_filename(handle_.get(), "main"));  // SQLite tries that once and says nothing where it fails
}

}  // namespace ws::prof

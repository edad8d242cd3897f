#include "sqlite.h"

#include <sqlite3.h>

#include <chrono>
#include <thread>

namespace heddle {
namespace {

// The only conversion of SQLite's codes to ours; every message names the file.
Error to_error(int code, sqlite3* db, const std::string& path) {
  const std::string detail = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const auto at_file = [&](Code c, std::string message) {
    return Error(c, std::move(message)).with_context(path);
  };
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return at_file(
          Code::kInvalidInput,
          "is no profile store (not an SQLite file); move the file away or name another profile store");
    case SQLITE_CORRUPT:
      return at_file(Code::kInvalidInput, "the profile store is damaged (" + detail +
                                              "); move the file away, and it is measured anew");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return at_file(
          Code::kIo,
          "another process keeps the profile store locked; wait for it or name another profile store");
    case SQLITE_FULL:
      return at_file(Code::kIo, "the disk is full; free some space");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return at_file(Code::kIo, "cannot open the profile store for writing (" + detail +
                                    "); check its permissions or set HEDDLE_PROFILE_STORE to another file");
    case SQLITE_ERROR:  // the statements are fixed, so the table must differ
      return at_file(Code::kInvalidInput, "is no profile store (" + detail +
                                              "); move the file away or name another profile store");
    default:
      return at_file(Code::kIo, "the profile store cannot be used: " + detail);
  }
}

}  // namespace

Statement::~Statement() { sqlite3_finalize(stmt_); }

Statement::Reset::~Reset() {
  sqlite3_reset(s_.stmt_);
  sqlite3_clear_bindings(s_.stmt_);
}

// Binding fails only for a wrong index or lack of memory; step() then reports it.
void Statement::bind_one(int i, int64_t value) { sqlite3_bind_int64(stmt_, i, value); }
void Statement::bind_one(int i, double value) { sqlite3_bind_double(stmt_, i, value); }
void Statement::bind_one(int i, std::string_view value) {
  sqlite3_bind_text64(stmt_, i, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(stmt_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return to_error(code, db_, path_);
}

int64_t Statement::int64(int column) const { return sqlite3_column_int64(stmt_, column); }
double Statement::real(int column) const { return sqlite3_column_double(stmt_, column); }
std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(stmt_, column));
  return text == nullptr ? std::string()
                         : std::string(text, static_cast<size_t>(sqlite3_column_bytes(stmt_, column)));
}

Database::~Database() { sqlite3_close_v2(db_); }

Result<Database> Database::open(const std::string& path, int busy_timeout_ms) {
  Database database;
  database.path_ = path;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &database.db_, flags, nullptr);
  if (code != SQLITE_OK) return to_error(code, database.db_, path);
  sqlite3_extended_result_codes(database.db_, 1);
  sqlite3_busy_timeout(database.db_, busy_timeout_ms);
  // Files may come from elsewhere: disable SQL functions in schemas, limit strings.
  sqlite3_db_config(database.db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database.db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(database.db_, SQLITE_LIMIT_LENGTH, 16 << 20);
  return database;
}

Status Database::use_wal() {
  // Switching needs exclusive access for a moment, and does not wait by itself while others open the file.
  Status last;
  for (int attempt = 0; attempt < 200; ++attempt) {
    last = run("PRAGMA journal_mode = WAL");
    if (last.ok() || last.error().code() != Code::kIo) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  HEDDLE_RETURN_IF_ERROR(std::move(last));
  return run("PRAGMA synchronous = FULL");
}

Status Database::run(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return to_error(code, db_, path_);
  return {};
}

Result<int64_t> Database::number(const std::string& sql) {
  HEDDLE_ASSIGN_OR_RETURN(Statement s, prepare(sql));
  HEDDLE_ASSIGN_OR_RETURN(const bool row, s.step());
  return row ? s.int64(0) : 0;
}

Result<Statement> Database::prepare(const std::string& sql) {
  Statement s;
  s.db_ = db_;
  s.path_ = path_;
  const int code = sqlite3_prepare_v3(db_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &s.stmt_, nullptr);
  if (code != SQLITE_OK) return to_error(code, db_, path_);
  return s;
}

}  // namespace heddle

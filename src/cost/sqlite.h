// SQLite's C interface with RAII and Result. Not thread-safe: the caller locks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "heddle/base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace heddle {

class Database;

// A prepared statement; must not outlive its database.
class Statement {
 public:
  Statement() = default;
  Statement(Statement&& other) noexcept
      : db_(std::exchange(other.db_, nullptr)),
        stmt_(std::exchange(other.stmt_, nullptr)),
        path_(std::move(other.path_)) {}
  Statement& operator=(Statement&& other) noexcept {
    std::swap(db_, other.db_);
    std::swap(stmt_, other.stmt_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~Statement();

  // Resets the statement for its next use and ends its read transaction.
  class Reset {
   public:
    explicit Reset(Statement& s) : s_(s) {}
    ~Reset();
    Reset(const Reset&) = delete;
    Reset& operator=(const Reset&) = delete;

   private:
    Statement& s_;
  };

  // Binds ?1, ?2, ... Texts are copied.
  template <class... Values>
  void bind(const Values&... values) {
    int i = 0;
    (bind_one(++i, values), ...);
  }
  // True: a row is ready. False: done.
  Result<bool> step();

  int64_t int64(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  friend class Database;
  void bind_one(int i, int64_t value);
  void bind_one(int i, double value);
  void bind_one(int i, std::string_view value);

  sqlite3* db_ = nullptr;
  sqlite3_stmt* stmt_ = nullptr;
  std::string path_;
};

class Database {
 public:
  Database() = default;
  Database(Database&& other) noexcept
      : db_(std::exchange(other.db_, nullptr)), path_(std::move(other.path_)) {}
  Database& operator=(Database&& other) noexcept {
    std::swap(db_, other.db_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~Database();

  // Opens or creates.
  static Result<Database> open(const std::string& path, int busy_timeout_ms);
  const std::string& path() const { return path_; }
  // Write-ahead logging with durable commits. File systems without support for it (some network ones) keep
  // the rollback journal, which is durable too.
  Status use_wal();
  Status run(const std::string& sql);
  Result<int64_t> number(const std::string& sql);  // the first column of the first row
  Result<Statement> prepare(const std::string& sql);

 private:
  sqlite3* db_ = nullptr;
  std::string path_;
};

}  // namespace heddle

// One table; each put is its own transaction. With WAL, readers continue while another process writes. With
// synchronous=FULL, a commit is on disk when it returns, so a profile that is killed keeps its records.
#include "heddle/cost/profile_store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "heddle/base/utc.h"
#include "sqlite.h"

namespace heddle {
namespace {

constexpr int kVersion = 1;
constexpr int kApplicationId = 0x48445046;  // "HDPF"
constexpr int kBusyTimeoutMs = 15'000;      // another process's commit takes milliseconds

constexpr const char* kCreate = R"sql(
  CREATE TABLE profile (
    fingerprint TEXT NOT NULL, signature INTEGER NOT NULL, target TEXT NOT NULL, batch INTEGER NOT NULL,
    share REAL NOT NULL, label TEXT NOT NULL, median_us REAL NOT NULL, rel_spread REAL NOT NULL,
    runs INTEGER NOT NULL, taken_at TEXT NOT NULL,
    PRIMARY KEY (fingerprint, signature, target, share, batch)) WITHOUT ROWID)sql";

constexpr const char* kColumns =
    "signature, target, batch, share, label, median_us, rel_spread, runs, taken_at";

Error broken(const std::string& path, const std::string& why) {
  return invalid_input(
             fmt::format("{}; move the file away or name another profile store, and it is measured anew",
                         why))
      .with_context(path);
}

bool plausible(const ProfileRecord& r) {
  return std::isfinite(r.median_us) && r.median_us >= 0 && std::isfinite(r.rel_spread) && r.rel_spread >= 0 &&
         r.runs >= 1 && r.key.batch >= 1 && r.key.share > 0 && r.key.share <= 1 && !r.key.target.empty();
}

Result<ProfileRecord> read_row(const Statement& s, const std::string& path) {
  ProfileRecord r;
  r.key.signature = std::bit_cast<uint64_t>(s.int64(0));
  r.key.target = s.text(1);
  r.key.batch = static_cast<int>(s.int64(2));
  r.key.share = s.real(3);
  r.label = s.text(4);
  r.median_us = s.real(5);
  r.rel_spread = s.real(6);
  r.runs = static_cast<int>(s.int64(7));
  r.taken_at = s.text(8);
  if (!plausible(r))
    return broken(path, fmt::format("the profile store holds an impossible record for '{}'", r.label));
  return r;
}

// Creates the table in an empty file, or checks the file's application id and version.
Status prepare_schema(Database& db) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t tables, db.number("SELECT count(*) FROM sqlite_master"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t id, db.number("PRAGMA application_id"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t version, db.number("PRAGMA user_version"));
  if (tables == 0 && id == 0 && version == 0) {
    HEDDLE_RETURN_IF_ERROR(db.run(kCreate));
    HEDDLE_RETURN_IF_ERROR(db.run(fmt::format("PRAGMA application_id = {}", kApplicationId)));
    return db.run(fmt::format("PRAGMA user_version = {}", kVersion));
  }
  if (id != kApplicationId) return broken(db.path(), "this SQLite file is no profile store");
  if (version > kVersion) {
    return unsupported(
               fmt::format("the profile store has version {}, this program reads up to {}; use a newer "
                           "program or name another profile store",
                           version, kVersion))
        .with_context(db.path());
  }
  return {};
}

}  // namespace

struct ProfileStore::Impl {
  Database db;
  std::string fingerprint;
  mutable std::mutex mutex;  // one connection: one statement at a time
  Statement find, segment, put, all;

  Result<std::vector<ProfileRecord>> rows(Statement& s) const {
    std::vector<ProfileRecord> records;
    for (;;) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, s.step());
      if (!more) return records;
      HEDDLE_ASSIGN_OR_RETURN(auto record, read_row(s, db.path()));
      records.push_back(std::move(record));
    }
  }
  Status prepare() {
    const std::string select = fmt::format("SELECT {} FROM profile WHERE fingerprint = ?1", kColumns);
    const std::string on_target = select + " AND signature = ?2 AND target = ?3";
    HEDDLE_ASSIGN_OR_RETURN(find, db.prepare(on_target + " AND share = ?4 AND batch = ?5"));
    HEDDLE_ASSIGN_OR_RETURN(segment, db.prepare(on_target + " ORDER BY share, batch"));
    HEDDLE_ASSIGN_OR_RETURN(all, db.prepare(select + " ORDER BY signature, target, share, batch"));
    HEDDLE_ASSIGN_OR_RETURN(
        put, db.prepare("INSERT OR REPLACE INTO profile (fingerprint, signature, target, share, batch, "
                        "label, median_us, rel_spread, runs, taken_at) "
                        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"));
    return {};
  }
};

ProfileStore::ProfileStore() = default;
ProfileStore::~ProfileStore() = default;
const std::string& ProfileStore::path() const { return impl_->db.path(); }

Result<std::shared_ptr<ProfileStore>> ProfileStore::open(const std::string& path,
                                                         const std::string& fingerprint) {
  if (path.empty()) return invalid_input("the profile store's path is empty; name a file");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  if (failed)
    return io_error(fmt::format("cannot create the folder '{}': {}", folder.string(), failed.message()))
        .with_context(path);
  if (std::filesystem::is_directory(path, failed))
    return invalid_input("is a folder; expected a file").with_context(path);

  std::shared_ptr<ProfileStore> store(new ProfileStore());
  store->impl_ = std::make_unique<Impl>();
  Impl& impl = *store->impl_;
  impl.fingerprint = fingerprint;
  HEDDLE_ASSIGN_OR_RETURN(impl.db, Database::open(path, kBusyTimeoutMs));
  HEDDLE_RETURN_IF_ERROR(impl.db.use_wal());
  // IMMEDIATE: if two processes create the file at once, the second waits and finds the table.
  HEDDLE_RETURN_IF_ERROR(impl.db.run("BEGIN IMMEDIATE"));
  Status prepared = prepare_schema(impl.db);
  Status ended = impl.db.run(prepared.ok() ? "COMMIT" : "ROLLBACK");
  HEDDLE_RETURN_IF_ERROR(std::move(prepared));
  HEDDLE_RETURN_IF_ERROR(std::move(ended));
  HEDDLE_RETURN_IF_ERROR(impl.prepare());
  return store;
}

bool worth_repeating(const ProfileRecord& record, int64_t now) {
  constexpr int64_t kTrustedSeconds = 600;
  if (record.rel_spread <= kDisturbedSpread) return false;
  const auto taken = utc_seconds(record.taken_at);
  return !taken || now - *taken > kTrustedSeconds;
}

std::string host_access_target(const std::string& target) { return target + ", parameters in place"; }

std::string core_taken_target(const std::string& target) { return target + ", a core taken"; }

std::string ProfileStore::default_path() {
  const auto env = [](const char* name) {
    const char* value =
        std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets the environment
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string path = env("HEDDLE_PROFILE_STORE"); !path.empty()) return path;
  std::string cache = env("XDG_CACHE_HOME");
  // The XDG specification says to ignore a relative path.
  if (cache.empty() || cache[0] != '/') {
    const std::string home = env("HOME");
    cache = (home.empty() ? std::filesystem::temp_directory_path().string() : home) + "/.cache";
  }
  return cache + "/heddle/profiles.sqlite";
}

Result<std::optional<ProfileRecord>> ProfileStore::find(const ProfileKey& key) const {
  const std::lock_guard lock(impl_->mutex);
  Statement& s = impl_->find;
  const Statement::Reset reset(s);
  s.bind(impl_->fingerprint, std::bit_cast<int64_t>(key.signature), key.target, key.share,
         int64_t{key.batch});
  HEDDLE_ASSIGN_OR_RETURN(auto records, impl_->rows(s));
  if (records.empty()) return std::optional<ProfileRecord>();
  return std::optional<ProfileRecord>(std::move(records.front()));
}

Result<std::vector<ProfileRecord>> ProfileStore::find_segment(uint64_t signature,
                                                              const std::string& target) const {
  const std::lock_guard lock(impl_->mutex);
  Statement& s = impl_->segment;
  const Statement::Reset reset(s);
  s.bind(impl_->fingerprint, std::bit_cast<int64_t>(signature), target);
  return impl_->rows(s);
}

Result<std::vector<ProfileRecord>> ProfileStore::all() const {
  const std::lock_guard lock(impl_->mutex);
  Statement& s = impl_->all;
  const Statement::Reset reset(s);
  s.bind(impl_->fingerprint);
  return impl_->rows(s);
}

Status ProfileStore::put(const ProfileRecord& record) {
  if (!plausible(record)) {
    return internal_error(
        fmt::format("the measurement of '{}' is impossible: {} us, spread {}, {} runs, batch {}, "
                    "share {}, target '{}'",
                    record.label, record.median_us, record.rel_spread, record.runs, record.key.batch,
                    record.key.share, record.key.target));
  }
  const std::lock_guard lock(impl_->mutex);
  Statement& s = impl_->put;
  const Statement::Reset reset(s);
  s.bind(impl_->fingerprint, std::bit_cast<int64_t>(record.key.signature), record.key.target,
         record.key.share, int64_t{record.key.batch}, record.label, record.median_us, record.rel_spread,
         int64_t{record.runs}, record.taken_at.empty() ? utc_now() : record.taken_at);
  HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const bool row, s.step());
  return {};
}

}  // namespace heddle

// Measurements on disk (SQLite): time and spread of a segment on a device of a machine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cost/cost.h"

namespace heddle {

struct ProfileKey {
  uint64_t signature = 0;  // of the segment
  std::string target;      // Device::target: backend, device and core count, e.g. "openvino:CPU:2"
  int batch = 1;
  double share = 1;
};

struct ProfileRecord {
  ProfileKey key;
  std::string label;  // for people: the segment's op types or name
  double median_us = 0;
  double rel_spread = 0;  // as in Measurement
  int runs = 0;
  std::string taken_at;  // heddle/base/utc.h
};

// A disturbed measurement (kDisturbedSpread) is to be taken again if it is older than ten minutes: a machine that is
// busy all the time is not measured anew for every plan. `now` is in seconds since 1970, UTC.
bool worth_repeating(const ProfileRecord& record, int64_t now);

// The target for times with direct host access, where parameters are read in place from mapped host memory.
std::string host_access_target(const std::string& target);
// The target for times while another thread keeps one of the device's cores busy.
std::string core_taken_target(const std::string& target);

// One store per file. Each record belongs to a machine fingerprint; a store shows only those of its own
// machine. Every put is durable at once, so an interrupted profile keeps its records. Thread-safe.
class ProfileStore {
 public:
  // Creates the file (and its folder) if absent. Fails if the file is no profile store or of a newer version.
  static Result<std::shared_ptr<ProfileStore>> open(const std::string& path, const std::string& fingerprint);
  // $HEDDLE_PROFILE_STORE, else $XDG_CACHE_HOME/heddle/profiles.sqlite, else ~/.cache/heddle/profiles.sqlite.
  static std::string default_path();

  ~ProfileStore();
  const std::string& path() const;
  Result<std::optional<ProfileRecord>> find(const ProfileKey& key) const;
  // All batch sizes and shares of one segment on one target, ascending by share, then by batch size.
  Result<std::vector<ProfileRecord>> find_segment(uint64_t signature, const std::string& target) const;
  // Replaces the record of the same key. An empty `taken_at` is set to now. Fails on impossible values.
  Status put(const ProfileRecord& record);
  // All records of this machine, in key order.
  Result<std::vector<ProfileRecord>> all() const;

 private:
  struct Impl;
  ProfileStore();
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle

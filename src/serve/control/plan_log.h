// The changes of a served fleet's plan and the decisions on them, for people, pages and Prometheus.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>

#include "drift_watch.h"
#include "heddle/base/json.h"
#include "heddle/base/log.h"
#include "heddle/base/sync.h"

namespace heddle {

enum class PlanEvent : uint8_t {
  kAsked,       // a requested plan is in use
  kDrift,       // a plan for the measured times is in use
  kKept,        // a trial's plan stays
  kRolledBack,  // a trial's plan is gone; the one before it is in use again
  kRefused,     // a plan for measured times, or the way back, cannot be: what was there goes on
};
inline constexpr size_t kPlanEvents = 5;

// Thread-safe.
class PlanLog {
 public:
  using Print = std::function<void(LogLevel level, const std::string& text)>;
  explicit PlanLog(Print print) : print_(std::move(print)) {}

  // `details` are further members of the entry. Refusals and ways back are printed as warnings.
  void add(PlanEvent event, const std::string& text, const Json& details = Json::object());
  // The newest last: [{"at", "what", "text", ..}], "at" in UTC, "what" one of "asked", "drift", "kept",
  // "rolled back", "refused".
  Json entries() const;
  // Entries that a server before this one had, which come first; others than objects are left out.
  void continue_from(const Json& entries);
  uint64_t count(PlanEvent event) const;
  // Counters of all events, and the ratios that are given.
  std::string metrics(std::span<const PoolRatio> ratios) const;

 private:
  const Print print_;
  mutable Mutex mutex_;  // guards what follows
  std::deque<Json> entries_;
  uint64_t counts_[kPlanEvents] = {};
};

Json to_json(std::span<const PoolRatio> ratios);  // [{"model", "class", "share", "blocks", "ratio", "runs"}]

// "net on slow takes 2.01 times its planned time (64 runs)", of the first few.
std::string drift_text(std::span<const Drift> drifts);
Json to_json(std::span<const Drift> drifts);  // [{"model", "class", "share", "ratio", "runs"}]

}  // namespace heddle

#include "leadership.h"

#include <utility>

#include "heddle/base/json.h"

namespace heddle {
namespace {

constexpr const char* kLeaseKey = "leader";

struct LeaseText {
  uint64_t term = 0;
  std::string name;
  bool released = false;
};

Result<LeaseText> lease_from(const SharedStore::Entry& entry) {
  LeaseText lease;
  if (entry.revision == 0) return lease;
  HEDDLE_ASSIGN_OR_RETURN(const Json json, parse_json(entry.value));
  if (!json.is_object() || !json.contains("term") || !json["term"].is_number_unsigned())
    return invalid_input("the lease of the servers' store has no term");
  lease.term = json["term"].get<uint64_t>();
  lease.name = json.value("name", std::string());
  lease.released = json.value("released", false);
  return lease;
}

std::string text_of(const LeaseText& lease) {
  return Json{{"term", lease.term}, {"name", lease.name}, {"released", lease.released}}.dump();
}

}  // namespace

Leadership::Leadership(std::shared_ptr<SharedStore> store, std::string name, double lease_s)
    : store_(std::move(store)), name_(std::move(name)), lease_ns_(static_cast<int64_t>(lease_s * 1e9)) {}

Leadership::~Leadership() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (term_ > 0 && !lost_) (void)store_->set(kLeaseKey, text_of({term_, name_, true}), revision_).ok();
}

Result<bool> Leadership::take(uint64_t revision, uint64_t term) {
  HEDDLE_ASSIGN_OR_RETURN(const auto set, store_->set(kLeaseKey, text_of({term, name_, false}), revision));
  if (!set) return false;  // another standby was first
  term_ = term;
  revision_ = *set;
  leader_ = name_;
  return true;
}

// The same text with another revision.
Result<bool> Leadership::renew() {
  HEDDLE_ASSIGN_OR_RETURN(const auto set, store_->set(kLeaseKey, text_of({term_, name_, false}), revision_));
  if (set) {
    revision_ = *set;
    return true;
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto entry, store_->get(kLeaseKey));
  HEDDLE_ASSIGN_OR_RETURN(const auto lease, lease_from(entry));
  if (lease.term == term_ && lease.name == name_) {  // an answer to an earlier renewal was lost on its way
    revision_ = entry.revision;
    return true;
  }
  leader_ = lease.name;
  lost_ = true;
  return false;
}

Result<bool> Leadership::step() {
  const std::lock_guard lock(mutex_);
  if (lost_) return false;
  if (term_ > 0) return renew();
  HEDDLE_ASSIGN_OR_RETURN(const auto entry, store_->get(kLeaseKey));
  HEDDLE_ASSIGN_OR_RETURN(const auto lease, lease_from(entry));
  const int64_t now = steady_ns();
  if (entry.revision != revision_) {
    revision_ = entry.revision;
    seen_ns_ = now;
  }
  leader_ = lease.released ? "" : lease.name;
  const bool free = entry.revision == 0 || lease.released || now - seen_ns_ >= lease_ns_;
  return free ? take(entry.revision, lease.term + 1) : Result<bool>(false);
}

Status Leadership::wait(const CancelToken& cancel,
                        const std::function<void(const std::string& leader)>& waits) {
  std::string reported;
  for (bool first = true;; first = false) {
    const auto leads = step();
    if (!leads.ok() && first) return leads.error();
    if (leads.ok() && *leads) return {};
    const std::string other = leader();
    if (!other.empty() && other != reported) waits(reported = other);
    if (cancel.cancelled()) return cancelled_error("cancelled while waiting as a standby");
    sleep_ns(lease_ns_ / 4);
  }
}

void Leadership::keep(std::function<void(const std::string&)> lost,
                      std::function<void(const std::string&)> away) {
  on_lost_ = std::move(lost);
  on_away_ = std::move(away);
  thread_ = Thread([this] { run(); });
}

void Leadership::run() {
  bool is_away = false;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (!quit_) changed_.wait_for(lock, lease_ns_ / 4);
      if (quit_) return;
    }
    const auto leads = step();
    if (!leads.ok()) {
      if (!std::exchange(is_away, true)) on_away_(leads.error().to_string());
      continue;
    }
    if (std::exchange(is_away, false)) on_away_("");
    if (!*leads) return on_lost_(leader());
  }
}

bool Leadership::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

uint64_t Leadership::term() const {
  const std::lock_guard lock(mutex_);
  return term_;
}

std::string Leadership::leader() const {
  const std::lock_guard lock(mutex_);
  return leader_;
}

}  // namespace heddle

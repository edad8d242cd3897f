#include "leadership.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "heddle/base/fields.h"
#include "heddle/base/json.h"
#include "workers/protocol_version.h"

namespace heddle {
namespace {

constexpr const char* kLeaseKey = "leader";
constexpr int64_t kNsPerMinute = 60'000'000'000;

struct LeaseText {
  uint64_t term = 0;
  std::string name, incarnation;
  bool released = false;
};

// Of any text: the store is a folder or a bucket that others may write to.
Status read_lease(const std::string& text, LeaseText& lease) {
  HEDDLE_ASSIGN_OR_RETURN(const Json json, parse_json(text));
  const JsonCursor at(json, "lease");
  Fields fields(at);
  fields.required("term", lease.term)
      .optional("name", lease.name)
      .optional("incarnation", lease.incarnation)
      .optional("released", lease.released)
      .others_ignored();
  HEDDLE_RETURN_IF_ERROR(fields.finish());
  if (lease.term <= kMostTerm) return {};
  return at.error("has the term " + std::to_string(lease.term) + ", and the last one is " +
                  std::to_string(kMostTerm));
}

Result<LeaseText> lease_from(const SharedStore::Entry& entry) {
  LeaseText lease;
  if (entry.revision == 0) return lease;
  Status read = read_lease(entry.value, lease);
  if (!read.ok())
    return std::move(read).error().with_context(
        "the servers' store has a lease that this program does not read; empty it to begin anew");
  return lease;
}

std::string text_of(const LeaseText& lease) {
  return Json{{"term", lease.term},
              {"name", lease.name},
              {"incarnation", lease.incarnation},
              {"released", lease.released}}
      .dump();
}

}  // namespace

Leadership::Leadership(std::shared_ptr<SharedStore> store, std::string name, double lease_s,
                       int64_t (*clock)())
    : store_(std::move(store)),
      name_(std::move(name)),
      incarnation_(std::to_string(::getpid()) + "-" + std::to_string(clock())),
      lease_ns_(static_cast<int64_t>(lease_s * 1e9)),
      clock_(clock) {}

std::string Leadership::lease_text(uint64_t term, bool released) const {
  return text_of({term, name_, incarnation_, released});
}

// Without memory for a key's text the program may end. NOLINTNEXTLINE(bugprone-exception-escape)
Leadership::~Leadership() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (term_ > 0 && !lost_) (void)store_->set(kLeaseKey, lease_text(term_, true), revision_).ok();
}

Result<bool> Leadership::take(uint64_t revision) {
  // A store's first term is the minutes since 1970: above the terms that it had before it was emptied, which workers
  // may know.
  const auto first = static_cast<uint64_t>(std::max<int64_t>(1, clock_() / kNsPerMinute));
  const uint64_t term = seen_term_ == 0 ? first : seen_term_ + 1;
  if (term > kMostTerm)
    return invalid_input(
        "the servers' store has the last term, after which there is none; empty it to begin anew");
  HEDDLE_ASSIGN_OR_RETURN(const auto set, store_->set(kLeaseKey, lease_text(term, false), revision));
  if (!set) return false;  // another standby was first
  revision_ = *set;
  const std::lock_guard lock(mutex_);
  term_ = term;
  leader_ = name_;
  return true;
}

// The same text with another revision. The lease is looked at first: the revisions of an emptied store begin anew, so
// that of another's lease may be this one's.
Result<bool> Leadership::renew(uint64_t term) {
  HEDDLE_ASSIGN_OR_RETURN(const auto entry, store_->get(kLeaseKey));
  HEDDLE_ASSIGN_OR_RETURN(const auto lease, lease_from(entry));
  if (entry.revision == 0 || lease.incarnation == incarnation_) {
    HEDDLE_ASSIGN_OR_RETURN(const auto set, store_->set(kLeaseKey, lease_text(term, false), entry.revision));
    // Whoever has set it in between is seen at the next look.
    revision_ = set.value_or(entry.revision);
    return true;
  }
  const std::lock_guard lock(mutex_);
  leader_ = lease.name;
  lost_ = true;
  return false;
}

Result<bool> Leadership::step() {
  const std::lock_guard one(step_mutex_);
  if (lost()) return false;
  if (const uint64_t term = this->term(); term > 0) return renew(term);
  auto led = watch();
  // While the store is away nobody can renew. A lease counts as unchanged from when it is seen again.
  if (!led.ok()) seen_ns_ = 0;
  return led;
}

Result<bool> Leadership::watch() {
  const int64_t asked = steady_ns();
  HEDDLE_ASSIGN_OR_RETURN(const auto entry, store_->get(kLeaseKey));
  HEDDLE_ASSIGN_OR_RETURN(const auto lease, lease_from(entry));
  if (entry.revision != revision_ || seen_ns_ == 0) {
    revision_ = entry.revision;
    seen_ns_ = steady_ns();
  }
  // A store that has lost what it had does not say that nobody leads.
  seen_term_ = std::max(seen_term_, lease.term);
  {
    const std::lock_guard lock(mutex_);
    leader_ = lease.released ? "" : lease.name;
  }
  const bool free = seen_term_ == 0 || lease.released || asked - seen_ns_ >= lease_ns_;
  return free ? take(entry.revision) : Result<bool>(false);
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

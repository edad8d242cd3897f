#include "heddle/serve/bus.h"

#include <algorithm>

#include "heddle/base/spelling.h"
#include "heddle/serve/live_plane.h"
#include "lease_table.h"

namespace heddle {

Status check_bus_key(const std::string& key) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (key.empty() || key.size() > 64 || !std::all_of(key.begin(), key.end(), allowed))
    return invalid_input("the name " + quote_text(key) + ": expected 1 to 64 letters, digits, '_' or '-'");
  return {};
}

Status check_lease(double lease_s) {
  if (!(lease_s >= .1 && lease_s <= 3600))
    return invalid_input("a lease of " + std::to_string(lease_s) + " s: expected 0.1 to 3600");
  return {};
}

LeaseTable::LeaseTable(const BusOptions& options)
    : options_(options), lease_ns_(ns_from_us(options.lease_s * 1e6)), thread_([this] { run(); }) {}

LeaseTable::~LeaseTable() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status LeaseTable::announce(const std::string& key, const std::string& value) {
  HEDDLE_RETURN_IF_ERROR(check_bus_key(key));
  if (value.size() > options_.max_value_bytes)
    return invalid_input("the entry '" + key + "' has " + std::to_string(value.size()) +
                         " bytes, the bus takes " + std::to_string(options_.max_value_bytes));
  {
    const std::lock_guard lock(mutex_);
    if (!leases_.contains(key) && leases_.size() >= options_.max_entries)
      return infeasible("the bus is full: it has " + std::to_string(leases_.size()) + " entries");
    leases_[key] = {value, live_now() + lease_ns_};
    notify(key, value, false);
  }
  changed_.notify_all();
  return {};
}

Status LeaseTable::withdraw(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = leases_.find(key);
    if (it == leases_.end()) return {};
    notify(key, it->second.value, true);
    leases_.erase(it);
  }
  changed_.notify_all();
  return {};
}

void LeaseTable::notify(const std::string& key, const std::string& value, bool gone) {
  if (watcher_) events_.push_back({key, value, gone});
}

void LeaseTable::watch(Watcher watcher) {
  std::unique_lock lock(mutex_);
  watcher_ = nullptr;
  changed_.wait(lock, [this] { return !calling_; });
  events_.clear();
  watcher_ = std::move(watcher);
  for (const auto& [key, lease] : leases_) notify(key, lease.value, false);
  changed_.notify_all();
}

std::vector<BusEntry> LeaseTable::entries() const {
  std::vector<BusEntry> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, lease] : leases_) all.push_back({key, lease.value, false});
  return all;
}

void LeaseTable::run() {
  std::unique_lock lock(mutex_);
  while (!quit_) {
    const TimeNs now = live_now();
    TimeNs next = kNever;
    for (auto it = leases_.begin(); it != leases_.end();) {
      if (it->second.until > now) {
        next = std::min(next, it->second.until);
        ++it;
        continue;
      }
      notify(it->first, it->second.value, true);
      it = leases_.erase(it);
    }
    if (!events_.empty() && watcher_) {
      const BusEntry event = std::move(events_.front());
      events_.pop_front();
      const auto watcher = watcher_;
      calling_ = true;
      lock.unlock();
      watcher(event);
      lock.lock();
      calling_ = false;
      changed_.notify_all();
      continue;
    }
    if (next == kNever) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, next);
    }
  }
}

Result<std::unique_ptr<WorkerBus>> in_process_bus(const BusOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_lease(options.lease_s));
  return std::unique_ptr<WorkerBus>(std::make_unique<LeaseTable>(options));
}

}  // namespace heddle

// Entries with a lease, and one watcher that is told of them in order on the table's own thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "heddle/fleet/data_plane_time.h"
#include "heddle/serve/bus.h"

namespace heddle {

class LeaseTable {
 public:
  explicit LeaseTable(const BusOptions& options);
  ~LeaseTable();
  LeaseTable(const LeaseTable&) = delete;
  LeaseTable& operator=(const LeaseTable&) = delete;

  Status put(const std::string& key, const std::string& value);
  void remove(const std::string& key);
  void watch(WorkerBus::Watcher watcher);
  std::vector<BusEntry> entries() const;

 private:
  struct Lease {
    std::string value;
    TimeNs until = 0;
  };
  void run();
  void notify(const std::string& key, const std::string& value, bool gone);

  const BusOptions options_;
  const TimeNs lease_ns_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, Lease> leases_;
  std::deque<BusEntry> events_;
  WorkerBus::Watcher watcher_;
  bool calling_ = false, quit_ = false;
  std::thread thread_;
};

Status check_bus_options(const BusOptions& options);

}  // namespace heddle

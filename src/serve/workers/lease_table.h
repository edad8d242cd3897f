// The bus of one process: entries with a lease, and one watcher that gets their events in order on the table's own
// thread.
#pragma once

#include <deque>
#include <map>
#include <mutex>

#include "heddle/base/sync.h"
#include "heddle/fleet/data_plane_time.h"
#include "heddle/serve/bus.h"

namespace heddle {

class LeaseTable final : public WorkerBus {
 public:
  explicit LeaseTable(const BusOptions& options);
  ~LeaseTable() override;

  Status announce(const std::string& key, const std::string& value) override;
  Status withdraw(const std::string& key) override;
  double lease_s() const override { return options_.lease_s; }
  void watch(Watcher watcher) override;
  std::vector<BusEntry> entries() const override;

 private:
  struct Lease {
    std::string value;
    TimeNs until = 0;
  };
  void run();
  void notify(const std::string& key, const std::string& value, bool gone);

  const BusOptions options_;
  const TimeNs lease_ns_;
  mutable Mutex mutex_;  // guards what follows
  Condition changed_;
  std::map<std::string, Lease> leases_;
  std::deque<BusEntry> events_;
  Watcher watcher_;
  bool calling_ = false, quit_ = false;
  Thread thread_;
};

Status check_lease(double lease_s);

}  // namespace heddle

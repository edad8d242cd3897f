// Which of several servers leads. The leader renews a lease in a shared store; a standby that has seen the lease
// unchanged for a whole lease of its own clock takes over with the next term. So no two clocks are compared. Time in
// which the store does not answer a standby does not count, since the leader cannot renew the lease then either.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "heddle/base/cancel.h"
#include "heddle/base/sync.h"
#include "shared_store.h"

namespace heddle {

// Thread-safe.
class Leadership {
 public:
  // `name`: of this server, for people. `lease_s`: 0.1 to 3600. `clock`: ns since 1970; leases are
  // not measured by it.
  Leadership(std::shared_ptr<SharedStore> store, std::string name, double lease_s,
             int64_t (*clock)() = wall_ns);
  ~Leadership();  // gives the lease back, so that a standby need not wait for its end

  // One look at the lease: takes it, renews it, or watches it. True: this server leads. After lost() always false.
  // kIo: the store does not answer; whoever leads goes on, since workers obey the newest term alone.
  Result<bool> step();
  // Until this server leads, a step each quarter of a lease. `waits` is called when another server leads, once for
  // each. Errors of the store end it only in the first step. kCancelled.
  Status wait(const CancelToken& cancel, const std::function<void(const std::string& leader)>& waits);
  // Renews the lease from a thread of its own; `lost` is called once, from there, if another server has taken
  // over, and `away` when the store begins or ceases to answer ("").
  void keep(std::function<void(const std::string& leader)> lost,
            std::function<void(const std::string& error)> away);

  bool lost() const;
  // Of this server: one above the last; that of a store's first leader is the minutes since 1970. 0: it has never led.
  uint64_t term() const;
  std::string leader() const;  // as last seen; "": nobody

 private:
  // Of step().
  Result<bool> take(uint64_t revision);
  Result<bool> renew(uint64_t term);
  Result<bool> watch();
  void run();
  std::string lease_text(uint64_t term, bool released) const;

  const std::shared_ptr<SharedStore> store_;
  const std::string name_, incarnation_;
  const int64_t lease_ns_;
  int64_t (*const clock_)();
  Mutex step_mutex_;        // held in a step, which takes as long as the store; guards the next three
  uint64_t revision_ = 0;   // of the lease as last seen
  int64_t seen_ns_ = 0;     // since when it is unchanged; 0: the store has not answered since
  uint64_t seen_term_ = 0;  // the newest of all leases seen
  mutable Mutex mutex_;     // never held while the store is asked; guards what follows
  Condition changed_;
  uint64_t term_ = 0;  // that this server leads in; 0: none
  std::string leader_;
  bool lost_ = false, quit_ = false;
  std::function<void(const std::string&)> on_lost_, on_away_;
  Thread thread_;
};

}  // namespace heddle

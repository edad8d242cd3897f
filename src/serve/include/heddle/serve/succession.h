// Several servers of one fleet, of which one leads: the others wait, and one of them continues the leader's work.
//
//   HEDDLE_ASSIGN_OR_RETURN(auto succession, Succession::open({.where = "state", .name = "a"}));
//   HEDDLE_RETURN_IF_ERROR(succession->wait_to_lead(cancel, tell));   // at once if nobody leads
//   options.save = [&](const std::string& state) { return succession->save(hash, state); };
//
// A leader that ends, or that is silent for a lease, is replaced. One that was only stopped learns of its successor at
// its next renewal. Until then it cannot reach workers, since these refuse the sessions of an older term.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"

namespace heddle {

struct SuccessionOptions {
  std::string where, bucket = "heddle-state";  // open_shared_store()'s
  std::string name;                            // of this server, for people
  double lease_s = 1;                          // silence after which a leader is replaced; 0.1 to 3600
  CancelToken lost;                            // raised when another server has taken over
};

// Thread-safe.
class Succession {
 public:
  static Result<std::unique_ptr<Succession>> open(const SuccessionOptions& options);
  virtual ~Succession() = default;  // gives the lease back

  // Until this server leads; from then on the lease is renewed. `waits` gets the name of each other leader. kCancelled.
  virtual Status wait_to_lead(const CancelToken& cancel,
                              const std::function<void(const std::string&)>& waits) = 0;
  // Another server has taken over: this one must serve no more. It may stand by again in a new succession.
  virtual bool lost() const = 0;
  virtual std::string leader() const = 0;  // as last seen; "": nobody
  virtual uint64_t term() const = 0;       // for WorkerPoolOptions; 0 before this server leads

  // FleetControl's state, saved by a leader for a fleet file with this content; "" if there is none. A fleet file that
  // has changed since has precedence. Only while this server leads. kCancelled: another one has taken over.
  virtual Result<std::string> saved_state(uint64_t fleet_file_hash) = 0;
  virtual Status save(uint64_t fleet_file_hash, const std::string& state) = 0;
};

}  // namespace heddle

// The registry of a fleet's workers: keys with a lease. An entry is gone when it is withdrawn, or when its
// owner has not announced it again within the lease, be it dead, hung or cut off.
//
// In-process: the server holds the entries, and workers in other processes announce themselves to it by gRPC.
// NATS: a bucket of JetStream's key-value store holds them, so that several servers see the same workers, and
// a server that starts again finds them. What a worker computes does not depend on the bus: a session that
// works goes on when the bus is full or away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/serve/worker_security.h"

namespace heddle {

struct BusOptions {
  double lease_s = 1;                 // 0.1 to 3600
  size_t max_entries = 4096;          // one more is refused: kInfeasible
  size_t max_value_bytes = 64 << 10;  // longer is refused: kInvalidInput
  int64_t max_bytes = 16 << 20;       // NATS: of the whole bucket, where this makes it
};

struct BusEntry {
  std::string key, value;
  bool gone = false;  // of an event
};

// A key is 1 to 64 of A-Z a-z 0-9 _ -.
Status check_bus_key(const std::string& key);

// What an owner of entries needs.
class Announcer {
 public:
  virtual ~Announcer() = default;
  // Sets the entry or renews its lease. Takes at most about a lease. Errors: a malformed key, a full bus, a
  // bus that does not answer; then the entry stays until its lease ends, and trying again may succeed.
  virtual Status announce(const std::string& key, const std::string& value) = 0;
  virtual Status withdraw(const std::string& key) = 0;  // one that is not there: no error
  virtual double lease_s() const = 0;
};

class WorkerBus : public Announcer {
 public:
  // Called with every entry that is there, then with each change, in order, on a thread of the bus. A renewal
  // with the same value is an event, too. Null: after this returns, no watcher is called.
  using Watcher = std::function<void(const BusEntry&)>;
  virtual void watch(Watcher watcher) = 0;
  virtual std::vector<BusEntry> entries() const = 0;  // by key
};

Result<std::unique_ptr<WorkerBus>> in_process_bus(const BusOptions& options);

// Was this program built with NATS's client?
bool has_nats();
// `url` nats://HOST:PORT of a server with JetStream, `bucket` named as a key; it is made when it is not
// there. The entries' lease is this object's own, whatever other users of the bucket say. Errors: built
// without NATS, no server, a server without JetStream.
Result<std::unique_ptr<WorkerBus>> nats_bus(const std::string& url, const std::string& bucket,
                                            const BusOptions& options);

// Announces to a server's in-process bus at HOST:PORT (see WorkerRegistry). Errors: a malformed address; that
// nobody answers there is an error of announce().
Result<std::unique_ptr<Announcer>> registry_announcer(const std::string& address,
                                                      const WorkerSecurity& security = {});

// Announces in all of these places, such as a server and its standby. At least one.
std::unique_ptr<Announcer> several_announcers(std::vector<std::unique_ptr<Announcer>> announcers);

// The gRPC side of a bus, for workers that are given the server's address.
class WorkerRegistry {
 public:
  using Report = std::function<void(const std::string& line)>;  // on gRPC's threads
  // Listens from here on; the bus must outlive it. `port` 0: any free one. `report` gets a line for every worker
  // that is refused for want of the token, once by name and host. Errors: an address that is taken.
  static Result<std::unique_ptr<WorkerRegistry>> start(const std::string& host, int port, WorkerBus& bus,
                                                       const WorkerSecurity& security = {},
                                                       Report report = {});
  virtual ~WorkerRegistry() = default;
  virtual int port() const = 0;
};

}  // namespace heddle

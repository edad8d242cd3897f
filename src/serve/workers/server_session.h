// The server's end of a session with a worker: a stream with writes that do not block, watched for silence.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/base/sync.h"
#include "heddle/serve/remote_devices.h"
#include "heddle/serve/worker_security.h"
#include "worker_network.h"
#include "worker_proof.h"

namespace heddle {

class ServerSession final : public StreamListener, public std::enable_shared_from_this<ServerSession> {
 public:
  // Called on the stream's threads; must not block. `ended` is called exactly once, after the last `heard`. It must
  // hand the session to another thread for destruction: with the process's last channel gRPC ends its threads,
  // and a thread that ends itself would use freed memory.
  struct Events {
    std::function<void(ServerSession&, const worker::FromWorker&)> heard;
    std::function<void(std::shared_ptr<ServerSession>, const std::string& reason)> ended;
  };

  // `id` is the caller's, not 0.
  ServerSession(uint64_t id, const std::string& address, WorkerNetwork& network,
                const WorkerSecurity& security, size_t max_outbox_bytes, Events events);
  uint64_t id() const { return id_; }
  void begin(uint64_t epoch, double lease_s);
  // Messages to an ended session are dropped. The session ends when more than max_outbox_bytes wait. With a
  // token, messages wait until the worker has proven itself.
  void send(worker::ToWorker message);
  // Does nothing if the session has ended.
  void end(const std::string& reason);
  int64_t silent_ns() const;
  // True if server and worker have versions of the protocol that do not work together. Known when it has ended.
  bool versions_differ() const { return versions_differ_; }
  // What the worker has said of itself; 0 and "" before its first message.
  struct Peer {
    uint32_t protocol = 0;
    std::string program;
  };
  Peer peer() const;
  // Outputs of attempts, collected by row on the reading side. False: too many bytes, and the session ends.
  bool keep(const worker::Output& piece);
  std::vector<RemotePayload> take_outputs(uint64_t attempt);

  void read_done(bool ok) override;
  void write_done(bool ok) override;
  void stream_ended(const grpc::Status& status) override;

 private:
  void start_writing();  // with the lock
  // False ends the session.
  bool handshake(const worker::FromWorker& answer);
  bool check_version(const worker::FromWorker& first);

  const uint64_t id_;
  const size_t max_outbox_bytes_;
  const Events events_;
  const std::unique_ptr<SessionCall> stream_;
  worker::FromWorker incoming_;
  // Of the reading side.
  CallerProof proof_;
  worker::ToWorker open_;
  bool answered_ = false;
  bool proven_;  // the worker has proven itself, or there is no token
  std::atomic<int64_t> heard_ns_{0};
  std::atomic<bool> versions_differ_{false};
  std::map<uint64_t, std::vector<std::shared_ptr<std::string>>> outputs_;  // [attempt][row]
  size_t output_bytes_ = 0;

  mutable Mutex mutex_;  // guards what follows
  Peer peer_;
  std::deque<worker::ToWorker> outbox_;
  std::deque<worker::ToWorker> held_;  // messages that wait for the worker's proof
  size_t outbox_bytes_ = 0;            // of both
  bool writing_ = false, ended_ = false;
  bool trusted_;  // proven_, for other threads
  std::string reason_;
  std::shared_ptr<ServerSession> self_;  // until stream_ended()
};

}  // namespace heddle

// The server's end of a session with a worker: a stream that is opened, written to without blocking and
// watched for silence.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/serve/remote_devices.h"
#include "heddle/serve/worker_security.h"
#include "worker.grpc.pb.h"

namespace heddle {

class ServerSession final : public grpc::ClientBidiReactor<worker::ToWorker, worker::FromWorker>,
                            public std::enable_shared_from_this<ServerSession> {
 public:
  // Called on gRPC's threads; must not block. `ended` is called exactly once, after the last `heard`.
  struct Events {
    std::function<void(ServerSession&, const worker::FromWorker&)> heard;
    std::function<void(ServerSession&, const std::string& reason)> ended;
  };

  // `id` is the caller's, not 0.
  ServerSession(uint64_t id, const std::string& address, const WorkerSecurity& security,
                size_t max_outbox_bytes, Events events);
  uint64_t id() const { return id_; }
  void begin(uint64_t epoch, double lease_s);
  // Dropped when the session has ended. More bytes than may wait end it.
  void send(worker::ToWorker message);
  // Ends it for this reason, unless it has ended.
  void end(const std::string& reason);
  int64_t silent_ns() const;
  // The outputs that have come for an attempt, by row; of the reading side. False: more than may wait.
  bool keep(const worker::Output& piece);
  std::vector<RemotePayload> take_outputs(uint64_t attempt);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  const uint64_t id_;
  const size_t max_outbox_bytes_;
  const Events events_;
  const std::unique_ptr<worker::Worker::Stub> stub_;
  grpc::ClientContext context_;
  worker::FromWorker incoming_;
  std::atomic<int64_t> heard_ns_{0};
  std::map<uint64_t, std::vector<std::shared_ptr<std::string>>> outputs_;  // [attempt][row]
  size_t output_bytes_ = 0;

  std::mutex mutex_;  // guards what follows
  std::deque<worker::ToWorker> outbox_;
  size_t outbox_bytes_ = 0;
  bool writing_ = false, ended_ = false;
  std::string reason_;
  std::shared_ptr<ServerSession> self_;  // until OnDone()
};

}  // namespace heddle

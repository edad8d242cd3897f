// How a server reaches its workers, and workers each other: streams of messages. The one of real fleets is gRPC's;
// a simulation has its own.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "heddle/fleet/data_plane_time.h"
#include "heddle/serve/worker_security.h"
#include "worker.pb.h"

namespace heddle {

// What a stream reports to its end, on any thread. A read and a write may be reported at the same time.
class StreamListener {
 public:
  virtual ~StreamListener() = default;
  virtual void read_done(bool ok) = 0;  // false: no message comes any more
  virtual void write_done(bool ok) = 0;
  // The last report; the listener may destroy the stream within it. `status`: the called end's, or why the stream
  // broke.
  virtual void stream_ended(const grpc::Status& status) = 0;
};

// An end of a stream. It has at most one read and one write under way; what they refer to lives until they are
// reported.
template <class Sent, class Received>
class MessageStream {
 public:
  virtual ~MessageStream() = default;
  virtual void read(Received* into) = 0;
  virtual void write(const Sent* message) = 0;
};

template <class Sent, class Received>
class CallingStream : public MessageStream<Sent, Received> {
 public:
  virtual void start(StreamListener& listener) = 0;
  virtual void
  cancel() = 0;  // to be called once after start(), from any thread; the end is reported after it
};

template <class Sent, class Received>
class CalledStream : public MessageStream<Sent, Received> {
 public:
  virtual void start(StreamListener& listener) = 0;
  // Once. `last`: a message to send before, or null.
  virtual void finish(const grpc::Status& status, const Sent* last = nullptr) = 0;
};

using SessionCall = CallingStream<worker::ToWorker, worker::FromWorker>;
using CalledSession = CalledStream<worker::FromWorker, worker::ToWorker>;
using CalledFeature = CalledStream<worker::FeatureReply, worker::FeatureChunk>;

// Sends one feature map; its calls wait.
class FeatureCall {
 public:
  virtual ~FeatureCall() = default;
  virtual void start(TimeNs patience) = 0;  // the call ends by then
  virtual bool write(const worker::FeatureChunk& chunk) = 0;
  virtual bool read(worker::FeatureReply& into) = 0;
  virtual grpc::Status finish() = 0;  // nothing more is written
  virtual void cancel() = 0;          // from any thread, after the construction
};

// A way to one other worker.
class FeatureLink {
 public:
  virtual ~FeatureLink() = default;
  virtual std::unique_ptr<FeatureCall> call() = 0;
  virtual void reconnect() = 0;  // after a call whose connection may be cut
};

// What a worker does with those who call it.
class WorkerCalled {
 public:
  virtual ~WorkerCalled() = default;
  virtual void session(std::unique_ptr<CalledSession> stream) = 0;
  virtual void feature(std::unique_ptr<CalledFeature> stream) = 0;
};

class WorkerListener {
 public:
  virtual ~WorkerListener() = default;
  virtual int port() const = 0;
  virtual void stop() = 0;  // ends all calls; returns when each has ended
};

class WorkerNetwork {
 public:
  virtual ~WorkerNetwork() = default;
  virtual std::unique_ptr<SessionCall> session(const std::string& address,
                                               const WorkerSecurity& security) = 0;
  virtual std::unique_ptr<FeatureLink> feature_link(const std::string& address,
                                                    const WorkerSecurity& security) = 0;
  // `port` 0: any free one. Errors: an address that is malformed or taken.
  virtual Result<std::unique_ptr<WorkerListener>> listen(const std::string& host, int port,
                                                         const WorkerSecurity& security,
                                                         WorkerCalled& called) = 0;
};

std::shared_ptr<WorkerNetwork> grpc_worker_network();

}  // namespace heddle

#include "server_session.h"

#include "heddle/fleet/fleet.h"
#include "heddle/serve/live_plane.h"
#include "protocol_version.h"

namespace heddle {
namespace {

constexpr size_t kMostProgramBytes = 64;
constexpr size_t kOutputRowBytes = 128;  // that a row takes beside its data, about

}  // namespace

ServerSession::ServerSession(uint64_t id, const std::string& address, WorkerNetwork& network,
                             const WorkerSecurity& security, size_t max_outbox_bytes, Events events)
    : id_(id),
      max_outbox_bytes_(max_outbox_bytes),
      events_(std::move(events)),
      stream_(network.session(address, security)),
      proof_({security.token, kSessionCall, address}),
      proven_(!proof_.needed()),
      trusted_(proven_) {}

void ServerSession::begin(uint64_t epoch, double lease_s) {
  worker::ToWorker first;
  first.mutable_open()->set_epoch(epoch);
  first.mutable_open()->set_lease_s(lease_s);
  if (!proven_) {
    open_ = std::move(first);
    first = {};
    *first.mutable_hello() = proof_.hello();
  }
  first.set_version(kWorkerProtocol);
  heard_ns_ = live_now();
  {
    const std::lock_guard lock(mutex_);
    self_ = shared_from_this();
  }
  stream_->start(*this);
  stream_->read(&incoming_);
  const std::lock_guard lock(mutex_);
  outbox_bytes_ += first.ByteSizeLong();
  outbox_.push_back(std::move(first));
  if (!writing_) start_writing();
}

void ServerSession::start_writing() {
  writing_ = !outbox_.empty() && !ended_;
  if (writing_) stream_->write(&outbox_.front());
}

// Checks the answer to the hello. Everything else is sent after it.
bool ServerSession::handshake(const worker::FromWorker& answer) {
  if (!answer.has_challenge() || !proof_.accepts(answer.challenge())) {
    end("it does not prove that it knows the fleet's token, at the address that it was announced with");
    return false;
  }
  if (!check_version(answer)) return false;
  proven_ = true;
  open_.mutable_open()->set_proof(proof_.proof());
  const std::lock_guard lock(mutex_);
  trusted_ = true;
  outbox_bytes_ += open_.ByteSizeLong();
  outbox_.push_back(std::move(open_));
  for (auto& message : held_) outbox_.push_back(std::move(message));
  held_.clear();
  if (!writing_) start_writing();
  return true;
}

bool ServerSession::check_version(const worker::FromWorker& first) {
  answered_ = true;
  {
    const std::lock_guard lock(mutex_);
    // A stranger may send any text.
    peer_ = {first.version(), first.program().substr(0, kMostProgramBytes)};
  }
  if (works_with(first.version())) return true;
  versions_differ_ = true;
  end(version_refusal("the worker", first.version(), "the server"));
  return false;
}

ServerSession::Peer ServerSession::peer() const {
  const std::lock_guard lock(mutex_);
  return peer_;
}

void ServerSession::send(worker::ToWorker message) {
  const size_t bytes = message.ByteSizeLong();
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (outbox_bytes_ + bytes <= max_outbox_bytes_) {
      outbox_bytes_ += bytes;
      (trusted_ ? outbox_ : held_).push_back(std::move(message));
      if (!writing_) start_writing();
      return;
    }
  }
  end("it rejects what it is sent: " + std::to_string(max_outbox_bytes_ >> 20) + " MiB wait");
}

void ServerSession::end(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    reason_ = reason;
  }
  stream_->cancel();
}

int64_t ServerSession::silent_ns() const { return live_now() - heard_ns_; }

bool ServerSession::keep(const worker::Output& piece) {
  const auto refuse = [this] {
    end("it sends more outputs than it was asked for");
    return false;
  };
  if (piece.row() >= static_cast<uint32_t>(kMaxFleetBatch)) return refuse();
  auto& rows = outputs_[piece.attempt()];
  if (rows.size() <= piece.row()) {
    output_bytes_ += (piece.row() + 1 - rows.size()) * kOutputRowBytes;
    rows.resize(piece.row() + 1);
  }
  output_bytes_ += piece.data().size();
  if (output_bytes_ > max_outbox_bytes_) return refuse();
  auto& row = rows[piece.row()];
  if (!row) row = std::make_shared<std::string>();
  *row += piece.data();
  return true;
}

std::vector<RemotePayload> ServerSession::take_outputs(uint64_t attempt) {
  std::vector<RemotePayload> out;
  const auto it = outputs_.find(attempt);
  if (it == outputs_.end()) return out;
  for (const auto& row : it->second) {
    output_bytes_ -= kOutputRowBytes + (row ? row->size() : 0);
    out.push_back(row ? RemotePayload{row, reinterpret_cast<const std::byte*>(row->data()), row->size()}
                      : RemotePayload{});
  }
  outputs_.erase(it);
  return out;
}

void ServerSession::read_done(bool ok) {
  if (!ok) return end("");
  heard_ns_ = live_now();
  if (!proven_) {
    if (!handshake(incoming_)) return;
  } else {
    if (!answered_ && !check_version(incoming_)) return;
    events_.heard(*this, incoming_);
  }
  stream_->read(&incoming_);
}

void ServerSession::write_done(bool ok) {
  if (!ok) return end("");
  const std::lock_guard lock(mutex_);
  outbox_bytes_ -= outbox_.front().ByteSizeLong();
  outbox_.pop_front();
  start_writing();
}

void ServerSession::stream_ended(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) versions_differ_ = true;
  end("");
  std::shared_ptr<ServerSession> self;
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    self.swap(self_);
    reason = reason_;
  }
  if (reason.empty())
    reason = status.ok() ? "it has closed its session" : "its connection ended: " + status.error_message();
  const auto ended = events_.ended;  // the session may be gone before it returns
  ended(std::move(self), reason);
}

}  // namespace heddle

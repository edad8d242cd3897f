#include "worker_session.h"

#include "heddle/fleet/fleet.h"
#include "heddle/serve/live_plane.h"

namespace heddle {
namespace {

constexpr uint64_t kDigestOfNothing = 0xcbf29ce484222325;
constexpr size_t kMostOpenInputs = 4096;
constexpr size_t kKeptGenerations = 2;
constexpr TimeNs kLongestRun = 36000 * kNsPerSecond;

// payload_digest() of one piece after another.
uint64_t digest_more(uint64_t hash, const std::string& piece) {
  for (const char c : piece) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

void WorkerSession::begin() {
  heard_ns_ = live_now();
  patience_ns_ = 10 * kNsPerSecond;
  {
    const std::lock_guard lock(mutex_);
    self_ = shared_from_this();
  }
  StartRead(&incoming_);
}

void WorkerSession::end(const grpc::Status& status) {
  open_ = false;
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = true;
  Finish(status);
}

bool WorkerSession::is_silent() const { return live_now() - heard_ns_ > patience_ns_; }

void WorkerSession::OnReadDone(bool ok) {
  if (!ok) return end(grpc::Status::OK);  // the server has closed it, or is gone
  heard_ns_ = live_now();
  std::string refusal;
  if (!take(incoming_, refusal)) return end({grpc::StatusCode::FAILED_PRECONDITION, refusal});
  const std::lock_guard lock(mutex_);
  if (!ended_) StartRead(&incoming_);
}

void WorkerSession::OnWriteDone(bool ok) {
  if (!ok) return end(grpc::Status::OK);
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  outbox_.pop_front();
  writing_ = !outbox_.empty();
  if (writing_) StartWrite(&outbox_.front());
}

void WorkerSession::OnDone() {
  open_ = false;
  std::shared_ptr<WorkerSession> self;
  const std::lock_guard lock(mutex_);
  self.swap(self_);
}

void WorkerSession::send(worker::FromWorker message) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  outbox_.push_back(std::move(message));
  if (writing_) return;
  writing_ = true;
  StartWrite(&outbox_.front());
}

void WorkerSession::done(uint64_t attempt, uint64_t generation, TimeNs measured, const std::string& error,
                         const std::vector<uint64_t>& digests) {
  worker::FromWorker message;
  auto& d = *message.mutable_done();
  d.set_attempt(attempt);
  d.set_generation(generation);
  d.set_measured_ns(measured);
  d.set_error(error);
  for (const uint64_t digest : digests) d.add_digests(digest);
  send(std::move(message));
}

bool WorkerSession::take(const worker::ToWorker& message, std::string& refusal) {
  if (!open_) {
    if (!message.has_open()) {
      refusal = "a session begins with Open";
      return false;
    }
    const auto& o = message.open();
    if (!(o.lease_s() >= .1 && o.lease_s() <= 3600)) {
      refusal = "a lease of 0.1 to 3600 s is expected";
      return false;
    }
    epoch_ = o.epoch();
    patience_ns_ = ns_from_us(2e6 * o.lease_s());
    if (!admit(*this)) {
      refusal = "another server uses this worker";
      return false;
    }
    open_ = true;
    return true;
  }
  if (message.has_load()) {
    load(message.load());
  } else if (message.has_input()) {
    const auto& in = message.input();
    if (in.row() >= static_cast<uint32_t>(kMaxFleetBatch)) {
      refusal = "a row of " + std::to_string(in.row());
      return false;
    }
    auto& rows = inputs_[in.attempt()];
    if (rows.size() <= in.row()) rows.resize(in.row() + 1, kDigestOfNothing);
    rows[in.row()] = digest_more(rows[in.row()], in.data());
    while (inputs_.size() > kMostOpenInputs) inputs_.erase(inputs_.begin());
  } else if (message.has_run()) {
    run(message.run());
  } else if (message.has_transfer()) {
    transfer(message.transfer());
  } else if (message.has_ping()) {
    worker::FromWorker pong;
    pong.mutable_pong()->set_number(message.ping().number());
    send(std::move(pong));
  }
  return true;
}

void WorkerSession::load(const worker::Load& load) {
  auto& roles = roles_[load.generation()];
  for (const auto& r : load.roles()) roles[r.device()] = r;
  while (roles_.size() > kKeptGenerations) roles_.erase(roles_.begin());
  worker::FromWorker message;
  message.mutable_loaded()->set_generation(load.generation());
  send(std::move(message));
}

const worker::Role* WorkerSession::role(uint64_t generation, uint32_t device) const {
  const auto g = roles_.find(generation);
  if (g == roles_.end()) return nullptr;
  const auto r = g->second.find(device);
  return r == g->second.end() ? nullptr : &r->second;
}

void WorkerSession::run(const worker::Run& run) {
  const auto* found = role(run.generation(), run.device());
  const uint64_t attempt = run.attempt(), generation = run.generation(), batch = run.batch();
  const uint32_t device = run.device(), rows = run.rows();
  FeatureMap map;
  if (found == nullptr || rows == 0 || rows > static_cast<uint32_t>(kMaxFleetBatch) ||
      run.expected_ns() <= 0 || run.expected_ns() > kLongestRun) {
    inputs_.erase(attempt);
    return done(attempt, generation, 0,
                "device " + std::to_string(device) + " has not loaded what it is to run");
  }
  if (found->first()) {
    const auto in = inputs_.find(attempt);
    if (in != inputs_.end()) {
      map.digests = std::move(in->second);
      inputs_.erase(in);
    }
    map.digests.resize(rows, kDigestOfNothing);
  } else {
    auto came = parts_.maps.take(batch, device);
    if (!came || came->digests.size() != rows)
      return done(attempt, generation, 0,
                  "the batch's feature map has not come to device " + std::to_string(device));
    map = std::move(*came);
  }
  map.bytes =
      std::min(kMostFeatureBytes,
               found->output_bytes() > kMostFeatureBytes ? kMostFeatureBytes : found->output_bytes() * rows);
  ++parts_.runs;
  parts_.rows += rows;
  const bool last = found->last();
  // The generation keeps batches of different plans apart where devices have the same numbers.
  parts_.devices.run(device, run.expected_ns(),
                     [self = weak_from_this(), map = std::move(map), attempt, generation, batch, device,
                      last](TimeNs measured) {
                       const auto session = self.lock();
                       if (!session || !session->open()) return;
                       if (!last) session->parts_.maps.put(batch, device, map);
                       session->done(attempt, generation, measured, "",
                                     last ? map.digests : std::vector<uint64_t>());
                     });
}

void WorkerSession::transfer(const worker::Transfer& transfer) {
  const uint64_t attempt = transfer.attempt(), generation = transfer.generation();
  const auto map = parts_.maps.get(transfer.batch(), transfer.source());
  if (!map) return done(attempt, generation, 0, "the batch's feature map is not here");
  if (transfer.address() == parts_.address) {
    parts_.maps.put(transfer.batch(), transfer.device(), *map);
    return done(attempt, generation, 0, "");
  }
  FeatureSender::Parcel parcel;
  parcel.batch = transfer.batch();
  parcel.generation = generation;
  parcel.device = transfer.device();
  parcel.map = *map;
  parcel.patience_s = transfer.patience_s();
  parcel.told = [self = weak_from_this(), attempt, generation](const Status& status) {
    const auto session = self.lock();
    if (!session || !session->open()) return;
    if (status.ok()) ++session->parts_.maps_sent;
    session->done(attempt, generation, 0, status.ok() ? "" : status.error().to_string());
  };
  parts_.sender.send(transfer.address(), std::move(parcel));
}

}  // namespace heddle

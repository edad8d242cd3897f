#include "worker_session.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "heddle/fleet/fleet.h"
#include "heddle/serve/live_plane.h"
#include "protocol/grpc_ends.h"

namespace heddle {
namespace {

constexpr size_t kOutputPieceBytes = size_t{1} << 20;
constexpr TimeNs kLongestRun = 36000 * kNsPerSecond;

// Differs from host to host, and from start to start of one; empty where it cannot be read.
const std::string& running_kernel() {
  static const std::string kName = [] {
    std::string name;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> name;
    return name;
  }();
  return kName;
}

uint64_t held_bytes(const worker::FromWorker& message) { return sizeof(message) + message.ByteSizeLong(); }

}  // namespace

void WorkerSession::begin() {
  heard_ns_ = live_now();
  patience_ns_ = 10 * kNsPerSecond;
  {
    const std::lock_guard lock(mutex_);
    self_ = shared_from_this();
  }
  stream_->start(*this);
  stream_->read(&incoming_);
}

void WorkerSession::end(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  end_locked(status);
}

void WorkerSession::end_locked(const grpc::Status& status) {
  open_ = false;
  if (ended_) return;
  ended_ = true;
  // The first message may be on its way.
  if (!outbox_.empty()) outbox_.erase(outbox_.begin() + 1, outbox_.end());
  stream_->finish(status);
}

void WorkerSession::opened() {
  const std::lock_guard lock(mutex_);
  open_ = !ended_;
}

void WorkerSession::leave() {
  constexpr uint32_t kAnswersLeaving = 4;
  if (!open_ || server_version_ < kAnswersLeaving) {
    resources_.leaving = true;
    return;
  }
  leaves_ = true;
  worker::FromWorker message;
  message.mutable_leaving();
  send(std::move(message));
}

bool WorkerSession::idle() const {
  const std::lock_guard lock(mutex_);
  return under_way_.empty() && outbox_.empty();
}

void WorkerSession::add_counts(WorkerCounters& to) const {
  to.open_inputs = open_inputs_;
  const std::lock_guard lock(mutex_);
  to.plans = roles_.size();
  to.steps = under_way_.size();
  to.unsent = outbox_.size();
}

bool WorkerSession::is_silent() const { return live_now() - heard_ns_ > patience_ns_; }

void WorkerSession::read_done(bool ok) {
  if (!ok) return end(grpc::Status::OK);  // the server has closed it, or is gone
  heard_ns_ = live_now();
  grpc::Status refusal;
  if (!take(incoming_, refusal)) return end(refusal);
  const std::lock_guard lock(mutex_);
  if (!ended_) stream_->read(&incoming_);
}

void WorkerSession::write_done(bool ok) {
  if (!ok) return end(grpc::Status::OK);
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  unsent_bytes_ -= held_bytes(outbox_.front());
  outbox_.pop_front();
  writing_ = !outbox_.empty();
  if (writing_) stream_->write(&outbox_.front());
}

void WorkerSession::stream_ended(const grpc::Status&) {
  std::shared_ptr<WorkerSession> self;
  const std::lock_guard lock(mutex_);
  open_ = false;
  roles_.clear();  // a run's end may keep the session longer than its worker
  self.swap(self_);
}

void WorkerSession::send(worker::FromWorker message) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  if (!std::exchange(answered_, true)) {
    message.set_version(kWorkerProtocol);
    message.set_program(resources_.program);
  }
  unsent_bytes_ += held_bytes(message);
  outbox_.push_back(std::move(message));
  if (writing_) {
    if (unsent_bytes_ > resources_.limits.unsent_bytes)
      end_locked({grpc::StatusCode::RESOURCE_EXHAUSTED, "the server does not read what the worker sends"});
    return;
  }
  writing_ = true;
  stream_->write(&outbox_.front());
}

void WorkerSession::done(uint64_t attempt, uint64_t generation, TimeNs measured, const std::string& error,
                         const std::vector<uint64_t>& digests, bool no_map) {
  worker::FromWorker message;
  auto& d = *message.mutable_done();
  d.set_attempt(attempt);
  d.set_generation(generation);
  d.set_measured_ns(measured);
  d.set_error(error);
  for (const uint64_t digest : digests) d.add_digests(digest);
  d.set_no_map(no_map);
  send(std::move(message));
  const std::lock_guard lock(mutex_);
  under_way_.erase(attempt);
}

// Handles the messages before the session is open.
bool WorkerSession::handshake(const worker::ToWorker& message, grpc::Status& refusal) {
  const auto refuse = [&refusal](const std::string& why) {
    refusal = {grpc::StatusCode::FAILED_PRECONDITION, why};
    return false;
  };
  if (!std::exchange(begun_, true) && !works_with(message.version())) {
    const auto why = version_refusal("the server", message.version(), "the worker");
    resources_.errors.log("worker " + resources_.name + ": refuses a server: " + why);
    refusal = {grpc::StatusCode::UNIMPLEMENTED, why};
    return false;
  }
  if (server_version_ == 0) server_version_ = message.version();
  if (message.has_hello() && !challenged_) {
    challenged_ = true;
    worker::FromWorker answer;
    *answer.mutable_challenge() = proof_.answer(message.hello());
    send(std::move(answer));
    return true;
  }
  if (!message.has_open()) return refuse("a session begins with Open");
  const auto& o = message.open();
  if (!proof_.accepts(o.proof())) {
    refusal = no_token();
    return false;
  }
  if (!(o.lease_s() >= .1 && o.lease_s() <= 3600)) return refuse("a lease of 0.1 to 3600 s is expected");
  epoch_ = o.epoch();
  patience_ns_ = ns_from_us(2e6 * o.lease_s());
  if (const auto why = admit(*this); !why.empty()) return refuse(why);
  return true;
}

bool WorkerSession::take(const worker::ToWorker& message, grpc::Status& refusal) {
  if (!open_) return handshake(message, refusal);
  if (message.has_load()) {
    load(message.load());
  } else if (message.has_input()) {
    return take(message.input(), refusal);
  } else if (message.has_left()) {
    if (leaves_) resources_.leaving = true;
  } else if (message.has_run()) {
    run(message.run());
  } else if (message.has_transfer()) {
    transfer(message.transfer());
  } else if (message.has_ping()) {
    worker::FromWorker answer;
    auto& pong = *answer.mutable_pong();
    pong.set_number(message.ping().number());
    add_devices(pong);
    for (auto& link : resources_.sender.links()) *pong.add_links() = std::move(link);
    pong.set_wall_ns(resources_.clock());
    send(std::move(answer));
  } else if (message.has_release()) {
    resources_.maps.release(message.release().batch(), message.release().device());
  }
  return true;
}

bool WorkerSession::take(const worker::Input& input, grpc::Status& refusal) {
  const uint32_t row = input.row();
  if (row >= static_cast<uint32_t>(kMaxFleetBatch)) {
    refusal = {grpc::StatusCode::FAILED_PRECONDITION, "a row of " + std::to_string(row)};
    return false;
  }
  const auto& limits = resources_.limits;
  auto& in = inputs_[input.attempt()];
  if (input.computed()) {
    const size_t bytes = input.data().size();
    if (in.too_large || bytes > limits.input_bytes - in.bytes) {
      input_bytes_ -= in.bytes;
      in = {.too_large = true};
      return true;
    }
    if (in.payloads.size() <= row) in.payloads.resize(row + 1);
    in.payloads[row] += input.data();
    in.bytes += bytes;
    input_bytes_ += bytes;
  } else {
    if (in.digests.size() <= row) in.digests.resize(row + 1, kDigestOfNothing);
    const auto* piece = reinterpret_cast<const std::byte*>(input.data().data());
    in.digests[row] = payload_digest(piece, input.data().size(), in.digests[row]);
  }
  // Drops the inputs of batches whose run was never requested.
  while (inputs_.size() > limits.open_inputs || input_bytes_ > limits.input_bytes)
    take_inputs(inputs_.begin()->first);
  open_inputs_ = inputs_.size();
  return true;
}

WorkerSession::Inputs WorkerSession::take_inputs(uint64_t attempt) {
  const auto it = inputs_.find(attempt);
  if (it == inputs_.end()) return {};
  auto in = std::move(it->second);
  input_bytes_ -= in.bytes;
  inputs_.erase(it);
  open_inputs_ = inputs_.size();
  return in;
}

void WorkerSession::load(const worker::Load& load) {
  const bool computes = std::any_of(load.roles().begin(), load.roles().end(),
                                    [](const worker::Role& r) { return r.computes(); });
  if (!computes) return loaded(load, {});
  resources_.computing.load(epoch_, load,
                            [self = weak_from_this(), load](const std::vector<LoadedRole>& computing) {
                              if (const auto session = self.lock()) session->loaded(load, computing);
                            });
}

void WorkerSession::forget_closed(const worker::Load& load) {
  std::erase_if(roles_, [&load](const auto& plan) { return is_closed(plan.first, load); });
  while (roles_.size() > resources_.limits.open_plans) roles_.erase(roles_.begin());
}

void WorkerSession::loaded(const worker::Load& load, const std::vector<LoadedRole>& computing) {
  worker::FromWorker message;
  auto& answer = *message.mutable_loaded();
  answer.set_generation(load.generation());
  {
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    auto& here = roles_[load.generation()];
    for (const auto& r : load.roles()) {
      const auto part = std::find_if(computing.begin(), computing.end(),
                                     [&r](const LoadedRole& l) { return l.device == r.device(); });
      if (part != computing.end() && !part->refusal.empty()) {
        auto& refused = *answer.add_refused();
        refused.set_device(r.device());
        refused.set_reason(part->refusal);
        continue;
      }
      here[r.device()] = {r, part == computing.end() ? PartRole{} : part->part};
      answer.add_devices(r.device());
      if (part == computing.end()) continue;
      auto& place = *answer.add_places();
      place.set_device(r.device());
      place.set_host(running_kernel());
      for (const int core : part->part.device->runner().cores()) place.add_cores(static_cast<uint32_t>(core));
      place.set_shared(resources_.share_cores);
    }
    forget_closed(load);
  }
  send(std::move(message));
}

// Adds how the devices that compute fare.
void WorkerSession::add_devices(worker::Pong& pong) {
  std::set<const PartDevice*> seen;  // the same device may have a role in two plans
  const std::lock_guard lock(mutex_);
  // The newest plan first, whose numbers the server knows the devices by.
  for (auto of_plan = roles_.rbegin(); of_plan != roles_.rend(); ++of_plan)
    for (const auto& [device, role] : of_plan->second) {
      const auto* part = role.part.device.get();
      if (part == nullptr || !seen.insert(part).second) continue;
      const auto all = part->watched().all();
      pong.set_run_ns(pong.run_ns() + all.elapsed);
      pong.set_waited_ns(pong.waited_ns() + all.waited);
      auto own = part->watched().cores();
      std::sort(own.begin(), own.end());
      const auto bound = part->watched().bound();
      if (!own.empty() && !bound.empty() && own != bound) {
        auto& wrong = *pong.add_bound();
        wrong.set_device(device);
        for (const int core : bound) wrong.add_cores(static_cast<uint32_t>(core));
      }
      const auto now = part->running();
      if (!now) continue;
      auto& under_way = *pong.add_running();
      under_way.set_attempt(now->attempt);
      under_way.set_elapsed_ns(now->elapsed);
      under_way.set_waited_ns(now->waited);
    }
}

std::optional<WorkerSession::DeviceRole> WorkerSession::role(uint64_t generation, uint32_t device) {
  const std::lock_guard lock(mutex_);
  const auto g = roles_.find(generation);
  if (g == roles_.end()) return std::nullopt;
  const auto r = g->second.find(device);
  return r == g->second.end() ? std::nullopt : std::optional(r->second);
}

void WorkerSession::run(const worker::Run& run) {
  auto in = take_inputs(run.attempt());
  if (resources_.leaving) {
    resources_.maps.take(run.batch(), run.device());
    return done(run.attempt(), run.generation(), 0, "the worker is stopping");
  }
  begin_step(run.attempt());
  const auto found = role(run.generation(), run.device());
  if (!found || run.rows() == 0 || run.rows() > static_cast<uint32_t>(kMaxFleetBatch) ||
      run.expected_ns() <= 0 || run.expected_ns() > kLongestRun)
    return done(run.attempt(), run.generation(), 0,
                "device " + std::to_string(run.device()) + " has not loaded what it is to run");
  if (in.too_large)
    return done(run.attempt(), run.generation(), 0,
                "the batch's inputs exceed " + std::to_string(resources_.limits.input_bytes) + " bytes");
  if (found->part.device) return compute(run, found->role, found->part, std::move(in));
  run_timed(run, found->role, std::move(in));
}

void WorkerSession::begin_step(uint64_t attempt) {
  const std::lock_guard lock(mutex_);
  under_way_.insert(attempt);
}

void WorkerSession::run_timed(const worker::Run& run, const worker::Role& role, Inputs in) {
  const uint64_t attempt = run.attempt(), generation = run.generation(), batch = run.batch();
  const uint32_t device = run.device(), rows = run.rows();
  FeatureMap map;
  if (role.first()) {
    map.digests = std::move(in.digests);
    map.digests.resize(rows, kDigestOfNothing);
  } else {
    auto came = resources_.maps.take(batch, device);
    if (!came || came->digests.size() != rows)
      return done(attempt, generation, 0,
                  "the batch's feature map has not come to device " + std::to_string(device));
    map = std::move(*came);
  }
  map.bytes =
      std::min(kMostFeatureBytes,
               role.output_bytes() > kMostFeatureBytes ? kMostFeatureBytes : role.output_bytes() * rows);
  ++resources_.runs;
  resources_.rows += rows;
  const bool last = role.last();
  // The generation keeps batches of different plans apart where devices have the same numbers.
  resources_.devices.run(number, device, run.expected_ns(),
                         [self = weak_from_this(), map = std::move(map), attempt, generation, batch, device,
                          last](TimeNs measured, const std::string& error) {
                           const auto session = self.lock();
                           if (!session || !session->open()) return;
                           if (!error.empty()) return session->done(attempt, generation, 0, error);
                           if (!last) session->resources_.maps.put(batch, device, map, true);
                           session->done(attempt, generation, measured, "",
                                         last ? map.digests : std::vector<uint64_t>());
                         });
}

void WorkerSession::compute(const worker::Run& run, const worker::Role& role, const PartRole& part,
                            Inputs in) {
  const uint64_t attempt = run.attempt(), generation = run.generation(), batch = run.batch();
  const uint32_t device = run.device();
  const auto content = part.content;
  Result<std::vector<PartRow>> rows = std::vector<PartRow>();
  if (role.first()) {
    in.payloads.resize(run.rows());
    rows = rows_from_inputs(*content->model, in.payloads);
    in.payloads.clear();
  } else if (const auto came = resources_.maps.take(batch, device); came && came->sections) {
    rows = rows_from_sections(*content->model, came->rows, *came->sections);
  }
  const auto refuse = [&](const std::string& why) { done(attempt, generation, 0, why); };
  if (!rows.ok()) return refuse(rows.error().to_string());
  if (rows->size() != run.rows())
    return refuse("of " + std::to_string(run.rows()) + " rows " + std::to_string(rows->size()) +
                  " have come to device " + std::to_string(device));
  for (const auto& row : *rows)
    if (const auto status = part.device->runner().check_row(row); !status.ok())
      return refuse(status.error().to_string());
  prepare_outputs(*content->model, *rows);
  ++resources_.runs;
  resources_.rows += run.rows();
  part.device->run(
      attempt, std::move(*rows),
      [self = weak_from_this(), content, attempt, generation, batch, device, last = role.last()](
          std::vector<PartRow>& ran, const Status& status, TimeNs measured) {
        const auto session = self.lock();
        if (!session || !session->open()) return;
        if (!status.ok()) return session->done(attempt, generation, 0, status.error().to_string());
        if (last) {
          session->send_outputs(attempt, ran);
        } else {
          const auto count = static_cast<uint32_t>(ran.size());
          session->resources_.maps.put(
              batch, device,
              computed_map(
                  sections_of(*content->model, content->cargo, content->file, content->block_to, ran), count),
              true);
        }
        session->done(attempt, generation, measured, "");
      });
}

void WorkerSession::send_outputs(uint64_t attempt, const std::vector<PartRow>& rows) {
  for (uint32_t r = 0; r < rows.size(); ++r) {
    const auto text = outputs_text(rows[r]);
    for (size_t at = 0; at < text.size(); at += kOutputPieceBytes) {
      worker::FromWorker message;
      auto& piece = *message.mutable_output();
      piece.set_attempt(attempt);
      piece.set_row(r);
      piece.set_data(text.data() + at, std::min(kOutputPieceBytes, text.size() - at));
      send(std::move(message));
    }
  }
}

void WorkerSession::transfer(const worker::Transfer& transfer) {
  const uint64_t attempt = transfer.attempt(), generation = transfer.generation();
  begin_step(attempt);
  const auto map = resources_.maps.get(transfer.batch(), transfer.source());
  if (!map) return done(attempt, generation, 0, "the batch's feature map is not here", {}, true);
  if (transfer.address() == resources_.address) {
    resources_.maps.put(transfer.batch(), transfer.device(), *map);
    return done(attempt, generation, 0, "");
  }
  FeatureSender::Parcel parcel;
  parcel.batch = transfer.batch();
  parcel.generation = generation;
  parcel.device = transfer.device();
  parcel.map = *map;
  parcel.patience_s = transfer.patience_s();
  parcel.sent = [self = weak_from_this(), attempt, generation](const Status& status) {
    const auto session = self.lock();
    if (!session || !session->open()) return;
    if (status.ok()) ++session->resources_.maps_sent;
    session->done(attempt, generation, 0, status.ok() ? "" : status.error().to_string());
  };
  resources_.sender.send(transfer.address(), std::move(parcel));
}

}  // namespace heddle

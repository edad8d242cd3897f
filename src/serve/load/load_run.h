// The part of a load test that no protocol changes: when requests are due, and the outcome of each.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/serve/live_plane.h"
#include "heddle/serve/load.h"
#include "load_client.h"
#include "load_sessions.h"

namespace heddle {

// Statuses of requests that no server answered.
inline constexpr int kUnanswered = 0, kMalformed = -1;

class LoadRun {
 public:
  // All of them outlive it.
  LoadRun(std::span<const ModelUnderLoad> models, std::span<const Arrival> arrivals,
          const LoadOptions& options);
  virtual ~LoadRun() = default;
  LoadRun(const LoadRun&) = delete;
  LoadRun& operator=(const LoadRun&) = delete;

  Result<LoadResult> run();

 protected:
  // Sends what waits, as far as it can be sent now. Errors: there is no server at all.
  virtual Status send_waiting() = 0;
  // Takes answers, until `until` at most.
  virtual void wait(TimeNs until) = 0;
  // Gives up requests under way that were due at `oldest` or before.
  virtual void give_up(TimeNs oldest) = 0;

  // A request that was due then or before, and has no outcome yet, is lost.
  TimeNs oldest() const;
  // No further request is sent.
  bool stopped() const { return result_.stopped_s.has_value(); }
  // When request number i was due.
  TimeNs due(size_t i) const { return begin_ + arrivals_[i].at; }
  size_t model_index(size_t i) const { return arrivals_[i].model; }
  const ModelUnderLoad& model_of(size_t i) const { return models_[model_index(i)]; }
  // Of a request that may be sent or is under way; null: its model keeps no state.
  const SessionStep* step_of(size_t i) const { return sessions_.step(i); }
  size_t front() const { return waiting_.front(); }
  bool any_waits() const { return !waiting_.empty(); }
  // The first that waits is on its way, or settled.
  void pop() { waiting_.pop_front(); }
  void wait_again(size_t i) { waiting_.push_back(i); }
  void sent(size_t i) { result_.lateness.add(live_now() - due(i)); }
  // What the server reports with an answer: the rows of its batch, and how long it waited; negative: not reported.
  void note_answer(size_t i, int64_t batch, double queue_us);
  // The request's one outcome, by the statuses of HTTP; `at`: when that was known.
  void settle(size_t i, int status, const std::string& message, TimeNs at);
  void settle(size_t i, int status, const std::string& message) { settle(i, status, message, live_now()); }
  void settle_malformed(size_t i);

  const LoadOptions& options_;
  LoadResult result_;

 private:
  void report(TimeNs& last) const;
  void give_up_waiting();
  void stop();

  std::span<const ModelUnderLoad> models_;
  std::span<const Arrival> arrivals_;
  LoadSessions sessions_;
  std::deque<size_t> waiting_;
  size_t next_ = 0, last_ = 0, settled_ = 0;
  TimeNs begin_ = 0, give_up_at_ = 0;  // all, once it is stopped
};

// From several threads at once.
using FindAddresses = std::function<Result<std::vector<SocketAddress>>(const LoadTarget&)>;
// By protocol. The target outlives the run.
std::unique_ptr<LoadRun> http_load(const LoadTarget& target, std::span<const ModelUnderLoad> models,
                                   std::span<const Arrival> arrivals, const LoadOptions& options,
                                   const FindAddresses& find = find_addresses);
std::unique_ptr<LoadRun> grpc_load(const LoadTarget& target, std::span<const ModelUnderLoad> models,
                                   std::span<const Arrival> arrivals, const LoadOptions& options);

}  // namespace heddle

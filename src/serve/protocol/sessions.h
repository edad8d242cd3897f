// What models keep from one request of a session to the next. Requests of a session run one at a time, in the order in
// which they came; those of different sessions do not wait for each other. A request that fails leaves the state as it
// was, and those that waited behind it fail, too: their answers would lack it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/base/sync.h"
#include "heddle/serve/infer_service.h"

namespace heddle {

using StateTensors =
    std::vector<std::shared_ptr<const std::byte[]>>;  // in the order of SessionState::tensors

class Sessions;
struct ClientSession;

// The turn of one request in its session, which ends with this object. Not thread-safe.
class SessionTurn {
 public:
  ~SessionTurn();
  SessionTurn(const SessionTurn&) = delete;
  SessionTurn& operator=(const SessionTurn&) = delete;

  const std::shared_ptr<const SessionState>& of() const;
  // The model's state tensors for this request, in the order of SessionState::tensors.
  StateTensors before() const;
  // The request was answered, and left this. Without it the request has failed.
  void keep(StateTensors after);

 private:
  friend class Sessions;
  SessionTurn(Sessions& sessions, std::shared_ptr<ClientSession> session, const SessionStep& step,
              int64_t rows);

  Sessions& sessions_;
  const std::shared_ptr<ClientSession> session_;
  const bool start_, end_;
  const int64_t rows_;
  StateTensors after_;
};

// A request that waits for its turn.
struct WaitingRequest {
  InferRequest request;
  InferService::Done done;
  TimeNs arrived = 0;
  int64_t rows = 1;
};

// Thread-safe.
class Sessions {
 public:
  // Runs the request now that it has its turn, or answers it with the error. Turns come on a thread of this object,
  // errors on any, and then with locks of the caller held: must not wait for anything.
  using Resume = std::function<void(WaitingRequest, Result<std::unique_ptr<SessionTurn>>)>;
  explicit Sessions(Resume resume) : resume_(std::move(resume)) {}
  ~Sessions() { close(); }
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  void set_limits(const SessionLimits& limits);

  // The request's turn in its session of the model. Null: an earlier request runs; this one was moved from `request`
  // and comes back by Resume. Errors leave it where it is: an unknown session, too many, another number of rows.
  Result<std::unique_ptr<SessionTurn>> enter(const ServedModel& model, WaitingRequest& request);
  // Ends all sessions but those of these models, as loaded.
  void retain(const std::vector<std::shared_ptr<const ServedModel>>& models);
  // Requests that wait, and all that come, fail.
  void close();

  std::map<std::string, SessionCounters> counters() const;  // by model

 private:
  friend class SessionTurn;
  struct Ready {
    WaitingRequest request;
    std::unique_ptr<SessionTurn> turn;
  };
  using Failed = std::vector<WaitingRequest>;

  void leave(SessionTurn& turn);
  // All of these with the lock held.
  Status check_limits(const ServedModel& model, const ClientSession* session, int64_t bytes);
  void reserve(ClientSession& session, int64_t rows);
  void sleep(ClientSession& session);
  void remove(const std::shared_ptr<ClientSession>& session);
  void expire(TimeNs now);
  void count_answered(const ClientSession& session, bool start, bool end);
  void fail_waiting(ClientSession& session, Failed& failed) const;

  void fail(Failed failed, const Error& error) const;
  void work();

  const Resume resume_;
  mutable Mutex mutex_;  // guards what follows
  SessionLimits limits_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<ClientSession>> sessions_;  // by model and id
  std::set<std::pair<TimeNs, std::shared_ptr<ClientSession>>>
      asleep_;  // without a request, by the end of their time
  std::map<std::string, SessionCounters> counters_;
  int64_t bytes_ = 0;  // that sessions have reserved
  std::deque<Ready> ready_;
  TimeNs wakes_ = internal::kEver;  // the thread, by itself
  bool closed_ = false;
  Condition changed_;
  Thread thread_;
};

}  // namespace heddle

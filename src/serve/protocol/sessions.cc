#include "sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "heddle/base/units.h"

namespace heddle {

struct ClientSession {
  std::string model, id;
  std::shared_ptr<const SessionState> of;
  StateTensors state;      // after the last answered request; empty: there was none
  int64_t state_rows = 0;  // of `state`
  bool running = false;    // a request has its turn
  bool gone = false;       // the session was ended while it ran
  std::deque<WaitingRequest> waiting;
  // After all requests that have come.
  int64_t rows = 0;
  bool ends = false;

  int64_t reserved = 0;  // bytes
  TimeNs expires = 0;    // while no request is there
};

namespace {

std::string named(const std::string& model, const std::string& id) {
  return "model '" + model + "', session " + id;
}

StateTensors initial_state(const SessionState& of, int64_t rows) {
  StateTensors out;
  for (const auto& t : of.tensors) {
    const auto row = static_cast<size_t>(t.row_bytes);
    std::shared_ptr<std::byte[]> bytes(new std::byte[std::max<size_t>(row * static_cast<size_t>(rows), 1)]());
    for (size_t r = 0; r < static_cast<size_t>(rows) && !t.initial.empty(); ++r)
      std::memcpy(bytes.get() + r * row, t.initial.data(), row);
    out.push_back(std::move(bytes));
  }
  return out;
}

}  // namespace

SessionTurn::SessionTurn(Sessions& sessions, std::shared_ptr<ClientSession> session, const SessionStep& step,
                         int64_t rows)
    : sessions_(sessions), session_(std::move(session)), start_(step.start), end_(step.end), rows_(rows) {}

SessionTurn::~SessionTurn() { sessions_.leave(*this); }

const std::shared_ptr<const SessionState>& SessionTurn::of() const { return session_->of; }

StateTensors SessionTurn::before() const {
  // While this has the turn, nobody else touches the state.
  return start_ ? initial_state(*session_->of, rows_) : session_->state;
}

void SessionTurn::keep(StateTensors after) { after_ = std::move(after); }

void Sessions::set_limits(const SessionLimits& limits) {
  const std::lock_guard lock(mutex_);
  limits_ = limits;
}

Status Sessions::check_limits(const ServedModel& model, const ClientSession* session, int64_t bytes) {
  const auto full = [&](const std::string& what) {
    ++counters_[model.name].refused;
    return cancelled_error("model '" + model.name + "': no session can begin: " + what +
                           "; end sessions with sequence_end, or try again later");
  };
  if (session == nullptr && sessions_.size() >= limits_.sessions)
    return full(fmt::format("{} are open, the most that this server keeps", sessions_.size()));
  const int64_t others = bytes_ - (session == nullptr ? 0 : session->reserved);
  if (bytes > limits_.bytes - others)
    return full("it needs " + format_bytes(bytes) + ", and open ones have " + format_bytes(others) + " of " +
                format_bytes(limits_.bytes));
  return {};
}

void Sessions::reserve(ClientSession& session, int64_t rows) {
  const int64_t bytes = rows * session.of->row_bytes();
  bytes_ += bytes - session.reserved;
  session.reserved = bytes;
}

Result<std::unique_ptr<SessionTurn>> Sessions::enter(const ServedModel& model, WaitingRequest& request) {
  const auto& step = request.request.session;
  const std::lock_guard lock(mutex_);
  if (closed_) return cancelled_error("the server is stopping");
  if (!thread_.joinable()) {
    try {
      thread_ = Thread([this] { work(); });
    } catch (const std::system_error& e) {
      return io_error(std::string("no more threads can be started: ") + e.what());
    }
  }
  expire(live_now());
  const auto it = sessions_.find({model.name, step.id});
  auto session = it == sessions_.end() ? nullptr : it->second;
  if (step.start) {
    HEDDLE_RETURN_IF_ERROR(check_limits(model, session.get(), request.rows * model.state->row_bytes()));
  } else if (session == nullptr || session->ends) {
    return not_found(named(model.name, step.id) +
                     " does not exist: it has not begun (sequence_start), has ended, failed in its first "
                     "request, or had no request for " +
                     format_us(us_from_ns(model.state->idle_ns)));
  } else if (session->rows != request.rows) {
    return invalid_input(fmt::format("{}: its inputs have {} rows, and {} in its first request; send as many",
                                     named(model.name, step.id), request.rows, session->rows));
  }
  if (session != nullptr && session->waiting.size() >= limits_.waiting)
    return cancelled_error(
        fmt::format("{}: {} requests of it wait already; send the next one after an answer",
                    named(model.name, step.id), session->waiting.size()));
  if (session == nullptr) {
    session =
        std::make_shared<ClientSession>(ClientSession{.model = model.name, .id = step.id, .of = model.state});
    sessions_[{model.name, step.id}] = session;
  }
  if (step.start) reserve(*session, request.rows);
  session->rows = request.rows;
  session->ends = step.end;
  if (session->running) {
    session->waiting.push_back(std::move(request));
    return std::unique_ptr<SessionTurn>();
  }
  asleep_.erase({session->expires, session});
  session->running = true;
  return std::unique_ptr<SessionTurn>(new SessionTurn(*this, session, step, request.rows));
}

void Sessions::sleep(ClientSession& session) {
  session.expires = live_now() + session.of->idle_ns;
  asleep_.emplace(session.expires, sessions_.at({session.model, session.id}));
  if (session.expires < wakes_) changed_.notify_one();
}

void Sessions::remove(const std::shared_ptr<ClientSession>& session) {
  asleep_.erase({session->expires, session});
  bytes_ -= std::exchange(session->reserved, 0);
  session->gone = true;
  sessions_.erase({session->model, session->id});
}

void Sessions::expire(TimeNs now) {
  while (!asleep_.empty() && asleep_.begin()->first <= now) {
    const auto session = asleep_.begin()->second;
    ++counters_[session->model].expired;
    remove(session);
  }
}

void Sessions::count_answered(const ClientSession& session, bool start, bool end) {
  auto& c = counters_[session.model];
  c.ended += (start && !session.state.empty()) + end;  // one that begins anew ends the one before
  c.begun += start;
}

void Sessions::fail_waiting(ClientSession& session, Failed& failed) const {
  for (auto& w : session.waiting) failed.push_back(std::move(w));
  session.waiting.clear();
}

void Sessions::fail(Failed failed, const Error& error) const {
  for (auto& w : failed) resume_(std::move(w), error);
}

void Sessions::leave(SessionTurn& turn) {
  const auto& session = turn.session_;
  Failed failed;
  {
    const std::lock_guard lock(mutex_);
    session->running = false;
    const bool answered = !turn.after_.empty();
    if (answered) {
      if (!session->gone) count_answered(*session, turn.start_, turn.end_);
      session->state = turn.end_ ? StateTensors() : std::move(turn.after_);
      session->state_rows = turn.end_ ? 0 : turn.rows_;
    } else {
      fail_waiting(*session, failed);
      session->rows = session->state_rows;
      session->ends = false;
    }
    if (session->gone) {
      // It was ended while its last request ran.
    } else if (!session->waiting.empty()) {
      Ready next{std::move(session->waiting.front()), nullptr};
      session->waiting.pop_front();
      session->running = true;
      next.turn.reset(new SessionTurn(*this, session, next.request.request.session, next.request.rows));
      ready_.push_back(std::move(next));
      changed_.notify_one();
    } else if (session->state.empty()) {
      remove(session);
    } else {
      reserve(*session, session->state_rows);
      sleep(*session);
    }
  }
  fail(std::move(failed),
       infeasible(named(session->model, session->id) +
                  ": the request before this one failed, so this one was not run; send both again"));
}

void Sessions::retain(const std::vector<std::shared_ptr<const ServedModel>>& models) {
  Failed failed;
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<ClientSession>> ended;
    for (const auto& [key, session] : sessions_)
      if (std::ranges::none_of(models, [&of = session->of](const auto& m) { return m->state == of; }))
        ended.push_back(session);
    for (const auto& session : ended) {
      counters_[session->model].dropped += !session->state.empty();
      fail_waiting(*session, failed);
      remove(session);
    }
  }
  fail(std::move(failed), cancelled_error("the model was unloaded or loaded again, which ends its sessions"));
}

void Sessions::close() {
  Failed failed;
  std::deque<Ready> ready;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [key, session] : sessions_) fail_waiting(*session, failed);
    ready = std::exchange(ready_, {});
    changed_.notify_one();
  }
  for (auto& r : ready) failed.push_back(std::move(r.request));
  ready.clear();
  fail(std::move(failed), cancelled_error("the server is stopping"));
  if (thread_.joinable()) thread_.join();
}

std::map<std::string, SessionCounters> Sessions::counters() const {
  const std::lock_guard lock(mutex_);
  auto out = counters_;
  for (const auto& [key, session] : sessions_) {
    auto& c = out[session->model];
    ++c.open;
    c.waiting += session->waiting.size();
    c.bytes += static_cast<uint64_t>(session->reserved);
  }
  return out;
}

void Sessions::work() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    if (!ready_.empty()) {
      Ready next = std::move(ready_.front());
      ready_.pop_front();
      lock.unlock();
      resume_(std::move(next.request), std::move(next.turn));
      lock.lock();
      continue;
    }
    expire(live_now());
    wakes_ = asleep_.empty() ? internal::kEver : asleep_.begin()->first;
    if (asleep_.empty())
      changed_.wait(lock);
    else
      changed_.wait_until(lock, wakes_);
  }
}

}  // namespace heddle

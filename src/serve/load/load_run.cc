#include "load_run.h"

#include <algorithm>

#include "heddle/base/json.h"
#include "heddle/report/fleet_view.h"

namespace heddle {
namespace {

constexpr size_t kMostErrorKinds = 20;
constexpr TimeNs kStopPatience = 2 * kNsPerSecond;  // for what is under way at a stop

}  // namespace

LoadRun::LoadRun(std::span<const ModelUnderLoad> models, std::span<const Arrival> arrivals,
                 const LoadOptions& options)
    : options_(options),
      models_(models),
      arrivals_(arrivals),
      sessions_(models, arrivals, options.sessions, options.session_requests),
      last_(arrivals.size()) {
  auto& c = result_.counted;
  for (const auto& m : models) {
    c.models.emplace_back();
    c.models.back().model = m.name;
  }
  c.course.resize(kCourseSteps);
  c.horizon = arrivals.empty() ? 1 : arrivals.back().at + 1;
}

Result<LoadResult> LoadRun::run() {
  begin_ = live_now();
  TimeNs last_report = begin_;
  for (;;) {
    const TimeNs now = live_now();
    if (options_.cancel.cancelled()) stop();
    for (; next_ < last_ && due(next_) <= now; ++next_)
      if (sessions_.enter(next_)) waiting_.push_back(next_);
    HEDDLE_RETURN_IF_ERROR(send_waiting());
    if (settled_ == next_ && next_ >= last_) break;
    TimeNs until = now + kNsPerSecond / 20;
    if (next_ < last_) until = std::min(until, due(next_));
    wait(until);
    give_up(oldest());
    give_up_waiting();
    report(last_report);
  }
  if (options_.progress) options_.progress->finish();
  auto& c = result_.counted;
  if (stopped() && c.total.arrivals == 0) return cancelled_error("stopped before a request was due");
  c.end = live_now() - begin_;
  result_.seconds = seconds_from_ns(c.end);
  result_.sessions = sessions_.begun();
  for (const auto& m : c.models) {
    c.latency.merge(m.latency);
    c.queueing.merge(m.queueing);
  }
  return std::move(result_);
}

void LoadRun::report(TimeNs& last) const {
  if (!options_.progress || live_now() - last <= kNsPerSecond / 10) return;
  last = live_now();
  options_.progress->report(
      {.what = "load", .done = static_cast<double>(settled_), .total = static_cast<double>(last_)});
}

TimeNs LoadRun::oldest() const {
  const TimeNs now = live_now();
  return stopped() && now >= give_up_at_ ? now : now - ns_from_us(options_.timeout_s * 1e6);
}

void LoadRun::stop() {
  if (!stopped()) {
    const TimeNs now = live_now();
    result_.stopped_s = seconds_from_ns(now - begin_);
    give_up_at_ = now + kStopPatience;
    last_ = next_;
  }
  // Also those that an outcome has let follow in their session.
  while (any_waits()) {
    settle(front(), kUnanswered, "it was not sent before the load was stopped");
    pop();
  }
}

void LoadRun::give_up_waiting() {
  while (any_waits() && due(front()) <= oldest()) {
    settle(front(), kUnanswered,
           step_of(front()) == nullptr
               ? "no connection was free in time"
               : "neither a connection nor its session, for the requests before it, was free in time");
    pop();
  }
}

void LoadRun::note_answer(size_t i, int64_t batch, double queue_us) {
  auto& model = result_.counted.models[arrivals_[i].model];
  if (batch > 0 && batch <= kMaxFleetBatch) {
    // Every request reports the size of its batch; this counts rows, not batches.
    auto& sizes = model.batch_sizes;
    if (sizes.size() < static_cast<size_t>(batch)) sizes.resize(static_cast<size_t>(batch), 0);
    ++sizes[static_cast<size_t>(batch) - 1];
  }
  if (queue_us >= 0) model.queueing.add(ns_from_us(queue_us));
}

void LoadRun::settle_malformed(size_t i) {
  ++result_.mismatched;
  settle(i, kMalformed, "the answer is not that of its request");
}

void LoadRun::settle(size_t i, int status, const std::string& message, TimeNs at) {
  ++settled_;
  if (const auto next = sessions_.leave(i, status)) waiting_.push_back(*next);
  ++result_.statuses[std::max(status, kUnanswered)];
  const auto& arrival = arrivals_[i];
  auto& model = result_.counted.models[arrival.model];
  const TimeNs latency = at - due(i);
  const double part = static_cast<double>(arrival.at) / static_cast<double>(result_.counted.horizon);
  auto& step = result_.counted.course[std::min(kCourseSteps - 1, static_cast<size_t>(part * kCourseSteps))];
  const bool in_time = us_from_ns(latency) <= models_[arrival.model].slo_us;
  if (status == 200) model.latency.add(latency);
  for (auto* counts : {&model.requests, &result_.counted.total, &step}) {
    ++counts->arrivals;
    ++(status == 200 ? (in_time ? counts->in_time : counts->late)
                     : (status == 504 ? counts->dropped : counts->failed));
  }
  if (status == 200 || status == 504) return;
  const auto it = result_.errors.find(message);
  if (it != result_.errors.end()) {
    ++it->second;
  } else if (result_.errors.size() < kMostErrorKinds) {
    result_.errors[message] = 1;
  } else {
    ++result_.errors["other messages"];
  }
}

Result<LoadResult> run_load(const LoadTarget& target, std::span<const ModelUnderLoad> models,
                            std::span<const Arrival> arrivals, const LoadOptions& options) {
  if (!(options.timeout_s > 0) || options.max_connections == 0)
    return invalid_input("a load needs a timeout above 0 and at least one connection");
  if (options.sessions == 0 || options.session_requests == 0)
    return invalid_input("a load needs at least one session, and one request in each");
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (arrivals[i].model >= models.size() || arrivals[i].at < 0 ||
        (i > 0 && arrivals[i].at < arrivals[i - 1].at))
      return invalid_input("arrival " + std::to_string(i) +
                           ": its model does not exist, or the arrivals are not sorted");
  if (target.grpc && !options.standbys.empty()) return invalid_input("standbys are for loads by HTTP");
  for (const auto& m : models)
    if (m.keeps_state && !options.standbys.empty())
      return invalid_input("model '" + m.name +
                           "' keeps state, which standbys do not have; load it without them");
  const auto load = target.grpc ? grpc_load(target, models, arrivals, options)
                                : http_load(target, models, arrivals, options);
  return load->run();
}

Json to_json(const LoadResult& r) {
  Json out = simulation_json(r.counted);
  for (const auto& [status, count] : r.statuses) out["statuses"][std::to_string(status)] = count;
  out["errors"] = Json::object();
  for (const auto& [message, count] : r.errors) out["errors"][message] = count;
  out["mismatched"] = r.mismatched;
  out["connections"] = r.connections;
  out["resent"] = r.resent;
  out["sessions"] = r.sessions;
  out["seconds"] = r.seconds;
  if (r.stopped_s) out["stopped_s"] = *r.stopped_s;
  out["lateness_p99_us"] = us_from_ns(r.lateness.percentile(.99));
  out["lateness_max_us"] = us_from_ns(r.lateness.max());
  return out;
}

}  // namespace heddle

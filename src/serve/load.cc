#include "heddle/serve/load.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <deque>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/fleet/random.h"
#include "heddle/report/fleet_view.h"
#include "heddle/serve/infer_message.h"
#include "heddle/serve/live_plane.h"
#include "load_client.h"

namespace heddle {
namespace {

constexpr size_t kMostErrorKinds = 20;
constexpr double kAskSeconds = 30;

Result<Json> ask_json(const LoadTarget& target, const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto answer, ask_http(target, "GET", path, "", kAskSeconds));
  auto json = parse_json(answer.body);
  if (answer.status != 200) {
    const bool told =
        json.ok() && json->is_object() && json->contains("error") && (*json)["error"].is_string();
    return Error(answer.status == 404 ? Code::kNotFound : Code::kInvalidInput,
                 "status " + std::to_string(answer.status) +
                     (told ? ": " + (*json)["error"].get<std::string>() : ""))
        .with_context(path);
  }
  if (!json.ok()) return std::move(json).error().with_context(path);
  return json;
}

// One row of random values: floats in [0, 1), others 0 to 3.
Status add_input(const JsonCursor& at, size_t payload_bytes, Random& random, Json& inputs,
                 std::string& tensors) {
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"name", "datatype", "shape"}));
  HEDDLE_ASSIGN_OR_RETURN(const auto name, at.string_or("name", ""));
  HEDDLE_ASSIGN_OR_RETURN(const auto datatype, at.string_or("datatype", ""));
  HEDDLE_ASSIGN_OR_RETURN(const auto shape_at, at.at("shape"));
  HEDDLE_ASSIGN_OR_RETURN(auto shape, shape_at.as_ints(-1, int64_t{1} << 40));
  const auto dtype = dtype_from_protocol(datatype);
  if (!dtype) return at.error("the type '" + datatype + "' cannot be made up");
  const bool any = shape == Shape{-1} && *dtype == DType::kU8;
  for (auto& d : shape)
    if (d == -1) d = any ? static_cast<int64_t>(payload_bytes) : 1;
  const auto bytes = tensor_bytes(*dtype, shape);
  if (!bytes || *bytes > (int64_t{1} << 30)) return at.error("the input is larger than 1 GiB");
  const auto size = static_cast<size_t>(dtype_bits(*dtype) / 8);
  for (int64_t i = 0; i < *bytes; i += static_cast<int64_t>(size)) {
    char element[8] = {};
    if (*dtype == DType::kF32) {
      const auto v = static_cast<float>(random.unit());
      std::memcpy(element, &v, sizeof v);
    } else if (*dtype == DType::kF64) {
      const double v = random.unit();
      std::memcpy(element, &v, sizeof v);
    } else if (*dtype != DType::kF16 && *dtype != DType::kBF16) {
      element[0] = static_cast<char>(random.below(*dtype == DType::kBool ? 2 : 4));
    }
    tensors.append(element, size);
  }
  inputs.push_back({{"name", name},
                    {"datatype", datatype},
                    {"shape", shape},
                    {"parameters", {{"binary_data_size", *bytes}}}});
  return {};
}

struct Connection {
  LoadConnection io;
  size_t request = 0;
  bool busy = false;
  uint32_t armed = 0;  // epoll's events
};

class Load {
 public:
  Load(const LoadTarget& target, std::span<const ModelUnderLoad> models, std::span<const Arrival> arrivals,
       const LoadOptions& options)
      : target_(target),
        models_(models),
        arrivals_(arrivals),
        options_(options),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    auto& c = result_.counted;
    for (const auto& m : models) {
      c.models.emplace_back();
      c.models.back().model = m.name;
    }
    c.course.resize(kCourseSteps);
    c.horizon = arrivals.empty() ? 1 : arrivals.back().at + 1;
  }

  Result<LoadResult> run() {
    begin_ = live_now();
    TimeNs last_report = begin_;
    for (;;) {
      const TimeNs now = live_now();
      if (options_.cancel.cancelled()) last_ = next_;
      while (next_ < last_ && begin_ + arrivals_[next_].at <= now) waiting_.push_back(next_++);
      HEDDLE_RETURN_IF_ERROR(send_waiting());
      if (settled_ == next_ && next_ >= last_) break;
      wait(now);
      give_up_late();
      if (options_.progress && live_now() - last_report > kNsPerSecond / 10) {
        last_report = live_now();
        options_.progress->report(
            {.what = "load", .done = static_cast<double>(settled_), .total = static_cast<double>(last_)});
      }
    }
    if (options_.progress) options_.progress->finish();
    auto& c = result_.counted;
    c.end = live_now() - begin_;
    result_.seconds = seconds_from_ns(c.end);
    for (const auto& m : c.models) {
      c.latency.merge(m.latency);
      c.queueing.merge(m.queueing);
    }
    return std::move(result_);
  }

 private:
  Status send_waiting() {
    while (!waiting_.empty()) {
      Connection* c = nullptr;
      if (!idle_.empty()) {
        c = idle_.back();
        idle_.pop_back();
      } else if (connections_.size() < options_.max_connections) {
        auto fresh = std::make_unique<Connection>();
        if (auto status = fresh->io.open(target_); !status.ok()) {
          if (result_.connections == 0) return status;
          settle(waiting_.front(), 0, status.error().message());
          waiting_.pop_front();
          continue;
        }
        ++result_.connections;
        epoll_event e = {};
        e.data.ptr = fresh.get();
        e.events = fresh->armed = EPOLLOUT;
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fresh->io.fd(), &e);
        c = fresh.get();
        connections_.push_back(std::move(fresh));
      } else {
        return {};
      }
      begin(*c, waiting_.front());
      waiting_.pop_front();
    }
    return {};
  }

  void begin(Connection& c, size_t request) {
    const auto& model = models_[arrivals_[request].model];
    const auto json = "{\"id\":\"" + std::to_string(request) + "\"," + model.inputs_json;
    auto head = request_head(target_, "POST", "/v2/models/" + model.name + "/infer");
    head += "Inference-Header-Content-Length: " + std::to_string(json.size()) +
            "\r\nContent-Length: " + std::to_string(json.size() + model.tensors.size()) + "\r\n\r\n" + json;
    c.request = request;
    c.busy = true;
    c.io.send(std::move(head), &model.tensors);
    result_.lateness.add(live_now() - due(request));
    advance(c);
  }

  TimeNs due(size_t request) const { return begin_ + arrivals_[request].at; }

  void advance(Connection& c) {
    const auto step = c.io.advance();
    if (step == LoadConnection::Step::kWantsRead) return arm(c, EPOLLIN);
    if (step == LoadConnection::Step::kWantsWrite) return arm(c, EPOLLOUT);
    if (step == LoadConnection::Step::kBroken) {
      if (c.busy) settle(c.request, 0, "the connection broke");
      return close(c);
    }
    answered(c);
    if (!c.io.keep_alive()) return close(c);
    c.busy = false;
    arm(c, EPOLLIN);
    idle_.push_back(&c);
  }

  void arm(Connection& c, uint32_t events) {
    if (c.armed == events) return;
    epoll_event e = {};
    e.data.ptr = &c;
    e.events = c.armed = events;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, c.io.fd(), &e);
  }

  // The object stays until the end: events of this turn may still name it.
  void close(Connection& c) {
    c.busy = false;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, c.io.fd(), nullptr);
    std::erase(idle_, &c);
    for (auto& owned : connections_)
      if (owned.get() == &c) {
        graves_.push_back(std::move(owned));
        std::swap(owned, connections_.back());
        connections_.pop_back();
        return;
      }
  }

  void answered(Connection& c) {
    size_t json_bytes = c.io.body().size();
    for (const auto& [name, value] : c.io.headers())
      if (name == "inference-header-content-length")
        json_bytes = std::min<size_t>(json_bytes, std::strtoull(value.c_str(), nullptr, 10));
    const auto json = parse_json(std::string_view(c.io.body()).substr(0, json_bytes));
    if (c.io.status() != 200) {
      const bool told =
          json.ok() && json->is_object() && json->contains("error") && (*json)["error"].is_string();
      return settle(c.request, c.io.status(),
                    told ? (*json)["error"].get<std::string>() : "without a message");
    }
    const bool whole =
        json.ok() && json->is_object() && json->value("id", Json()) == std::to_string(c.request);
    if (!whole) {
      ++result_.mismatched;
      return settle(c.request, -1, "the answer is not that of its request");
    }
    auto& model = result_.counted.models[arrivals_[c.request].model];
    if (json->contains("parameters") && (*json)["parameters"].is_object()) {
      const JsonCursor parameters((*json)["parameters"]);
      const auto batch = parameters.int_or("batch_size", 0, 0, kMaxFleetBatch);
      const auto queue_us = parameters.number_or("queue_us", -1, 0, 1e12);
      if (batch.ok() && *batch > 0) {
        // Every request of a batch tells its size; rows are counted here, not batches.
        auto& sizes = model.batch_sizes;
        if (sizes.size() < static_cast<size_t>(*batch)) sizes.resize(static_cast<size_t>(*batch), 0);
        ++sizes[static_cast<size_t>(*batch) - 1];
      }
      if (queue_us.ok() && *queue_us >= 0) model.queueing.add(ns_from_us(*queue_us));
    }
    settle(c.request, 200, "");
  }

  void settle(size_t request, int status, const std::string& message) {
    ++settled_;
    ++result_.statuses[std::max(status, 0)];
    const auto& arrival = arrivals_[request];
    auto& model = result_.counted.models[arrival.model];
    const TimeNs latency = live_now() - due(request);
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

  void wait(TimeNs now) {
    TimeNs until = now + kNsPerSecond / 20;
    if (next_ < last_) until = std::min(until, begin_ + arrivals_[next_].at);
    const TimeNs left = std::max<TimeNs>(0, until - live_now());
    const timespec timeout = {left / kNsPerSecond, left % kNsPerSecond};
    epoll_event events[128];
    const int n = ::epoll_pwait2(epoll_.get(), events, 128, &timeout, nullptr);
    for (int i = 0; i < n; ++i) {
      auto& c = *static_cast<Connection*>(events[i].data.ptr);
      const bool gone =
          std::any_of(graves_.begin(), graves_.end(), [&c](const auto& g) { return g.get() == &c; });
      if (gone) continue;
      if (c.busy) {
        advance(c);
      } else {
        close(c);  // the server ended a connection that nobody used
      }
    }
    graves_.clear();
  }

  void give_up_late() {
    const TimeNs oldest = live_now() - ns_from_us(options_.timeout_s * 1e6);
    for (size_t i = connections_.size(); i-- > 0;) {
      auto& c = *connections_[i];
      if (!c.busy || due(c.request) > oldest) continue;
      settle(c.request, 0, "no answer came in time");
      close(c);
    }
    while (!waiting_.empty() && due(waiting_.front()) <= oldest) {
      settle(waiting_.front(), 0, "no connection was free in time");
      waiting_.pop_front();
    }
    graves_.clear();
  }

  const LoadTarget& target_;
  std::span<const ModelUnderLoad> models_;
  std::span<const Arrival> arrivals_;
  const LoadOptions& options_;
  FileHandle epoll_;
  std::vector<std::unique_ptr<Connection>> connections_, graves_;
  std::vector<Connection*> idle_;
  std::deque<size_t> waiting_;
  size_t next_ = 0, last_ = arrivals_.size(), settled_ = 0;
  TimeNs begin_ = 0;
  LoadResult result_;
};

}  // namespace

Result<std::vector<ModelUnderLoad>> load_models(const LoadTarget& target, std::span<const std::string> only,
                                                size_t payload_bytes, uint64_t seed) {
  HEDDLE_ASSIGN_OR_RETURN(const auto status, ask_json(target, "/v2/status"));
  const JsonCursor at(status, "/v2/status");
  HEDDLE_ASSIGN_OR_RETURN(const auto list, at.at("models"));
  HEDDLE_ASSIGN_OR_RETURN(const auto offered, list.elements(100000));
  std::vector<std::string> names;
  std::vector<ModelUnderLoad> models;
  Random random = random_stream(seed, 0x10ad);
  for (const auto& m : offered) {
    ModelUnderLoad model;
    HEDDLE_ASSIGN_OR_RETURN(model.name, m.string_or("name", ""));
    names.push_back(model.name);
    if (!only.empty() && std::find(only.begin(), only.end(), model.name) == only.end()) continue;
    HEDDLE_ASSIGN_OR_RETURN(model.slo_us, m.number_or("slo_us", 0, 0, 1e15));
    HEDDLE_ASSIGN_OR_RETURN(model.planned_rate_per_s, m.number_or("rate_per_s", 0, 0, 1e15));
    const auto path = "/v2/models/" + model.name;
    HEDDLE_ASSIGN_OR_RETURN(const auto metadata, ask_json(target, path));
    const JsonCursor of_model(metadata, path);
    HEDDLE_ASSIGN_OR_RETURN(const auto tensors_at, of_model.at("inputs"));
    HEDDLE_ASSIGN_OR_RETURN(const auto tensors, tensors_at.elements(1024));
    Json inputs = Json::array();
    for (const auto& t : tensors)
      HEDDLE_RETURN_IF_ERROR(add_input(t, payload_bytes, random, inputs, model.tensors));
    model.inputs_json = "\"parameters\":{\"binary_data_output\":true},\"inputs\":" + inputs.dump() + "}";
    models.push_back(std::move(model));
  }
  for (const auto& wanted : only)
    if (std::find(names.begin(), names.end(), wanted) == names.end())
      return Error(Code::kNotFound, "the server has no model '" + wanted + "'" + did_you_mean(wanted, names) +
                                        "; it has " + join_names(names, 40));
  if (models.empty()) return Error(Code::kInvalidInput, "the server has no model loaded");
  return models;
}

Result<LoadResult> run_load(const LoadTarget& target, std::span<const ModelUnderLoad> models,
                            std::span<const Arrival> arrivals, const LoadOptions& options) {
  if (!(options.timeout_s > 0) || options.max_connections == 0)
    return Error(Code::kInvalidInput, "a load needs a timeout above 0 and at least one connection");
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (arrivals[i].model >= models.size() || arrivals[i].at < 0 ||
        (i > 0 && arrivals[i].at < arrivals[i - 1].at))
      return Error(Code::kInvalidInput, "arrival " + std::to_string(i) +
                                            ": its model does not exist, or the arrivals are not sorted");
  return Load(target, models, arrivals, options).run();
}

Json to_json(const LoadResult& r) {
  Json out = simulation_json(r.counted);
  for (const auto& [status, count] : r.statuses) out["statuses"][std::to_string(status)] = count;
  out["errors"] = Json::object();
  for (const auto& [message, count] : r.errors) out["errors"][message] = count;
  out["mismatched"] = r.mismatched;
  out["connections"] = r.connections;
  out["seconds"] = r.seconds;
  out["lateness_p99_us"] = us_from_ns(r.lateness.percentile(.99));
  out["lateness_max_us"] = us_from_ns(r.lateness.max());
  return out;
}

}  // namespace heddle

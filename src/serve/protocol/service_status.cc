// A service's status: Prometheus's text, and JSON for pages and programs.
#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/json.h"
#include "heddle/base/utc.h"
#include "heddle/base/version.h"
#include "heddle/serve/infer_service.h"
#include "protocol/metrics_text.h"

namespace heddle {
namespace {

void add_requests(Metrics& out, const std::map<std::string, ModelStatisticsRecord>& models) {
  out.family("heddle_requests_total", "counter", "Requests by outcome.");
  for (const auto& [name, s] : models) {
    for (size_t f = 1; f < kOutcomes; ++f)
      out.value("heddle_requests_total",
                model_label(name) + ",outcome=\"" + outcome_name(static_cast<Outcome>(f)) + "\"",
                static_cast<double>(s.requests[f]));
  }
  out.family("heddle_slo_attainment", "gauge", "Share of requests that were answered in time.");
  for (const auto& [name, s] : models) {
    uint64_t all = 0;
    for (size_t f = 1; f < static_cast<size_t>(Outcome::kInvalid); ++f) all += s.requests[f];
    if (all > 0)
      out.value(
          "heddle_slo_attainment", model_label(name),
          static_cast<double>(s.requests[static_cast<size_t>(Outcome::kInTime)]) / static_cast<double>(all));
  }
  out.family("heddle_request_seconds", "histogram", "Time from arrival to answer of answered requests.");
  for (const auto& [name, s] : models) {
    uint64_t below = 0;
    constexpr size_t kBuckets = std::size(ModelStatisticsRecord::kBuckets_s);
    for (size_t b = 0; b <= kBuckets; ++b) {
      below += s.latency[b];
      const std::string le =
          b < kBuckets ? fmt::format("{:g}", ModelStatisticsRecord::kBuckets_s[b]) : std::string("+Inf");
      out.value("heddle_request_seconds_bucket", model_label(name) + ",le=\"" + le + "\"",
                static_cast<double>(below));
    }
    out.value("heddle_request_seconds_sum", model_label(name), s.latency_s);
    out.value("heddle_request_seconds_count", model_label(name), static_cast<double>(below));
  }
}

void add_padding(Metrics& out, const std::map<std::string, ModelStatisticsRecord>& models) {
  out.family("heddle_input_bytes_total", "counter", "Bytes of inputs that ran, of models of varying shapes.");
  for (const auto& [name, s] : models) {
    if (s.buckets.empty()) continue;
    out.value("heddle_input_bytes_total", model_label(name) + ",kind=\"sent\"",
              static_cast<double>(s.input_bytes));
    out.value("heddle_input_bytes_total", model_label(name) + ",kind=\"padding\"",
              static_cast<double>(s.run_bytes - s.input_bytes));
  }
  out.family("heddle_bucket_requests_total", "counter", "Answered requests by the bucket that held them.");
  for (const auto& [name, s] : models)
    for (const auto& [bucket, count] : s.buckets)
      out.value("heddle_bucket_requests_total",
                model_label(name) + ",bucket=\"" + metric_label(bucket) + "\"", static_cast<double>(count));
}

void add_sessions(Metrics& out, const std::map<std::string, SessionCounters>& models) {
  if (models.empty()) return;
  struct Column {
    const char *name, *type, *help;
    uint64_t SessionCounters::*value;
  };
  static constexpr Column kColumns[] = {
      {"heddle_sessions", "gauge", "Open sessions of models with state.", &SessionCounters::open},
      {"heddle_session_bytes", "gauge", "Bytes of the state of open sessions.", &SessionCounters::bytes},
      {"heddle_session_waiting", "gauge", "Requests behind another one of their session.",
       &SessionCounters::waiting},
      {"heddle_sessions_begun_total", "counter", "Sessions that have begun.", &SessionCounters::begun},
      {"heddle_sessions_refused_total", "counter", "Sessions that could not begin: too many, or too large.",
       &SessionCounters::refused},
  };
  for (const auto& column : kColumns) {
    out.family(column.name, column.type, column.help);
    for (const auto& [name, c] : models)
      out.value(column.name, model_label(name), static_cast<double>(c.*column.value));
  }
  out.family("heddle_sessions_ended_total", "counter",
             "Sessions that have ended: by the client, by time, with their model.");
  for (const auto& [name, c] : models)
    for (const auto& [how, count] :
         {std::pair("client", c.ended), std::pair("time", c.expired), std::pair("model", c.dropped)})
      out.value("heddle_sessions_ended_total", model_label(name) + ",by=\"" + how + "\"",
                static_cast<double>(count));
}

Json sessions_json(const SessionCounters& c) {
  return {{"open", c.open},   {"bytes", c.bytes},     {"waiting", c.waiting}, {"begun", c.begun},
          {"ended", c.ended}, {"expired", c.expired}, {"dropped", c.dropped}, {"refused", c.refused}};
}

// What one of the plane's models stands for.
struct PlaneModel {
  const ServedModel* served = nullptr;
  std::string bucket;  // empty: all of it

  std::string label() const {
    return model_label(served->name) + (bucket.empty() ? "" : ",bucket=\"" + metric_label(bucket) + "\"");
  }
};

std::vector<PlaneModel> models_of_plane(const Generation& generation) {
  std::vector<PlaneModel> out;
  for (const auto& m : generation.models) {
    if (!m->varying) out.push_back({m.get(), ""});
    if (m->varying)
      for (const auto& b : m->varying->buckets) out.push_back({m.get(), b.name});
  }
  return out;
}

// Of all buckets together.
struct ModelSum {
  double rate_per_s = 0;
  uint64_t in_plane = 0, queued = 0;
  DurationHistogram latency, queueing;
  std::vector<uint64_t> batch_sizes;

  void add(const DeployedModel& model, const LiveModelCounters& c) {
    rate_per_s += model.rate_per_s;
    in_plane += c.in_plane;
    queued += c.queued;
    latency.merge(c.latency);
    queueing.merge(c.queueing);
    batch_sizes.resize(std::max(batch_sizes.size(), c.batch_sizes.size()), 0);
    for (size_t b = 0; b < c.batch_sizes.size(); ++b) batch_sizes[b] += c.batch_sizes[b];
  }
};

Json buckets_json(const ServedModel& model, const ModelStatisticsRecord& record) {
  Json out = Json::array();
  for (const auto& b : model.varying->buckets) {
    const auto it = record.buckets.find(b.name);
    out.push_back({{"name", b.name},
                   {"share", b.share},
                   {"us", b.us},
                   {"requests", it == record.buckets.end() ? 0 : it->second}});
  }
  return out;
}

void add_plane(Metrics& out, const Deployment& d, const LiveCounters& c,
               const std::vector<PlaneModel>& models) {
  out.family("heddle_queue_rows", "gauge", "Rows that wait for their batch.");
  for (size_t m = 0; m < d.models.size(); ++m)
    out.value("heddle_queue_rows", models[m].label(), static_cast<double>(c.models[m].queued));
  out.family("heddle_batches_total", "counter", "First runs by their number of rows, since the plan began.");
  for (size_t m = 0; m < d.models.size(); ++m)
    for (size_t b = 0; b < c.models[m].batch_sizes.size(); ++b)
      out.value("heddle_batches_total", models[m].label() + ",size=\"" + std::to_string(b + 1) + "\"",
                static_cast<double>(c.models[m].batch_sizes[b]));
  struct Column {
    const char *name, *type, *help;
    double (*get)(const LivePoolCounters&, const DevicePool&);
  };
  static constexpr Column kColumns[] = {
      {"heddle_pool_devices", "gauge", "Virtual devices of a pool.",
       [](const LivePoolCounters&, const DevicePool& p) { return static_cast<double>(p.num_devices); }},
      {"heddle_pool_running", "gauge", "Virtual devices of a pool that are busy.",
       [](const LivePoolCounters& p, const DevicePool&) { return static_cast<double>(p.running); }},
      {"heddle_pool_runs_total", "counter", "Batches that a pool has run since the plan began.",
       [](const LivePoolCounters& p, const DevicePool&) { return static_cast<double>(p.runs); }},
      {"heddle_pool_busy_seconds_total", "counter", "Measured time of a pool's runs.",
       [](const LivePoolCounters& p, const DevicePool&) { return p.busy_s; }},
      {"heddle_pool_predicted_seconds_total", "counter", "The plan's time of the same runs.",
       [](const LivePoolCounters& p, const DevicePool&) { return p.predicted_s; }},
  };
  for (const auto& column : kColumns) {
    out.family(column.name, column.type, column.help);
    for (size_t p = 0; p < d.pipelines.size(); ++p)
      for (size_t k = 0; k < d.pipelines[p].partitions.size(); ++k) {
        const auto& pool = d.pipelines[p].partitions[k];
        out.value(column.name,
                  models[d.pipelines[p].model].label() + ",pipeline=\"" + std::to_string(p) +
                      "\",partition=\"" + std::to_string(k) + "\",class=\"" +
                      metric_label(pool.role.device_class) + "\"",
                  column.get(c.pools[p][k], pool));
      }
  }
  struct Fault {
    const char *name, *help;
    uint64_t value;
  };
  for (const auto& f :
       {Fault{"heddle_devices_lost_total", "Devices lost with their worker.", c.losses},
        Fault{"heddle_given_up_total", "Runs and transfers that took too long or failed.", c.given_up},
        Fault{"heddle_rerun_rows_total", "Rows that lost their device and were queued again.", c.rerun},
        Fault{"heddle_late_answers_total", "Answers to attempts that had been given up.", c.late_answers}}) {
    out.family(f.name, "counter", f.help);
    out.value(f.name, "", static_cast<double>(f.value));
  }
  out.family("heddle_decision_seconds", "summary", "Time of the scheduler's decisions for one arrival.");
  for (const double q : {.5, .99})
    out.value("heddle_decision_seconds", q == .5 ? "quantile=\"0.5\"" : "quantile=\"0.99\"",
              seconds_from_ns(c.decision.percentile(q)));
  out.value("heddle_decision_seconds_sum", "",
            c.decision.mean_ns() * 1e-9 * static_cast<double>(c.decision.count()));
  out.value("heddle_decision_seconds_count", "", static_cast<double>(c.decision.count()));
}

Json latency_json(const DurationHistogram& h) {
  return {{"count", h.count()},
          {"mean_us", h.mean_ns() * 1e-3},
          {"p50_us", us_from_ns(h.percentile(.5))},
          {"p95_us", us_from_ns(h.percentile(.95))},
          {"p99_us", us_from_ns(h.percentile(.99))},
          {"max_us", us_from_ns(h.max())}};
}

// [greatest value in us, count], so that clients can form percentiles of the time between two questions.
Json ranges_json(const DurationHistogram& h) {
  Json out = Json::array();
  for (const auto& [last, count] : h.coarse()) out.push_back({us_from_ns(last), count});
  return out;
}

}  // namespace

std::string InferService::metrics() const {
  Metrics out;
  const auto statistics = all_statistics();
  add_requests(out, statistics);
  add_padding(out, statistics);
  add_sessions(out, sessions());
  const std::shared_lock lock(gate_);
  if (current_ && current_->plane)
    add_plane(out, current_->plane->deployment(), current_->plane->counters(), models_of_plane(*current_));
  if (tracer_ != nullptr) {
    const auto traces = tracer_->counters();
    out.family("heddle_traces_total", "counter",
               "Traced requests: exported, dropped (too many waited), failed.");
    for (const auto& [state, count] :
         {std::pair("exported", traces.exported), std::pair("dropped", traces.dropped),
          std::pair("failed", traces.failed)})
      out.value("heddle_traces_total", std::string("state=\"") + state + "\"", static_cast<double>(count));
  }
  out.family("heddle_plans_total", "counter", "Plans that have been used.");
  out.value("heddle_plans_total", "", static_cast<double>(generations_));
  return out.take() + (more_metrics_ ? more_metrics_() : "");
}

double InferService::devices_rate() const {
  double all = 0;
  for (const auto& m : current_->plane->deployment().models) all += m.rate_per_s;
  return all;
}

double InferService::carried_part() const {
  const double all = devices_rate();
  return carried_per_s_ > 0 && all > carried_per_s_ ? carried_per_s_ / all : 1;
}

double InferService::planned_rate(const std::string& model) const {
  const std::shared_lock lock(gate_);
  const auto it = index_.find(model);
  if (it == index_.end() || !current_->plane) return 0;
  const uint32_t place = places_[it->second];
  double rate = 0;
  for (uint32_t b = 0; b < plane_models(*current_->models[it->second]); ++b)
    rate += current_->plane->deployment().models[place + b].rate_per_s;
  return rate * carried_part();
}

std::vector<InferService::PoolUse> InferService::pools() const {
  std::vector<PoolUse> out;
  const std::shared_lock lock(gate_);
  if (!current_ || !current_->plane) return out;
  const auto& d = current_->plane->deployment();
  const auto c = current_->plane->counters();
  for (size_t p = 0; p < d.pipelines.size(); ++p)
    for (size_t k = 0; k < d.pipelines[p].partitions.size(); ++k)
      out.push_back({d.pipelines[p].partitions[k].role, c.pools[p][k]});
  return out;
}

Json InferService::status() const {
  const std::shared_lock lock(gate_);
  Json out = {{"state", stopping_                     ? "stopping"
                        : current_ && current_->plane ? "serving"
                                                      : "empty"},
              {"version", kVersion},
              {"time", utc_now_ms()},
              {"uptime_s", started_ns_ > 0 ? seconds_from_ns(live_now() - started_ns_) : 0.0},
              {"plans", generations_.load()},
              {"models", Json::array()},
              {"pools", Json::array()},
              {"classes", Json::array()}};
  if (more_status_) out.update(more_status_());
  if (!current_ || !current_->plane) return out;
  out["fleet"] = current_->fleet.name;
  out["planner"] = current_->plan.planner;
  const auto& d = current_->plane->deployment();
  const auto c = current_->plane->counters();
  const auto stands_for = models_of_plane(*current_);
  auto of_sessions = sessions();
  const double carried = carried_part();
  if (carried < 1) {
    out["devices_per_s"] = devices_rate();
    out["http_per_s"] = carried_per_s_.load();
  }
  for (size_t m = 0; m < current_->models.size(); ++m) {
    const auto& model = *current_->models[m];
    ModelSum sum;
    for (uint32_t b = 0; b < plane_models(model); ++b)
      sum.add(d.models[places_[m] + b], c.models[places_[m] + b]);
    const auto record = statistics(model.name);
    Json requests;
    for (size_t f = 1; f < kOutcomes; ++f)
      requests[outcome_name(static_cast<Outcome>(f))] = record.requests[f];
    out["models"].push_back({{"name", model.name},
                             {"version", model.version},
                             {"slo_us", model.slo_us},
                             {"rate_per_s", sum.rate_per_s * carried},
                             {"max_rows", model.max_rows},
                             {"note", model.note},
                             {"precision", model.precision},
                             {"requests", requests},
                             {"queued", sum.queued},
                             {"in_plane", sum.in_plane},
                             {"latency", latency_json(sum.latency)},
                             {"latency_ranges", ranges_json(sum.latency)},
                             {"queueing", latency_json(sum.queueing)},
                             {"batch_sizes", sum.batch_sizes}});
    auto& json = out["models"].back();
    if (model.state) json["sessions"] = sessions_json(of_sessions[model.name]);
    if (!model.varying) continue;
    json["buckets"] = buckets_json(model, record);
    json["padding"] = record.run_bytes > 0 ? 1 - static_cast<double>(record.input_bytes) /
                                                     static_cast<double>(record.run_bytes)
                                           : 0.0;
  }
  for (size_t p = 0; p < d.pipelines.size(); ++p)
    for (size_t k = 0; k < d.pipelines[p].partitions.size(); ++k) {
      const auto& pool = d.pipelines[p].partitions[k];
      const auto& use = c.pools[p][k];
      out["pools"].push_back({{"model", stands_for[d.pipelines[p].model].served->name},
                              {"bucket", stands_for[d.pipelines[p].model].bucket},
                              {"pipeline", p},
                              {"partition", k},
                              {"blocks", {pool.role.block_from, pool.role.block_to}},
                              {"class", pool.role.device_class},
                              {"share", pool.role.share},
                              {"batch", d.pipelines[p].batch},
                              {"devices", pool.num_devices},
                              {"running", use.running},
                              {"lost", use.lost},
                              {"use", pool.num_devices > 0 ? use.mean_running / pool.num_devices : 0},
                              {"runs", use.runs},
                              {"rows", use.rows},
                              {"busy_s", use.busy_s},
                              {"predicted_s", use.predicted_s}});
    }
  for (size_t i = 0; i < d.classes.size(); ++i)
    out["classes"].push_back({{"name", d.classes[i].name},
                              {"devices", d.classes[i].devices},
                              {"used", d.classes[i].used},
                              {"busy", c.classes[i].busy},
                              {"lost", c.classes[i].lost}});
  out["decision"] = latency_json(c.decision);
  out["faults"] = {{"devices_lost", c.losses},
                   {"given_up", c.given_up},
                   {"rerun_rows", c.rerun},
                   {"late_answers", c.late_answers},
                   {"overdue_requests", c.overdue}};
  return out;
}

}  // namespace heddle

#include "heddle/serve/local_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "adaptive_runner.h"
#include "heddle/base/log.h"
#include "heddle/base/spelling.h"
#include "heddle/cluster/variants.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/precision_error.h"
#include "heddle/runtime/run.h"
#include "local_plan.h"
#include "machine_watch.h"
#include "prepared_model.h"
#include "served_plan.h"

namespace heddle {
namespace {

constexpr size_t kMostWays = 16;     // to divide the cores that are planned for
constexpr size_t kMostCoreSets = 6;  // smaller than a device's, for which a model is compiled to adapt
constexpr size_t kMostJobs = 256;    // loads and unloads that wait; gRPC does not limit its calls

// A model of the repository, loaded or not.
struct Entry {
  ModelSource source;
  std::optional<PreparedModel> model;
  std::shared_ptr<const ServedPlan> plan;  // where the source is a plan file
  std::string reason;                      // why it is not loaded
  bool in_f32 = false;                     // although the devices have a narrower type
  std::string precision;                   // what the devices' type costs; empty: nothing

  bool loaded() const { return model || plan; }
};

// One device for whole models that take turns on it.
class SharedRunner final : public DeviceRunner {
 public:
  // [model], null where the model does not run here; at least one is not.
  explicit SharedRunner(std::vector<std::shared_ptr<DeviceRunner>> runners) : runners_(std::move(runners)) {}

  // The batch is of one model.
  Status run(std::span<LiveRequest* const> batch) override {
    return runners_[batch.front()->model]->run(batch);
  }
  std::vector<int> cores() const override {
    for (const auto& r : runners_)
      if (r) return r->cores();
    return {};
  }

 private:
  std::vector<std::shared_ptr<DeviceRunner>> runners_;
};

class Server final : public LocalServer {
 public:
  Server(InferService& service, LocalServerOptions options)
      : service_(service), options_(std::move(options)) {}

  ~Server() override {
    service_.set_repository({});
    stop();
    if (worker_.joinable()) worker_.join();
  }

  void stop() override {
    std::deque<Job> jobs;
    {
      const std::lock_guard lock(jobs_mutex_);
      quit_ = true;
      std::swap(jobs, jobs_);
    }
    jobs_changed_.notify_all();
    for (const auto& job : jobs) job.done(cancelled_error("the server is stopping"));
  }

  Status start(std::vector<ModelSource> sources) {
    const bool planned = sources.size() == 1 && !sources.front().plan.empty();
    if (!planned) {
      std::shared_ptr<const Cluster> machine = options_.cluster;
      if (machine == nullptr) {
        HEDDLE_ASSIGN_OR_RETURN(machine, discover_machine());
      }
      VariantSettings variants = options_.variants;
      variants.budget.reset();  // each model's own type is found out when it is loaded
      HEDDLE_ASSIGN_OR_RETURN(const auto cluster, choose_variants(machine, variants, options_.devices));
      HEDDLE_RETURN_IF_ERROR(choose_devices(*cluster));
    }
    for (auto& s : sources) {
      auto& entry = entries_[s.name];
      entry.source = std::move(s);
      HEDDLE_RETURN_IF_ERROR(prepare(entry));
    }
    HEDDLE_RETURN_IF_ERROR(cut_over());
    take_down();
    if (options_.progress) options_.progress->finish();
    options_.progress = nullptr;
    options_.deadline = {};
    worker_ = std::thread([this] { work(); });
    service_.set_repository({.load =
                                 [this](const auto& m, auto done) {
                                   put({m, true, std::move(done)});
                                 },
                             .unload =
                                 [this](const auto& m, auto done) {
                                   put({m, false, std::move(done)});
                                 },
                             .index = [this] { return index(); }});
    return {};
  }

  Status load(const std::string& model) override { return change(model, true); }
  Status unload(const std::string& model) override { return change(model, false); }

 private:
  struct Job {
    std::string model;
    bool load = false;
    InferService::Repository::OnDone done;
  };

  // The old model stays until the new one is ready.
  Status change(const std::string& model, bool load) {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(model);
    if (it == entries_.end()) return unknown(model);
    if (options_.on_ranks != nullptr)
      return unsupported(it->second.source.plan +
                         ": a plan on several ranks cannot be loaded or unloaded while "
                         "they serve; start the server again");
    if (!load && !it->second.loaded()) return {};
    Entry next;
    next.source = it->second.source;
    Status status;
    if (load)
      status = prepare(next);
    else
      next.reason = "unloaded";
    if (status.ok()) {
      std::swap(it->second, next);
      status = cut_over();
      if (!status.ok()) std::swap(it->second, next);
    } else if (!it->second.loaded()) {
      it->second.reason = status.error().to_string();
    }
    take_down();
    return status;
  }

  Error unknown(const std::string& model) const {
    std::vector<std::string> names;
    for (const auto& [name, e] : entries_) names.push_back(name);
    return not_found("the repository has no model '" + model.substr(0, 128) + "'" +
                     did_you_mean(model.substr(0, 128), names) + "; it has " + join_names(names, 40));
  }

  Status choose_devices(const Cluster& cluster) {
    std::vector<std::string> names;
    for (const auto& d : cluster.devices()) {
      const Backend* backend = find_backend(d.backend);
      if (backend != nullptr && !backend->computes()) continue;
      const auto name = hardware_name(d.name);
      names.push_back(name);
      machine_.push_back(d);
      const auto& only = options_.devices;
      if (only.empty() || std::find(only.begin(), only.end(), name) != only.end()) devices_.push_back(d);
    }
    for (const auto& wanted : options_.devices)
      if (std::find(names.begin(), names.end(), wanted) == names.end())
        return invalid_input("no device is named '" + wanted + "'" + did_you_mean(wanted, names) +
                             "; cluster '" + cluster.name() + "' has " + join_names(names, 40));
    if (machine_.empty())
      return invalid_input("no device of cluster '" + cluster.name() + "' computes: all are emulated");
    ways_ = ways_to_divide(devices_, kMostWays);
    if (ways_.empty())
      return invalid_input(
          "the devices do not divide the machine: expected core sets that cover all of the cores "
          "they name, each core once");
    return {};
  }

  void report(const std::string& what) const {
    log_line(LogLevel::kDebug, what);
    if (options_.progress) options_.progress->report({.what = what});
  }

  // A plan says where its model runs.
  Status prepare_plan(Entry& entry) {
    ServedPlanOptions options;
    options.in_flight = options_.in_flight;
    options.measure_s = options_.measure_s;
    options.deadline = options_.deadline;
    options.progress = options_.progress;
    options.on_ranks = options_.on_ranks;
    HEDDLE_ASSIGN_OR_RETURN(auto plan, open_served_plan(entry.source, options));
    entry.plan = std::make_shared<const ServedPlan>(std::move(plan));
    entry.reason.clear();
    return {};
  }

  // The device in the model's own type.
  static Device device_for(const Entry& entry, const Device& device) {
    return entry.in_f32 ? as_variant(device, {device.backend, Precision::kF32}) : device;
  }

  // Measures what the devices' type costs, and with a budget takes float32 if that is too much.
  Status choose_type(Entry& entry, const LocalModel& local) {
    Precision type = Precision::kF32;
    for (const auto& d : devices_)
      if (rounding_of(d.precision) > rounding_of(type)) type = d.precision;
    if (type == Precision::kF32) return {};
    report("measuring the error of " + std::string(precision_name(type)) + " in " + entry.source.name);
    const Model& model = *local.sizes.begin()->second;
    HEDDLE_ASSIGN_OR_RETURN(auto inputs, calibration_inputs(model, options_.calibration, entry.source.name));
    HEDDLE_ASSIGN_OR_RETURN(const Samples samples, with_references(model, std::move(inputs)));
    HEDDLE_ASSIGN_OR_RETURN(const OutputError cost, unsplit_error(model, type, samples, options_.decisions));
    const auto& budget = options_.variants.budget;
    entry.in_f32 = budget && !budget->allows(cost.agreement(), cost.mean());
    entry.precision =
        fmt::format("in {}{}: {:.4g} % of decisions as in f32, mean error {:.2g} of the range, on {} samples",
                    entry.in_f32 ? "f32, for the budget forbids " : "", precision_name(type),
                    100 * cost.agreement(), cost.mean(), cost.samples);
    return {};
  }

  // One device of each target, in the order of the ways.
  std::vector<Device> targets() const {
    std::vector<Device> out;
    for (const auto& set : ways_)
      for (const auto& d : set)
        if (std::ranges::find(out, d.target, &Device::target) == out.end()) out.push_back(d);
    return out;
  }

  // Loads a model, finds out how it is batched and measures it on one device of each target.
  Status prepare(Entry& entry) {
    if (!entry.source.plan.empty()) return prepare_plan(entry);
    report("loading " + entry.source.name);
    PrepareOptions options;
    options.targets = targets();
    options.measure_s = options_.measure_s;
    options.deadline = options_.deadline;
    options.report = [this](const std::string& what) { report(what); };
    options.choose_type = [this, &entry](const LocalModel& local) { return choose_type(entry, local); };
    options.in_type = [&entry](const Device& device) { return device_for(entry, device); };
    HEDDLE_ASSIGN_OR_RETURN(entry.model, prepare_model(entry.source, options));
    entry.model->served->precision = entry.precision;
    if (options_.choice == LocalChoice::kRate && entry.model->buckets.size() > 1)
      return invalid_input(entry.source.name +
                           ": a plan for the rate gives each model devices of its own, and buckets "
                           "share theirs; plan for goodput, or serve one bucket");
    entry.reason.clear();
    return {};
  }

  using Runner = std::shared_ptr<DeviceRunner>;

  // A bucket of the model on a device, for this turn there. What is compiled is kept between plans.
  Result<Runner> runner(Entry& entry, size_t bucket, const Device& device, int turn) {
    auto& of_bucket = entry.model->buckets[bucket];
    Runner& kept = of_bucket.runners[device.name + "#" + std::to_string(turn)];
    if (!kept) {
      report("compiling " + of_bucket.model->served.name + " for " + device.name);
      HEDDLE_ASSIGN_OR_RETURN(kept, entry.model->compile(bucket, device_for(entry, device)));
    }
    return kept;
  }

  // The same, which adapts: with the sets of the device's cores that this machine has, larger ones first.
  Result<Runner> adaptive_runner(Entry& entry, size_t bucket, const Device& device, int turn) {
    HEDDLE_ASSIGN_OR_RETURN(Runner whole, runner(entry, bucket, device, turn));
    std::vector<Device> smaller;
    for (const Device& d : machine_)
      if (!d.cores.empty() && d.cores.size() < device.cores.size() && d.backend == device.backend &&
          std::ranges::includes(device.cores, d.cores))
        smaller.push_back(d);
    if (smaller.empty()) return whole;
    std::ranges::stable_sort(smaller, std::ranges::greater(), [](const Device& d) { return d.cores.size(); });
    if (smaller.size() > kMostCoreSets) smaller.resize(kMostCoreSets);
    Runner& kept = entry.model->buckets[bucket].adaptive[device.name + "#" + std::to_string(turn)];
    if (kept) return kept;
    std::vector<Runner> runners = {std::move(whole)};
    for (const Device& d : smaller) {
      HEDDLE_ASSIGN_OR_RETURN(runners.emplace_back(), runner(entry, bucket, d, turn));
    }
    kept = std::make_shared<AdaptiveRunner>(std::move(runners));
    return kept;
  }

  // Plans for what is loaded and puts it to work. What is compiled for a device that it keeps stays.
  Status cut_over() {
    struct Place {
      Entry* entry;
      size_t bucket;
    };
    std::vector<Place> places;  // [the plane's model]
    std::vector<std::shared_ptr<const LocalModel>> models;
    std::vector<std::vector<LocalTimes>> times;
    bool any = false;
    for (auto& [name, e] : entries_) {
      any |= e.loaded();
      if (!e.model) continue;
      for (size_t b = 0; b < e.model->buckets.size(); ++b) {
        places.push_back({&e, b});
        models.push_back(e.model->buckets[b].model);
        times.push_back(e.model->buckets[b].times);
      }
    }
    auto next = std::make_unique<Generation>();
    if (!any) {
      return put_to_work(std::move(next));
    }
    if (const auto& only = entries_.begin()->second; only.plan) return cut_over_to(*only.plan);
    report("planning");
    HEDDLE_ASSIGN_OR_RETURN(auto local, plan_locally(models, times, ways_, options_));
    // Models may take turns on a device.
    std::vector<std::vector<std::shared_ptr<DeviceRunner>>> by_model(
        local.device_of.size(), std::vector<std::shared_ptr<DeviceRunner>>(models.size()));
    std::map<std::pair<uint32_t, std::string>, int> turns;
    for (const auto& p : local.deployment.pipelines) {
      const auto [entry, bucket] = places[p.model];
      const auto& pool = p.partitions.front();
      for (uint32_t v = pool.first_device; v < pool.first_device + pool.num_devices; ++v) {
        const auto& device = local.device_of[v];
        // Models that share all cores may get several turns there: each is a runner of its own.
        const int turn = turns[{p.model, device.name}]++;
        HEDDLE_ASSIGN_OR_RETURN(by_model[v][p.model], options_.adapt
                                                          ? adaptive_runner(*entry, bucket, device, turn)
                                                          : runner(*entry, bucket, device, turn));
      }
    }
    std::vector<std::shared_ptr<DeviceRunner>> runners;
    for (auto& on_device : by_model) runners.push_back(std::make_shared<SharedRunner>(std::move(on_device)));
    for (const auto& [name, e] : entries_) {
      if (!e.model) continue;
      auto served = std::make_shared<ServedModel>(*e.model->served);
      if (!local.reason.empty()) served->note += (served->note.empty() ? "" : "; ") + local.reason;
      next->models.push_back(std::move(served));
    }
    next->fleet = std::move(local.fleet);
    next->plan = std::move(local.plan);
    HEDDLE_ASSIGN_OR_RETURN(
        next->plane, LivePlane::create(std::move(local.deployment), options_.plane, std::move(runners)));
    return put_to_work(std::move(next));
  }

  Status put_to_work(std::unique_ptr<Generation> next) {
    return service_.serve(std::move(next)) ? Status() : cancelled_error("the server is stopping");
  }

  Status cut_over_to(const ServedPlan& plan) {
    auto next = std::make_unique<Generation>();
    next->fleet.name = plan.cluster;
    next->plan.planner = plan.planner;
    next->models.emplace_back(plan.model, &plan.model->served);
    HEDDLE_ASSIGN_OR_RETURN(next->plane,
                            LivePlane::create(plan.deployment, options_.plane, plan_runners(plan)));
    return put_to_work(std::move(next));
  }

  // The answer of index(), which must not wait for a load.
  void take_down() {
    std::vector<InferService::Repository::Entry> out;
    for (const auto& [name, e] : entries_)
      out.push_back({name, e.source.version, e.loaded() ? "READY" : "UNAVAILABLE", e.reason});
    const std::lock_guard lock(jobs_mutex_);
    index_ = std::move(out);
  }

  std::vector<InferService::Repository::Entry> index() {
    const std::lock_guard lock(jobs_mutex_);
    return index_;
  }

  void put(Job job) {
    const char* why = "the server is stopping";
    {
      const std::lock_guard lock(jobs_mutex_);
      if (!quit_ && jobs_.size() < kMostJobs) {
        jobs_.push_back(std::move(job));
        return jobs_changed_.notify_one();
      }
      if (!quit_) why = "too many loads and unloads wait; try again later";
    }
    job.done(cancelled_error(why));
  }

  // Loads and unloads on a thread of its own: they take seconds. In between it looks at the machine.
  void work() {
    const auto every = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(options_.watch_every_s));
    std::unique_lock lock(jobs_mutex_);
    while (!quit_) {
      if (jobs_.empty()) {
        if (jobs_changed_.wait_for(lock, every) == std::cv_status::no_timeout) continue;
        lock.unlock();
        for (const auto& line : watch_.look(reading())) log_line(LogLevel::kWarning, line);
        lock.lock();
        continue;
      }
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job.done(change(job.model, job.load));
      lock.lock();
    }
  }

  WatchReading reading() const {
    WatchReading now{.now_s = seconds_from_ns(live_now()), .cores = core_use(), .models = {}};
    for (const auto& pool : service_.pools()) {
      ModelRuns& model = now.models[pool.role.model];
      model.runs += pool.counters.runs;
      model.busy_s += pool.counters.busy_s;
      model.predicted_s += pool.counters.predicted_s;
    }
    return now;
  }

  InferService& service_;
  LocalServerOptions options_;
  std::vector<Device> machine_, devices_;  // all; those that may be used
  std::vector<DeviceSet> ways_;
  std::mutex mutex_;  // guards entries_
  std::map<std::string, Entry> entries_;
  std::mutex jobs_mutex_;  // guards what follows
  std::condition_variable jobs_changed_;
  std::deque<Job> jobs_;
  std::vector<InferService::Repository::Entry> index_;
  bool quit_ = false;
  MachineWatch watch_;  // worker_'s alone
  std::thread worker_;
};

}  // namespace

Result<std::unique_ptr<LocalServer>> LocalServer::create(InferService& service,
                                                         std::vector<ModelSource> sources,
                                                         const LocalServerOptions& options) {
  auto server = std::make_unique<Server>(service, options);
  HEDDLE_RETURN_IF_ERROR(server->start(std::move(sources)));
  return std::unique_ptr<LocalServer>(std::move(server));
}

}  // namespace heddle

#include "heddle/runtime/segment_measurer.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "heddle/base/log.h"
#include "heddle/base/quantiles.h"
#include "heddle/base/stopwatch.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/core_wait.h"
#include "heddle/runtime/device_shares.h"
#include "heddle/runtime/stream_runtime.h"
#include "run/sampling.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

constexpr int kAtOnceWarmups = 3;

class ProbeMeasurer final : public SegmentMeasurer {
 public:
  ProbeMeasurer(std::shared_ptr<const Model> model, const MeasureOptions& options,
                const MeasureConditions& conditions)
      : model_(std::move(model)), options_(options), conditions_(conditions) {}

  MeasureConditions conditions() const override { return conditions_; }

  bool supports(const Device& device) const override {
    const Backend* backend = find_backend(device.backend);
    if (model_ == nullptr || backend == nullptr || !backend->computes()) return false;
    if (!check_precision(device).ok()) return false;
    if (!check_cores(device.cores, device.name).ok() || conditions_.share > most_shares(device)) return false;
    return !conditions_.host_access || reads_host_memory(device);
  }

  Result<Measurement> measure(std::span<const OpId> finest_ops, const Device& device,
                              const Deadline& deadline) override {
    std::vector<std::unique_ptr<SegmentProbe>> probes;
    for (int i = 0; i < conditions_.share; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(
          probes.emplace_back(),
          SegmentProbe::make(model_, finest_ops, device_part(device, i, conditions_.share),
                             conditions_.host_access));
    }
    if (probes.size() == 1) return measure_alone(*probes.front(), device, deadline);
    return time_at_once(probes, options_.min_s, options_.min_runs, deadline);
  }

 private:
  Result<Measurement> measure_alone(SegmentProbe& probe, const Device& device,
                                    const Deadline& deadline) const {
    HEDDLE_ASSIGN_OR_RETURN(Measurement measured, probe.sample(options_, deadline));
    if (conditions_.core_taken && !device.cores.empty()) {
      const Stopwatch since;
      HEDDLE_RETURN_IF_ERROR(probe.sample_core_taken(measured, deadline));
      log_debug([&] {
        return fmt::format("{}: {:.2f} times as slow while a core is taken, measured in {:.2f} s",
                           device.name, measured.core_taken, since.seconds());
      });
    }
    return measured;
  }
  bool reads_host_memory(const Device& device) const {
    if (device.kind == DeviceKind::kCpu) return false;
    const auto [it, fresh] = reads_host_.try_emplace(device.name, false);
    if (fresh) {
      const auto opened = open_device(device);
      StreamRuntime* runtime = opened.ok() ? (*opened)->stream_runtime() : nullptr;
      it->second = runtime != nullptr && runtime->properties().mapped_memory;
    }
    return it->second;
  }

  std::shared_ptr<const Model> model_;
  MeasureOptions options_;
  MeasureConditions conditions_;
  mutable std::map<std::string, bool> reads_host_;  // by device
};

}  // namespace

std::unique_ptr<SegmentMeasurer> make_segment_measurer(std::shared_ptr<const Model> model,
                                                       const MeasureOptions& options,
                                                       const MeasureConditions& conditions) {
  return std::make_unique<ProbeMeasurer>(std::move(model), options, conditions);
}

Result<Measurement> time_at_once(std::span<const std::unique_ptr<SegmentProbe>> probes, double min_s,
                                 int least_runs, const Deadline& deadline) {
  const size_t n = probes.size();
  std::atomic<int> round{0}, done{0};
  std::atomic<bool> quit{false};
  std::vector<Status> status(n);
  std::vector<std::thread> threads;
  const auto run = [&](size_t i) {
    if (status[i].ok()) status[i] = probes[i]->run_once();
  };
  for (size_t i = 1; i < n; ++i) {
    threads.emplace_back([&, i] {
      const AffinityGuard bound(probes[i]->cores());
      for (int seen = 0;;) {
        while (round.load(std::memory_order_acquire) == seen) {
          if (quit.load(std::memory_order_acquire)) return;
          relax_cpu();
        }
        ++seen;
        run(i);
        done.fetch_add(1, std::memory_order_acq_rel);
      }
    });
  }
  std::vector<double> times;
  CoreWait wait;
  {
    const AffinityGuard bound(probes[0]->cores());
    const int64_t begin = now_ns();
    wait.resume();
    for (int k = 0; n > 0; ++k) {
      const bool enough = static_cast<int>(times.size()) >= least_runs &&
                          static_cast<double>(now_ns() - begin) * 1e-9 >= min_s;
      if (enough || deadline.should_stop()) break;
      for (const auto& probe : probes) probe->prepare();
      done.store(0, std::memory_order_release);
      const int64_t start = now_ns();
      round.fetch_add(1, std::memory_order_acq_rel);
      run(0);
      while (done.load(std::memory_order_acquire) + 1 < static_cast<int>(n)) relax_cpu();
      if (k >= kAtOnceWarmups) times.push_back(static_cast<double>(now_ns() - start) / 1000);
    }
    wait.pause();
  }
  quit.store(true, std::memory_order_release);
  for (std::thread& t : threads) t.join();
  for (Status& s : status) HEDDLE_RETURN_IF_ERROR(s);
  if (static_cast<int>(times.size()) < std::max(1, least_runs))
    return cancelled_error("stopped before segments were measured at once");
  return Measurement{.median_us = median_us(times),
                     .rel_spread = std::max(relative_spread(times), wait.share()),
                     .runs = static_cast<int>(times.size())};
}

}  // namespace heddle

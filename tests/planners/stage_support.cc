#include "stage_support.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

namespace heddle::test {

StageInstance random_stages(Random& random, const RandomStages& o) {
  StageInput in;
  in.ops = o.ops;
  in.devices = o.devices;
  in.width = o.width;
  const auto number = [&](double low, double high) {
    const double x = random.uniform(low, high);
    return o.whole ? static_cast<double>(static_cast<int64_t>(x)) : x;
  };
  for (size_t v = 0; v < o.ops; ++v) {
    const double us = number(o.whole ? 0 : 1, 40), u = random.uniform(0.4, 1);
    const size_t sure = random.below(o.devices);
    for (size_t d = 0; d < o.devices; ++d) {
      const bool runs = !o.unequal || d == sure || random.chance(0.8);
      in.us.push_back(!runs ? kNoTime : o.unequal ? number(1, 40) : us);
      in.utilization.push_back(o.unequal ? random.unit() : u);
    }
  }
  for (size_t d = 0; d < o.devices && o.unequal; ++d)
    in.sharing.push_back({random.uniform(0.2, 0.7), random.uniform(0.2, 0.7), random.uniform(0, 2)});
  for (uint32_t a = 0; a < o.ops; ++a) {
    for (uint32_t b = a + 1; b < o.ops; ++b) {
      if (random.chance(o.density)) in.edges.push_back({a, b, number(0, 30)});
    }
  }
  for (size_t i = 0; i < o.devices * o.devices; ++i) {
    in.latency_us.push_back(o.unequal ? number(0, 5) : 0);
    in.us_per_byte.push_back(o.unequal ? random.uniform(0.2, 2) : 1);
  }
  return StageInstance(std::move(in));
}

double least_work_us(const StageInstance& instance, size_t op, size_t device) {
  const double us = instance.us(op, device);
  if (us == kNoTime || instance.width() == 1) return us;
  return instance.sharing(device).least_us({us, instance.busy_us(op, device)});
}

StageBound bound_of(const StageInstance& instance, double upper_us) {
  const size_t k = instance.num_devices();
  StageNet net(instance.num_ops(), k);
  for (uint32_t v = 0; v < instance.num_ops(); ++v) {
    for (size_t d = 0; d < k; ++d) {
      net.us[v] = std::min(net.us[v], instance.us(v, d));
      net.work[v] = std::min(net.work[v], least_work_us(instance, v, d));
    }
    for (const auto& in : instance.inputs(v)) {
      double least = kNoTime;
      for (size_t a = 0; a < k; ++a) {
        for (size_t b = 0; b < k; ++b) {
          if (a != b) least = std::min(least, instance.transfer_us(in.bytes, a, b));
        }
      }
      net.add_edge(in.op, v, least);
    }
  }
  net.finish();
  return stage_bound(net, upper_us, {});
}

StageSchedule random_schedule(Random& random, const StageInstance& instance) {
  StageSchedule s;
  s.devices.resize(instance.num_devices());
  std::vector<uint32_t> waiting(instance.num_ops()), ready;
  // Stages and ops are opened in one global order; an op may join the last stage of a device when all its
  // inputs come from stages opened before that one.
  std::vector<size_t> opened(instance.num_ops(), 0), last_opened(instance.num_devices(), 0);
  size_t clock = 0;
  for (uint32_t v = 0; v < instance.num_ops(); ++v) {
    waiting[v] = static_cast<uint32_t>(instance.inputs(v).size());
    if (waiting[v] == 0) ready.push_back(v);
  }
  while (!ready.empty()) {
    std::swap(ready[random.below(ready.size())], ready.back());
    const uint32_t v = ready.back();
    ready.pop_back();
    size_t d = random.below(instance.num_devices());
    while (instance.us(v, d) == kNoTime) d = random.below(instance.num_devices());
    auto& stages = s.devices[d];
    bool may_join = !stages.empty() && stages.back().size() < instance.width();
    for (const auto& in : instance.inputs(v)) may_join = may_join && opened[in.op] < last_opened[d];
    if (may_join && random.chance(0.6)) {
      stages.back().push_back(v);
    } else {
      stages.push_back({v});
      last_opened[d] = ++clock;
    }
    opened[v] = last_opened[d];
    for (const auto& out : instance.outputs(v)) {
      if (--waiting[out.op] == 0) ready.push_back(out.op);
    }
  }
  return s;
}

std::optional<StageInstance> hios_sim(int seed, size_t devices, bool by_source) {
  const char* shared = std::getenv("HEDDLE_SHARED");
  if (shared == nullptr) return std::nullopt;
  std::ifstream file(std::string(shared) + "/data/hios/sim/sim_" + std::to_string(seed) + ".json");
  if (!file) return std::nullopt;
  const auto json = nlohmann::json::parse(file);
  StageInput in;
  in.ops = json["nodes"].size();
  in.devices = devices;
  for (const auto& node : json["nodes"]) {
    for (size_t d = 0; d < devices; ++d) {
      in.us.push_back(node["time_ms"].get<double>() * 1e3);
      in.utilization.push_back(node["gpu_utilization"].get<double>());
    }
  }
  for (const auto& edge : json["edges"]) {
    in.edges.push_back({edge["src"].get<uint32_t>(), edge["dst"].get<uint32_t>(),
                        edge[by_source ? "transfer_ms" : "transfer_ms_code"].get<double>() * 1e3});
  }
  in.latency_us.assign(devices * devices, 0);
  in.us_per_byte.assign(devices * devices, 1);
  return StageInstance(std::move(in));
}

namespace {

// Builds schedules stage by stage: each op, in a topological order of the graph, goes into any stage or slot
// of any device; every complete arrangement is timed and those that deadlock are dropped.
class Trier {
 public:
  explicit Trier(const StageInstance& instance) : instance_(instance) {
    schedule_.devices.resize(instance.num_devices());
  }
  double run() {
    place(0);
    return best_;
  }

 private:
  void place(size_t i) {
    if (i == instance_.num_ops()) {
      const auto timing = time_stages(instance_, schedule_);
      if (timing.ok()) best_ = std::min(best_, timing->makespan_us);
      return;
    }
    const uint32_t v = instance_.topological()[i];
    for (size_t d = 0; d < schedule_.devices.size(); ++d) {
      if (instance_.us(v, d) == kNoTime) continue;
      auto& stages = schedule_.devices[d];
      for (size_t s = 0; s <= stages.size(); ++s) {
        stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(s), Stage{v});
        place(i + 1);
        stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(s));
      }
      for (size_t s = 0; s < stages.size(); ++s) {
        if (stages[s].size() >= instance_.width()) continue;
        stages[s].push_back(v);
        place(i + 1);
        stages[s].pop_back();
      }
    }
  }

  const StageInstance& instance_;
  StageSchedule schedule_;
  double best_ = kNoTime;
};

}  // namespace

double brute_force_stages(const StageInstance& instance) { return Trier(instance).run(); }

}  // namespace heddle::test

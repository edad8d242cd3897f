#include "heddle/cost/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace heddle {
namespace {

class GivenModel final : public CostModel {
 public:
  std::optional<Cost> segment(const Graph& graph, std::span<const OpId> ops, const Device& device,
                              const CostContext& context) const override {
    Cost sum{.us = 0, .origin = Origin::kGiven, .rel_spread = 0};
    for (OpId op : ops) {
      const auto us = given_us(graph.op(op), device);
      if (!us) return std::nullopt;
      sum.us += *us;
    }
    if (context.share < 1) {
      sum.us /= context.share;
      sum.origin = Origin::kScaled;
    }
    return sum;
  }

 private:
  // A time given for exactly this class already includes its speed; a time for "*" is at speed 1.
  static std::optional<double> given_us(const Op& op, const Device& device) {
    std::optional<double> any;
    for (const GivenTime& t : op.given_times) {
      if (t.device_class == device.device_class) return t.us;
      if (t.device_class == "*" && !any) any = t.us / device.speed;
    }
    return any;
  }
};

class FirstOf final : public CostModel {
 public:
  explicit FirstOf(std::vector<std::shared_ptr<const CostModel>> models) : models_(std::move(models)) {}
  std::optional<Cost> segment(const Graph& graph, std::span<const OpId> ops, const Device& device,
                              const CostContext& context) const override {
    for (const auto& model : models_) {
      if (auto cost = model->segment(graph, ops, device, context)) return cost;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::shared_ptr<const CostModel>> models_;
};

class ScaledModel final : public CostModel {
 public:
  ScaledModel(std::shared_ptr<const CostModel> measured, Device from)
      : measured_(std::move(measured)), from_(std::move(from)), roofline_(roofline_cost_model()) {}

  std::optional<Cost> segment(const Graph& graph, std::span<const OpId> ops, const Device& device,
                              const CostContext& context) const override {
    const auto there = roofline_->segment(graph, ops, device, context);
    const auto here = roofline_->segment(graph, ops, from_, context);
    if (!there || !here || !std::isfinite(there->us) || !(here->us > 0)) return std::nullopt;
    auto cost = measured_->segment(graph, ops, from_, context);
    if (!cost || !std::isfinite(cost->us)) return std::nullopt;
    cost->us *= there->us / here->us;
    cost->origin = std::max(cost->origin, Origin::kScaled);
    return cost;
  }

 private:
  std::shared_ptr<const CostModel> measured_;
  Device from_;
  std::unique_ptr<CostModel> roofline_;
};

// Devices that no model can distinguish share one evaluation: 100 equal GPUs cost as much time as one.
using DeviceKey = std::tuple<DeviceKind, std::string, std::string, double, double, double, double>;
DeviceKey key_of(const Device& d) {
  return {d.kind, d.device_class, d.target, d.peak_flops, d.memory_bytes_per_s, d.op_overhead_us, d.speed};
}

std::string classes_of(const Cluster& cluster) {
  std::vector<std::string> classes;
  for (const Device& d : cluster.devices()) {
    const std::string name = "'" + d.device_class + "'";
    if (std::find(classes.begin(), classes.end(), name) == classes.end() && classes.size() < 8)
      classes.push_back(name);
  }
  return fmt::format("{}", fmt::join(classes, ", "));
}

}  // namespace

std::unique_ptr<CostModel> given_cost_model() { return std::make_unique<GivenModel>(); }

std::unique_ptr<CostModel> first_of(std::vector<std::shared_ptr<const CostModel>> models) {
  return std::make_unique<FirstOf>(std::move(models));
}

std::unique_ptr<CostModel> scaled_cost_model(std::shared_ptr<const CostModel> measured, Device from) {
  return std::make_unique<ScaledModel>(std::move(measured), std::move(from));
}

Result<CostTable> build_cost_table(const Graph& graph, const Cluster& cluster, const CostModel& model,
                                   const CostContext& context) {
  if (context.batch < 1 || !(context.share > 0) || context.share > 1) {
    return invalid_input(
        fmt::format("batch {} and share {} are out of range; expected a batch of at least 1 "
                    "and a share above 0 and at most 1",
                    context.batch, context.share));
  }
  std::vector<size_t> same_as(cluster.num_devices());  // first device with equal costs
  std::map<DeviceKey, size_t> first;
  for (size_t d = 0; d < same_as.size(); ++d)
    same_as[d] = first.emplace(key_of(cluster.devices()[d]), d).first->second;

  CostTable table(graph.num_ops(), cluster.num_devices());
  for (size_t i = 0; i < graph.num_ops(); ++i) {
    const OpId op(i);
    bool possible = false;
    for (size_t d = 0; d < same_as.size(); ++d) {
      if (same_as[d] != d) {
        table.set(op, DeviceId(d), table.at(op, DeviceId(same_as[d])));
        continue;
      }
      const auto cost = model.segment(graph, std::span(&op, 1), cluster.devices()[d], context);
      if (!cost) continue;
      table.set(op, DeviceId(d), *cost);
      possible = possible || std::isfinite(cost->us);
    }
    if (!possible) {
      return infeasible(fmt::format(
          "no time is known for the op '{}' ({}) on any device of '{}' (classes {}); profile it there, "
          "give the devices peak rates, or give the op a time for one of the classes",
          graph.op(op).name, graph.op(op).type, cluster.name(), classes_of(cluster)));
    }
  }
  return table;
}

}  // namespace heddle

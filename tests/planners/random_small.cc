#include "random_small.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "heddle/graph/analysis.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"

namespace heddle::test {
namespace {

// Assignments times orders that a problem may have.
constexpr int64_t kMostPlans = 300;

std::shared_ptr<const Graph> random_graph(Random& random, int ops, double edges) {
  GraphBuilder builder("small");
  const TensorId in = builder.add_input("in", DType::kU8, {4});
  const ParamId shared = builder.add_param({"shared", random.between(1, 20)});
  std::vector<std::vector<TensorId>> made;
  for (int v = 0; v < ops; ++v) {
    Op op;
    op.name = "op" + std::to_string(v);
    op.type = "Test";
    if (random.chance(0.6))
      op.params.push_back(builder.add_param({"w" + std::to_string(v), random.between(0, 30)}));
    if (random.chance(0.15)) op.params.push_back(shared);
    for (const auto& tensors : made) {
      if (random.chance(edges)) op.inputs.push_back(tensors[random.below(tensors.size())]);
    }
    if (op.inputs.empty()) op.inputs.push_back(in);
    std::vector<Tensor> outputs(random.chance(0.2) ? 2 : 1);
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].name = op.name + "." + std::to_string(i);
      outputs[i].dtype = DType::kU8;
      outputs[i].shape = {random.chance(0.1) ? 0 : random.between(1, 40)};
    }
    const OpId id = builder.add_op(std::move(op), std::move(outputs));
    const auto out = builder.outputs_of(id);
    made.emplace_back(out.begin(), out.end());
  }
  builder.add_output(made.back()[0]);
  return must(builder.build());
}

Link random_link(Random& random, const std::string& name, NodeId a, NodeId b, BusId bus) {
  Link link;
  link.name = name;
  link.a = a;
  link.b = b;
  link.bytes_per_s = random.chance(0.5) ? 1e6 * static_cast<double>(random.between(1, 8)) : 1e8;
  link.latency_us = random.chance(0.5) ? 0 : random.uniform(0, 4);
  link.duplex = random.chance(0.5) ? Duplex::kFull : Duplex::kHalf;
  link.bus = bus;
  return link;
}

std::shared_ptr<const Cluster> random_cluster(Random& random, int devices) {
  ClusterBuilder builder("small");
  const int64_t host_memory = random.chance(0.15) ? random.between(100, 300) : 0;
  const HostId host = builder.add_host({.name = "h", .memory_bytes = host_memory});
  BusId bus;
  if (random.chance(0.5))
    bus = builder.add_bus(
        {"root", random.chance(0.5) ? 0 : 2e6, random.chance(0.6) ? Duplex::kHalf : Duplex::kFull});
  std::vector<NodeId> gpus;
  for (int i = 0; i < devices; ++i) {
    Device d;
    d.name = "d" + std::to_string(i);
    d.device_class = d.name;
    d.host = host;
    if (random.chance(0.3)) {
      d.kind = DeviceKind::kCpu;
      for (int c = 0; c < 3; ++c) {
        if (random.chance(0.5)) d.cores.push_back(c);
      }
      if (d.cores.empty()) d.cores.push_back(i);
      builder.add_device(d);
      continue;
    }
    d.copy_engines = static_cast<int>(random.below(3));
    d.memory_bytes = random.chance(0.3) ? random.between(60, 250) : 0;
    const DeviceId id = builder.add_device(d);
    const NodeId node = builder.device_node(id);
    builder.add_link(random_link(random, "pcie" + std::to_string(i), builder.host_node(host), node, bus));
    for (size_t j = 0; j < gpus.size(); ++j) {
      if (random.chance(0.3))
        builder.add_link(
            random_link(random, "p2p" + std::to_string(i) + std::to_string(j), gpus[j], node, {}));
    }
    gpus.push_back(node);
  }
  return must(builder.build());
}

// How many topological orders there are, up to `most`.
int64_t count_orders(const Graph& graph, std::vector<uint8_t>& placed, size_t left, int64_t most) {
  if (left == 0) return 1;
  int64_t count = 0;
  for (size_t v = 0; v < placed.size() && count < most; ++v) {
    const auto before = graph.predecessors(OpId(v));
    const bool ready = std::all_of(before.begin(), before.end(), [&](OpId u) { return placed[u.index()]; });
    if (placed[v] || !ready) continue;
    placed[v] = 1;
    count += count_orders(graph, placed, left - 1, most - count);
    placed[v] = 0;
  }
  return count;
}

void add_segments(Random& random, const Graph& graph, CostTable& costs) {
  for (int i = 0; i < 2; ++i) {
    if (!random.chance(0.4)) continue;
    const OpId v(random.below(graph.num_ops()));
    const auto after = graph.successors(v);
    const DeviceId d(random.below(costs.num_devices()));
    if (after.empty()) continue;
    std::vector<OpId> ops{v, after[random.below(after.size())]};
    std::sort(ops.begin(), ops.end());
    if (!is_convex(graph, ops)) continue;
    const double sum = costs.us(ops[0], d) + costs.us(ops[1], d);
    if (!(sum < kImpossible)) continue;
    costs.set_segment({ops, d, {sum * random.uniform(0.3, 1.2), Origin::kMeasured, 0}});
  }
}

class AllPlans {
 public:
  AllPlans(const Problem& problem, int64_t& plans) : p_(problem), evaluator_(problem), plans_(plans) {
    a_.device.resize(problem.graph->num_ops());
    for (const SegmentCost& s : problem.costs->segments()) {
      if (s.ops.size() > 1) known_.push_back(&s);
    }
  }
  double run() {
    assign(0);
    return best_;
  }

 private:
  void assign(size_t v) {
    if (v == a_.device.size()) return segment();
    for (const DeviceId d : p_.usable_devices()) {
      if (!(p_.costs->us(OpId(v), d) < kImpossible)) continue;
      a_.device[v] = d;
      assign(v + 1);
    }
  }
  void segment() {
    for (unsigned chosen = 0; chosen < 1U << known_.size(); ++chosen) {
      std::vector<int> number(a_.device.size());
      for (size_t v = 0; v < number.size(); ++v) number[v] = static_cast<int>(v);
      bool fits = true;
      std::vector<uint8_t> used(number.size(), 0);
      for (size_t s = 0; s < known_.size(); ++s) {
        if (!(chosen >> s & 1)) continue;
        for (const OpId v : known_[s]->ops) {
          fits = fits && a_.device[v.index()] == known_[s]->device && !used[v.index()];
          used[v.index()] = 1;
          number[v.index()] = -1 - static_cast<int>(s);
        }
      }
      if (!fits) continue;
      a_.segment = chosen == 0 ? std::vector<int>() : number;
      placed_.assign(number.size(), 0);
      a_.order.clear();
      extend();
    }
  }
  void extend() {
    if (a_.order.size() == placed_.size()) return try_it();
    for (size_t v = 0; v < placed_.size(); ++v) {
      const auto before = p_.graph->predecessors(OpId(v));
      const bool ready =
          std::all_of(before.begin(), before.end(), [&](OpId u) { return placed_[u.index()]; });
      if (placed_[v] || !ready) continue;
      placed_[v] = 1;
      a_.order.emplace_back(v);
      extend();
      a_.order.pop_back();
      placed_[v] = 0;
      // The period does not depend on the order.
      if (p_.objective == Objective::kThroughput) return;
    }
  }
  void try_it() {
    ++plans_;
    const auto plan = build_plan(p_, a_);
    if (!plan.ok() || !evaluator_.evaluate(*plan, {.critical = false, .resources = false}, timeline_).ok())
      return;
    if (!(objective_us(p_, timeline_) < best_)) return;
    const auto whole = evaluator_.evaluate(*plan);
    if (whole.ok() && check(p_, *plan, *whole).ok()) best_ = objective_us(p_, *whole);
  }

  const Problem& p_;
  Evaluator evaluator_;
  int64_t& plans_;
  std::vector<const SegmentCost*> known_;
  Assignment a_;
  std::vector<uint8_t> placed_;
  Timeline timeline_;
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Problem random_small_problem(Random& random, Objective objective) {
  while (true) {
    const auto ops = static_cast<int>(random.between(2, 7)), devices = static_cast<int>(random.between(1, 4));
    Problem p;
    p.graph = random_graph(random, ops, random.uniform(0.1, 0.9));
    std::vector<uint8_t> placed(p.graph->num_ops(), 0);
    int64_t plans =
        objective == Objective::kThroughput ? 1 : count_orders(*p.graph, placed, placed.size(), kMostPlans);
    for (int v = 0; v < ops && plans <= kMostPlans; ++v) plans *= devices;
    if (plans > kMostPlans) continue;
    p.cluster = random_cluster(random, devices);
    auto costs = std::make_shared<CostTable>(p.graph->num_ops(), p.cluster->num_devices());
    const size_t able = random.below(static_cast<uint64_t>(devices));
    const bool unequal = random.chance(0.7);
    for (size_t v = 0; v < p.graph->num_ops(); ++v) {
      const double base = random.chance(0.05) ? 0 : random.uniform(1, 20);
      for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
        if (d != able && random.chance(0.1)) continue;
        costs->set(OpId(v), DeviceId(d), {unequal ? base * random.uniform(0.3, 3) : base, Origin::kGiven, 0});
      }
    }
    add_segments(random, *p.graph, *costs);
    p.costs = std::move(costs);
    p.objective = objective;
    p.execution = {random.chance(0.7), random.chance(0.6)};
    for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
      if (d == able || random.chance(0.9)) p.devices.emplace_back(d);
    }
    if (validate(p).ok()) return p;
  }
}

double best_of_all_plans(const Problem& problem, int64_t& plans) { return AllPlans(problem, plans).run(); }

}  // namespace heddle::test

#include "plan_support.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

namespace heddle::test {
namespace {

template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "test set-up: %s\n", result.error().to_string().c_str());
    std::abort();
  }
  return std::move(result).value();
}

Tensor bytes_tensor(std::string name, int64_t bytes) {
  return {.name = std::move(name),
          .dtype = DType::kU8,
          .shape = {bytes},
          .bytes = 0,
          .producer = {},
          .consumers = {}};
}

}  // namespace

std::shared_ptr<const Graph> make_graph(const std::vector<OpSpec>& specs) {
  GraphBuilder builder("test");
  std::map<std::string, TensorId> made;
  std::map<std::string, ParamId> params;
  for (const OpSpec& spec : specs) {
    Op op;
    op.name = spec.name;
    op.type = "Test";
    for (const std::string& input : spec.inputs) {
      if (!made.count(input)) made[input] = builder.add_input(input, DType::kU8, {8});
      op.inputs.push_back(made[input]);
    }
    for (const auto& [name, bytes] : spec.params) {
      if (!params.count(name)) params[name] = builder.add_param({name, bytes});
      op.params.push_back(params[name]);
    }
    const OpId id = builder.add_op(std::move(op), {bytes_tensor(spec.name + ".out", spec.bytes)});
    made[spec.name] = builder.outputs_of(id)[0];
    if (spec.is_output) builder.add_output(made[spec.name]);
  }
  return must(builder.build());
}

std::shared_ptr<const Cluster> make_gpu_cluster(int gpus, int engines, bool with_bus, int64_t memory) {
  ClusterBuilder builder("gpus");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 0});
  BusId bus;
  if (with_bus) bus = builder.add_bus({.name = "root", .bytes_per_s = 0, .duplex = Duplex::kHalf});
  for (int i = 0; i < gpus; ++i) {
    Device d;
    d.name = "g" + std::to_string(i);
    d.device_class = "g";
    d.host = host;
    d.memory_bytes = memory;
    d.copy_engines = engines;
    const DeviceId id = builder.add_device(d);
    builder.add_link({.name = "pcie" + std::to_string(i),
                      .a = builder.host_node(host),
                      .b = builder.device_node(id),
                      .bytes_per_s = 1e6,
                      .latency_us = 1,
                      .duplex = Duplex::kFull,
                      .bus = bus});
  }
  return must(builder.build());
}

std::shared_ptr<const Cluster> make_cpu_cluster(const std::vector<std::vector<int>>& cores) {
  ClusterBuilder builder("cpus");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 0});
  for (size_t i = 0; i < cores.size(); ++i) {
    Device d;
    d.name = "c" + std::to_string(i);
    d.kind = DeviceKind::kCpu;
    d.device_class = d.name;
    d.host = host;
    d.cores = cores[i];
    builder.add_device(d);
  }
  return must(builder.build());
}

std::string objective_test_name(Objective objective) {
  std::string name = objective_name(objective);
  std::erase(name, '-');
  return name;
}

namespace {

std::shared_ptr<const Graph> random_graph(Random& random, const RandomShape& shape) {
  GraphBuilder builder("random");
  std::vector<TensorId> made{builder.add_input("in", DType::kU8, {16})};
  std::vector<ParamId> params;
  for (int i = 0; i < shape.ops; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.type = "Test";
    if (random.chance(0.3)) op.inputs.push_back(made[0]);
    for (size_t j = 1; j < made.size(); ++j) {
      if (random.chance(shape.edge_probability)) op.inputs.push_back(made[j]);
    }
    if (random.chance(0.6)) {
      params.push_back(builder.add_param({"w" + std::to_string(i), random.between(0, 40)}));
      op.params.push_back(params.back());
    }
    if (params.size() > 1 && random.chance(0.2)) op.params.push_back(params[random.below(params.size() - 1)]);
    std::sort(op.params.begin(), op.params.end());
    op.params.erase(std::unique(op.params.begin(), op.params.end()), op.params.end());
    std::vector<Tensor> outputs;
    const int64_t count = random.chance(0.2) ? 2 : 1;
    for (int64_t k = 0; k < count; ++k) {
      outputs.push_back(
          bytes_tensor("t" + std::to_string(i) + "_" + std::to_string(k), random.between(0, 30)));
    }
    const OpId id = builder.add_op(std::move(op), std::move(outputs));
    for (const TensorId t : builder.outputs_of(id)) {
      made.push_back(t);
      if (random.chance(0.15)) builder.add_output(t);
    }
  }
  return must(builder.build());
}

std::shared_ptr<const Cluster> random_cluster(Random& random, int max_devices) {
  ClusterBuilder builder("random");
  std::vector<HostId> hosts{builder.add_host({.name = "h0", .memory_bytes = 0})};
  if (random.chance(0.3)) hosts.push_back(builder.add_host({.name = "h1", .memory_bytes = 0}));
  std::vector<BusId> buses{BusId()};
  if (random.chance(0.6)) {
    const double rate = random.chance(0.5) ? 0 : 0.7e6;
    buses.push_back(builder.add_bus({"bus", rate, random.chance(0.7) ? Duplex::kHalf : Duplex::kFull}));
  }
  int links = 0;
  const auto link = [&](NodeId a, NodeId b, Duplex duplex) {
    builder.add_link({.name = "l" + std::to_string(links++),
                      .a = a,
                      .b = b,
                      .bytes_per_s = random.uniform(0.5e6, 4e6),
                      .latency_us = random.uniform(0, 3),
                      .duplex = duplex,
                      .bus = buses[random.below(buses.size())]});
  };
  const auto duplex = [&] { return random.chance(0.5) ? Duplex::kFull : Duplex::kHalf; };
  if (hosts.size() > 1) link(builder.host_node(hosts[0]), builder.host_node(hosts[1]), duplex());
  const int64_t devices = random.between(1, max_devices);
  std::vector<NodeId> gpus;
  for (int64_t i = 0; i < devices; ++i) {
    Device d;
    d.name = "d" + std::to_string(i);
    d.device_class = d.name;
    d.host = hosts[random.below(hosts.size())];
    d.copy_engines = static_cast<int>(random.between(0, 2));
    const bool is_cpu = random.chance(0.45);
    if (is_cpu) {
      d.kind = DeviceKind::kCpu;
      d.cores.clear();
      for (int core = 0; core < 3; ++core) {
        if (random.chance(0.5)) d.cores.push_back(core);
      }
      if (d.cores.empty()) d.cores = {0};
    }
    const HostId host = d.host;
    const DeviceId id = builder.add_device(std::move(d));
    if (!is_cpu || random.chance(0.3)) link(builder.host_node(host), builder.device_node(id), duplex());
    if (!is_cpu) gpus.push_back(builder.device_node(id));
    if (gpus.size() > 1 && !is_cpu && random.chance(0.4)) {
      link(gpus[gpus.size() - 2], gpus.back(), random.chance(0.3) ? Duplex::kOneWay : duplex());
    }
  }
  return must(builder.build());
}

// Random convex sets of two or three ops with a time of their own: shorter or longer than the sum.
void add_known_segments(Random& random, const Graph& graph, CostTable& costs) {
  for (const Edge& e : graph.edges()) {
    if (!random.chance(0.3)) continue;
    const DeviceId d(random.below(costs.num_devices()));
    std::vector<OpId> ops{std::min(e.src, e.dst), std::max(e.src, e.dst)};
    costs.set_segment({ops, d, {random.uniform(1, 15), Origin::kMeasured, 0.01}});
  }
}

// Some ops may read their parameters in place, faster or slower than from their own memory; some parameters
// are there already.
void add_cold_start(Random& random, CostTable& costs, Problem& p) {
  p.execution.fixed_sharing = random.chance(0.3);
  p.execution.parameter_drops = random.chance(0.5);
  for (size_t v = 0; v < costs.num_ops(); ++v) {
    const auto& params = p.graph->ops()[v].params;
    const bool reads =
        std::any_of(params.begin(), params.end(), [&](ParamId q) { return p.graph->param(q).bytes > 0; });
    for (size_t d = 0; d < costs.num_devices(); ++d) {
      if (random.chance(0.3)) continue;
      const double usual = costs.us(OpId(v), DeviceId(d));
      costs.set_host_access(OpId(v), DeviceId(d), reads ? random.uniform(0.5, 25) : usual);
    }
  }
  if (random.chance(0.4)) return;
  p.resident.resize(static_cast<size_t>(p.cluster->num_memory_pools()));
  for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
    if (!needs_load(*p.cluster, DeviceId(d))) continue;
    auto& here = p.resident[static_cast<size_t>(p.cluster->memory_pool(DeviceId(d)))];
    for (size_t q = 0; q < p.graph->num_params(); ++q) {
      if (random.chance(0.3)) here.emplace_back(q);
    }
  }
}

}  // namespace

Problem random_problem(Random& random, const RandomShape& shape) {
  Problem p;
  p.graph = random_graph(random, shape);
  p.cluster = random_cluster(random, shape.max_devices);
  const size_t devices = p.cluster->num_devices();
  auto costs = std::make_shared<CostTable>(p.graph->num_ops(), devices);
  const size_t able = random.below(devices);  // runs everything
  for (size_t v = 0; v < p.graph->num_ops(); ++v) {
    for (size_t d = 0; d < devices; ++d) {
      if (d != able && random.chance(0.15)) continue;
      const double us = random.chance(0.05) ? 0 : random.uniform(1, 10);
      costs->set(OpId(v), DeviceId(d),
                 {us, static_cast<Origin>(random.below(5)), random.chance(0.5) ? 0.125 : 0.0});
    }
  }
  if (shape.known_segments) add_known_segments(random, *p.graph, *costs);
  p.costs = costs;
  p.objective = shape.objective;
  p.execution = {random.chance(0.8), random.chance(0.7)};
  if (shape.cold_start) add_cold_start(random, *costs, p);
  return p;
}

bool is_free(const Problem& problem, DeviceId from, DeviceId to) {
  if (from == to) return true;
  const Route* route = problem.cluster->route(from, to);
  return problem.cluster->memory_pool(from) == problem.cluster->memory_pool(to) &&
         (!route || route->hops.empty());
}

Assignment random_assignment(Random& random, const Problem& problem) {
  const Graph& graph = *problem.graph;
  const size_t devices = problem.cluster->num_devices();
  Assignment a;
  a.device.resize(graph.num_ops());
  std::vector<int> waits(graph.num_ops());
  std::vector<OpId> ready;
  for (size_t v = 0; v < graph.num_ops(); ++v) {
    waits[v] = static_cast<int>(graph.predecessors(OpId(v)).size());
    if (waits[v] == 0) ready.emplace_back(v);
  }
  while (!ready.empty()) {
    const size_t k = random.below(ready.size());
    const OpId v = ready[k];
    ready.erase(ready.begin() + static_cast<long>(k));
    a.order.push_back(v);
    std::vector<DeviceId> possible;
    for (size_t d = 0; d < devices; ++d) {
      bool fits = problem.costs->us(v, DeviceId(d)) < kImpossible;
      if (problem.objective == Objective::kColdLatency &&
          problem.cluster->device(DeviceId(d)).kind != DeviceKind::kCpu) {
        fits = fits && problem.cluster->load_route(DeviceId(d)) != nullptr;
      }
      for (const OpId u : graph.predecessors(v)) {
        const DeviceId from = a.device[u.index()];
        fits = fits && from.valid() &&
               (is_free(problem, from, DeviceId(d)) || problem.cluster->route(from, DeviceId(d)));
      }
      if (fits) possible.emplace_back(d);
    }
    if (!possible.empty()) a.device[v.index()] = possible[random.below(possible.size())];
    for (const OpId w : graph.successors(v)) {
      if (--waits[w.index()] == 0) ready.push_back(w);
    }
  }
  if (!problem.has_host_access()) return a;
  a.host_access.assign(graph.num_ops(), 0);
  for (size_t v = 0; v < graph.num_ops(); ++v) {
    const DeviceId d = a.device[v];
    const bool can = d.valid() && host_access_us(problem, OpId(v), d) < kImpossible;
    a.host_access[v] = can && random.chance(0.4);
  }
  return a;
}

Plan random_plan(Random& random, const Problem& problem) {
  const auto assignment = random_assignment(random, problem);
  auto built = build_plan(problem, assignment);
  if (!built.ok()) return {};
  Plan plan = std::move(*built);
  // Another topological order of the same steps.
  const size_t n = plan.steps.size();
  std::vector<Step> steps;
  std::vector<bool> taken(n, false);
  while (steps.size() < n) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < n; ++i) {
      if (taken[i]) continue;
      bool waits = false;
      for (size_t j = 0; j < i && !waits; ++j) {
        const bool needs = must_wait(problem, plan, i, j);
        waits = needs && !taken[j] &&
                (plan.steps[i].kind == StepKind::kTransfer ? plan.steps[j].segment == plan.steps[i].segment
                                                           : plan.steps[i].kind == StepKind::kRun);
      }
      // Loads keep their order, for an earlier one may bring what a later one would.
      for (size_t j = 0; j < i && plan.steps[i].kind == StepKind::kLoad && !waits; ++j) {
        waits = !taken[j] && plan.steps[j].kind == StepKind::kLoad;
      }
      if (!waits) ready.push_back(i);
    }
    const size_t pick = ready[random.below(ready.size())];
    taken[pick] = true;
    steps.push_back(plan.steps[pick]);
  }
  plan.steps = std::move(steps);
  return plan;
}

namespace {

std::set<std::string> resources_of(const Problem& problem, const Plan& plan, size_t i) {
  const Cluster& cluster = *problem.cluster;
  const Step& step = plan.steps[i];
  std::set<std::string> names;
  if (step.kind == StepKind::kRun) {
    names.insert("device " + std::to_string(step.to.value));
    const Device& d = cluster.device(step.to);
    for (const int core : d.cores)
      names.insert("core " + std::to_string(d.host.value) + "." + std::to_string(core));
    if (!plan.segments[step.segment.index()].host_access || problem.execution.fixed_sharing) return names;
  }
  const Route* route =
      step.kind == StepKind::kTransfer ? cluster.route(step.from, step.to) : cluster.load_route(step.to);
  const std::vector<Hop>& hops = step.route >= 0 ? plan.routes[static_cast<size_t>(step.route)] : route->hops;
  const bool holds_links = step.kind != StepKind::kTransfer || !problem.execution.fixed_sharing;
  if (problem.execution.link_contention && holds_links) {
    for (const Hop& hop : hops) {
      const Link& link = cluster.link(hop.link);
      names.insert("link " + link.name + (link.duplex == Duplex::kFull && !hop.forward ? "<" : ""));
      if (!link.bus.valid()) continue;
      const Bus& bus = cluster.bus(link.bus);
      names.insert("bus " + bus.name + (bus.duplex == Duplex::kFull && !hop.forward ? "<" : ""));
    }
  }
  if (problem.execution.engine_contention && step.kind != StepKind::kRun) {
    const auto engine = [&](DeviceId d, const std::string& way) {
      const int engines = cluster.device(d).copy_engines;
      if (engines > 0) names.insert("engine " + std::to_string(d.value) + (engines == 1 ? "" : way));
    };
    if (step.kind == StepKind::kTransfer) engine(step.from, "out");
    engine(step.to, "in");
  }
  return names;
}

std::vector<ParamId> params_of(const Problem& problem, const Segment& segment) {
  std::set<ParamId> params;
  for (const OpId op : segment.ops) {
    for (const ParamId p : problem.graph->op(op).params) {
      if (problem.graph->param(p).bytes > 0) params.insert(p);
    }
  }
  return {params.begin(), params.end()};
}

// The parameters that load step i brings.
std::vector<ParamId> brought_by(const Problem& problem, const Plan& plan, size_t i) {
  std::set<ParamId> there;
  for (size_t j = 0; j < i; ++j) {
    if (plan.steps[j].kind != StepKind::kLoad || plan.steps[j].to != plan.steps[i].to) continue;
    for (const ParamId p : params_of(problem, plan.segments[plan.steps[j].segment.index()])) there.insert(p);
  }
  std::vector<ParamId> fresh;
  for (const ParamId p : params_of(problem, plan.segments[plan.steps[i].segment.index()])) {
    const int pool = problem.cluster->memory_pool(plan.steps[i].to);
    if (!there.count(p) && !problem.is_resident(pool, p)) fresh.push_back(p);
  }
  return fresh;
}

bool reads_from(const Problem& problem, const Segment& reader, const Segment& writer, TensorId only) {
  for (const OpId op : reader.ops) {
    for (const TensorId t : problem.graph->op(op).inputs) {
      if (only.valid() && t != only) continue;
      const OpId maker = problem.graph->tensor(t).producer;
      if (std::count(writer.ops.begin(), writer.ops.end(), maker)) return true;
    }
  }
  return false;
}

bool needs(const Problem& problem, const Plan& plan, size_t i, size_t j) {
  const Step &later = plan.steps[i], &earlier = plan.steps[j];
  const Segment &a = plan.segments[later.segment.index()], &b = plan.segments[earlier.segment.index()];
  if (later.kind == StepKind::kTransfer)
    return earlier.kind == StepKind::kRun && later.segment == earlier.segment;
  if (later.kind == StepKind::kLoad) return false;
  if (earlier.kind == StepKind::kRun) {
    return is_free(problem, b.device, a.device) && reads_from(problem, a, b, TensorId());
  }
  if (earlier.kind == StepKind::kTransfer) {
    return a.lane == b.lane && earlier.to == a.device && reads_from(problem, a, b, earlier.tensor);
  }
  if (earlier.to != a.device || a.host_access) return false;
  const auto brought = brought_by(problem, plan, j), used = params_of(problem, a);
  return std::any_of(used.begin(), used.end(), [&](ParamId p) {
    return std::find(brought.begin(), brought.end(), p) != brought.end();
  });
}

}  // namespace

bool must_wait(const Problem& problem, const Plan& plan, size_t later, size_t earlier) {
  if (plan.segments[plan.steps[later].segment.index()].lane !=
      plan.segments[plan.steps[earlier].segment.index()].lane) {
    return false;
  }
  if (needs(problem, plan, later, earlier)) return true;
  for (const std::string& r : resources_of(problem, plan, later)) {
    if (resources_of(problem, plan, earlier).count(r)) return true;
  }
  return false;
}

double naive_duration(const Problem& problem, const Plan& plan, size_t i) {
  const Step& step = plan.steps[i];
  const Segment& segment = plan.segments[step.segment.index()];
  if (step.kind == StepKind::kRun && segment.host_access) {
    double sum = 0;
    for (const OpId op : segment.ops) sum += host_access_us(problem, op, segment.device);
    return sum;
  }
  if (step.kind == StepKind::kRun) return problem.costs->segment(segment.ops, segment.device).us;
  if (step.kind == StepKind::kTransfer) {
    const Route& route = *problem.cluster->route(step.from, step.to);
    const double us = route.time_us(problem.graph->tensor(step.tensor).bytes);
    if (!problem.execution.fixed_sharing || route.hops.empty()) return us;
    return route.latency_us + (us - route.latency_us) * sharing_factor(*problem.cluster, route.hops);
  }
  int64_t bytes = 0;
  for (const ParamId p : brought_by(problem, plan, i)) bytes += problem.graph->param(p).bytes;
  return problem.cluster->load_route(step.to)->time_us(bytes);
}

NaiveTimes naive_times(const Problem& problem, const Plan& plan) {
  NaiveTimes t;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    double start = 0;
    for (size_t j = 0; j < i; ++j) {
      if (t.finish[j] > start && must_wait(problem, plan, i, j)) start = t.finish[j];
    }
    t.start.push_back(start);
    t.finish.push_back(start + naive_duration(problem, plan, i));
    t.makespan = std::max(t.makespan, t.finish.back());
  }
  return t;
}

}  // namespace heddle::test

// DiviML's random wired networks (DiviML, section V), with modules from "Exploring randomly wired neural
// networks" (Xie et al., 2019). docs/generators.md lists the choices made where both are silent.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "heddle/base/random.h"
#include "heddle/graph/generators.h"
#include "option_ranges.h"

namespace heddle {
namespace {

using Family = RandomWiredOptions::Family;
using Adjacency = std::vector<std::set<int>>;  // undirected, without loops

constexpr int kTries = 10'000;
constexpr double kMaxWires = 1e8;        // limit on pairs of nodes of one module, summed over modules
constexpr double kMaxElements = 1e12;    // limit on batch * width * image^2, which no tensor reaches
constexpr int kStages = 4;               // resolutions: 1/4, 1/8, 1/16, 1/32 of the picture
constexpr int64_t kHeadFeatures = 1280;  // Xie et al., Table 1
constexpr int64_t kClasses = 1000;
constexpr int64_t kF32 = 4;

Status check_options(const RandomWiredOptions& o) {
  const auto elements = static_cast<double>(o.batch) * static_cast<double>(o.width) *
                        static_cast<double>(o.image) * static_cast<double>(o.image);
  std::vector<OptionRange> ranges = {
      {"nodes", o.nodes, 2, 2000},
      {"modules", o.modules, 1, 1'000'000},
      {"modules * nodes^2", static_cast<double>(o.nodes) * o.nodes * o.modules, 1, kMaxWires},
      {"channels", o.channels, 1, o.nodes},
      {"batch", o.batch, 1, 1 << 20},
      {"image", o.image, 32, 1 << 14},
      {"width", o.width, 2, 1 << 14},
      {"mean_us", o.mean_us, 1e-3, 1e9},
      {"device_affinity", o.device_affinity, 0, 0.99},
      {"device_crossing", o.device_crossing, 0, 2},
      {"batch * width * image^2", elements, 1, kMaxElements}};
  for (const auto& [name, factor] : o.device_class_factors)
    ranges.push_back({"factor of class '" + name + "'", factor, 1, 1e6});
  if (o.family == Family::kErdosRenyi) {
    ranges.push_back({"er_p", o.er_p, 0, 1});
  } else if (o.family == Family::kBarabasiAlbert) {
    ranges.push_back({"ba_m", o.ba_m, 1, o.nodes - 1});
  } else {
    ranges.push_back({"ws_k", o.ws_k, 2, o.nodes - 1});
    ranges.push_back({"ws_p", o.ws_p, 0, 1});
    if (o.ws_k % 2 != 0)
      return invalid_input("ws_k is " + std::to_string(o.ws_k) + ", expected an even number");
  }
  return check_ranges(ranges);
}

void join(Adjacency& graph, int a, int b) {
  graph[static_cast<size_t>(a)].insert(b);
  graph[static_cast<size_t>(b)].insert(a);
}

Adjacency erdos_renyi(const RandomWiredOptions& o, Random& random) {
  Adjacency graph(static_cast<size_t>(o.nodes));
  for (int i = 0; i < o.nodes; ++i)
    for (int j = i + 1; j < o.nodes; ++j)
      if (random.chance(o.er_p)) join(graph, i, j);
  return graph;
}

// A ring: each node is joined to K/2 nodes on either side. Then, in round d of K/2, each node's edge to its
// d-th clockwise neighbour is moved, with probability P, to a random node that it is not joined to.
Adjacency watts_strogatz(const RandomWiredOptions& o, Random& random) {
  const int n = o.nodes;
  Adjacency graph(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i)
    for (int d = 1; d <= o.ws_k / 2; ++d) join(graph, i, (i + d) % n);
  for (int d = 1; d <= o.ws_k / 2; ++d) {
    for (int i = 0; i < n; ++i) {
      auto& mine = graph[static_cast<size_t>(i)];
      const int old = (i + d) % n;
      if (!random.chance(o.ws_p) || !mine.contains(old) || static_cast<int>(mine.size()) >= n - 1) continue;
      int fresh = i;
      while (fresh == i || mine.contains(fresh))
        fresh = static_cast<int>(random.below(static_cast<uint64_t>(n)));
      mine.erase(old);
      graph[static_cast<size_t>(old)].erase(i);
      join(graph, i, fresh);
    }
  }
  return graph;
}

// M nodes without edges; each further node is joined to M distinct ones, drawn in proportion to their degrees
// (the first to all M).
Adjacency barabasi_albert(const RandomWiredOptions& o, Random& random) {
  Adjacency graph(static_cast<size_t>(o.nodes));
  std::vector<int> ends;  // each node once per edge
  for (int i = o.ba_m; i < o.nodes; ++i) {
    std::set<int> targets;
    if (i == o.ba_m) {
      for (int j = 0; j < o.ba_m; ++j) targets.insert(j);
    }
    while (static_cast<int>(targets.size()) < o.ba_m) targets.insert(ends[random.below(ends.size())]);
    for (const int j : targets) {
      join(graph, i, j);
      ends.push_back(j);
      ends.push_back(i);
    }
  }
  return graph;
}

bool connected(const Adjacency& graph) {
  std::vector<bool> seen(graph.size(), false);
  std::vector<int> stack = {0};
  seen[0] = true;
  size_t count = 0;
  while (!stack.empty()) {
    const int at = stack.back();
    stack.pop_back();
    ++count;
    for (const int next : graph[static_cast<size_t>(at)]) {
      if (seen[static_cast<size_t>(next)]) continue;
      seen[static_cast<size_t>(next)] = true;
      stack.push_back(next);
    }
  }
  return count == graph.size();
}

Result<Adjacency> random_connected(const RandomWiredOptions& o, Random& random) {
  for (int i = 0; i < kTries; ++i) {
    Adjacency graph = o.family == Family::kErdosRenyi      ? erdos_renyi(o, random)
                      : o.family == Family::kWattsStrogatz ? watts_strogatz(o, random)
                                                           : barabasi_albert(o, random);
    if (connected(graph)) return graph;
    // A large graph that was not connected will hardly be at the next try: limit the total work too.
    if (static_cast<int64_t>(i) * o.nodes * o.nodes > int64_t{2'000'000'000}) break;
  }
  return invalid_input("no connected random graph of " + std::to_string(o.nodes) +
                       " nodes was found; raise " +
                       (o.family == Family::kErdosRenyi ? "er_p" : "the number of neighbours"));
}

// A module's wiring: predecessors of each node, nodes fed by each input, nodes collected by each output.
struct Wiring {
  std::vector<std::vector<int>> preds;
  std::vector<std::vector<int>> fed, collected;
};

std::vector<int> sample(std::vector<int> from, size_t count, Random& random) {
  random.shuffle(from);
  from.resize(std::min(count, from.size()));
  std::sort(from.begin(), from.end());
  return from;
}

// The channel lists of one side of a module. `ends` are the nodes without a neighbour on that side. kSeries:
// one channel gets all ends. The others get uniform samples of ceil(ends / channels) nodes.
std::vector<std::vector<int>> wire_side(const RandomWiredOptions& o, const std::vector<int>& ends,
                                        Random& random) {
  const auto channels = static_cast<size_t>(o.channels);
  std::vector<int> all(static_cast<size_t>(o.nodes));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  const size_t share = (ends.size() + channels - 1) / channels;
  std::vector<std::vector<int>> lists;
  for (size_t c = 0; c < channels; ++c) lists.push_back(sample(all, share, random));
  const bool strong = channels == 1 || o.dependency == RandomWiredOptions::Dependency::kSeries;
  if (strong) lists[random.below(channels)] = ends;
  return lists;
}

Wiring orient(const RandomWiredOptions& o, const Adjacency& graph, Random& random) {
  Wiring w;
  std::vector<int> sources, sinks;
  for (int i = 0; i < o.nodes; ++i) {
    const auto& known = graph[static_cast<size_t>(i)];
    w.preds.emplace_back(known.begin(), known.lower_bound(i));
    if (w.preds.back().empty()) sources.push_back(i);
    if (known.empty() || *known.rbegin() < i) sinks.push_back(i);
  }
  w.fed = wire_side(o, sources, random);
  w.collected = wire_side(o, sinks, random);
  // Every source needs data: one that no sample contains reads one randomly drawn channel. (A sink that no
  // sample contains becomes an output of the network.)
  for (const int node : sources) {
    const auto reads = [&](const auto& list) {
      return std::find(list.begin(), list.end(), node) != list.end();
    };
    if (std::none_of(w.fed.begin(), w.fed.end(), reads)) w.fed[random.below(w.fed.size())].push_back(node);
  }
  return w;
}

struct Features {
  int64_t channels = 0, side = 0;  // of a square map
};

// Given times per device class. A first network is built to obtain the sums, a second one gets the times.
class ClassTimes {
 public:
  explicit ClassTimes(const RandomWiredOptions& o)
      : o_(o), random_(o.seed ^ kTimesSeed), sums_(o.device_class_factors.size()) {
    // The reference class: the first one of factor 1.
    for (size_t c = 0; c < sums_.size() && reference_ == sums_.size(); ++c) {
      if (o.device_class_factors[c].second == 1) reference_ = c;
    }
  }

  // Called once per op, in order. Returns times only after sums_are_known().
  std::vector<GivenTime> next(double bytes) {
    std::vector<GivenTime> times;
    for (size_t c = 0; c < sums_.size(); ++c) {
      const auto& [name, factor] = o_.device_class_factors[c];
      const double a = o_.device_affinity;
      const double skew = std::pow(random_.unit(), a / (1 - a)) / (1 - a);  // mean 1
      const double cross = crossing(c);
      Sums& sums = sums_[c];
      if (!scaled_) {
        sums.skew.add(skew, bytes);
        sums.cross.add(cross, bytes);
        sums.both.add(skew * cross, bytes);
      } else {
        const double mean = bytes_ / ops_;
        const double base = o_.mean_us * (kLaunch + (1 - kLaunch) * bytes / mean);
        const auto share = [&](const Sum& sum) {
          return (kLaunch * sum.ops + (1 - kLaunch) * sum.bytes / mean) / ops_;
        };
        const double time = base * (1 + (factor - 1) * skew / share(sums.skew));
        const double total = share(sums.cross) + (factor - 1) * share(sums.both) / share(sums.skew);
        times.push_back({name, o_.device_crossing > 0 ? time * cross * (factor / total) : time});
      }
    }
    if (!scaled_) bytes_ += bytes, ++ops_;
    return times;
  }
  void sums_are_known() {
    scaled_ = true;
    random_ = Random(o_.seed ^ kTimesSeed);
  }

 private:
  struct Sum {
    double ops = 0, bytes = 0;
    void add(double x, double of_bytes) { ops += x, bytes += x * of_bytes; }
  };
  struct Sums {
    Sum skew, cross, both;
  };
  // Draws nothing without crossings, so that such graphs do not depend on this option.
  double crossing(size_t c) {
    if (!(o_.device_crossing > 0)) return 1;
    // Box-Muller transform; always two draws.
    const double u = 1 - random_.unit(), v = random_.unit();
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    return c == reference_ ? 1 : std::exp(o_.device_crossing * normal);
  }
  // Separate generator for times: the network is the same with and without them.
  static constexpr uint64_t kTimesSeed = 0x74696d6573ULL;
  const RandomWiredOptions& o_;
  Random random_;
  // The share of an op's mean time that does not depend on its size.
  static constexpr double kLaunch = 0.5;
  std::vector<Sums> sums_;
  size_t reference_ = sums_.size();
  double bytes_ = 0, ops_ = 0;
  bool scaled_ = false;
};

class NetworkMaker {
 public:
  NetworkMaker(const RandomWiredOptions& options, std::string name, ClassTimes& times)
      : o_(options), builder_(std::move(name)), times_(times) {}

  Result<std::shared_ptr<const Graph>> make(Random& random) {
    const TensorId picture = builder_.add_input("picture", DType::kF32, {o_.batch, 3, o_.image, o_.image});
    std::vector<TensorId> channels(static_cast<size_t>(o_.channels), add_stem(picture));
    for (int m = 0; m < o_.modules; ++m) {
      HEDDLE_ASSIGN_OR_RETURN(const Adjacency graph, random_connected(o_, random));
      channels = add_module(m, orient(o_, graph, random), channels);
    }
    add_head(channels);
    return builder_.build();
  }

 private:
  Shape shape(Features f) const { return {o_.batch, f.channels, f.side, f.side}; }
  double elements(Features f) const { return static_cast<double>(o_.batch * f.channels * f.side * f.side); }

  TensorId add(const std::string& name, const char* type, std::vector<TensorId> inputs, Features in,
               Features out, double flops, int64_t weights) {
    Op op;
    op.name = name;
    op.type = type;
    op.flops = flops;
    const auto tensors = static_cast<double>(inputs.size()) * elements(in) + elements(out);
    op.bytes_accessed = kF32 * (static_cast<int64_t>(tensors) + weights);
    op.inputs = std::move(inputs);
    op.given_times = times_.next(static_cast<double>(op.bytes_accessed));
    if (weights > 0) op.params = {builder_.add_param({name + ".weights", kF32 * weights})};
    Tensor result;
    result.name = name + ".out";
    result.shape = shape(out);
    now_ = out;
    return builder_.outputs_of(builder_.add_op(std::move(op), {std::move(result)}))[0];
  }

  // Weighted sum of the inputs, ReLU, 3x3 separable convolution, batch normalization: what a node of such a
  // network does.
  TensorId add_node(const std::string& name, std::vector<TensorId> inputs, Features in, Features out) {
    const auto k = static_cast<double>(inputs.size());
    const double sum = inputs.size() > 1 ? 2 * k - 1 : 0;
    const double before = (sum + 1) * elements(in);
    const double depthwise = 2.0 * 9 * static_cast<double>(o_.batch * in.channels * out.side * out.side);
    const double pointwise = 2.0 * static_cast<double>(in.channels) * elements(out),
                 normalize = 2 * elements(out);
    const int64_t weights = (inputs.size() > 1 ? static_cast<int64_t>(inputs.size()) : 0) + 9 * in.channels +
                            in.channels * out.channels + 2 * out.channels;
    return add(name, "SeparableConvolution", std::move(inputs), in, out,
               before + depthwise + pointwise + normalize, weights);
  }

  // Two 3x3 convolutions of stride 2 (Xie et al., small regime: conv1, and conv2 as one convolution).
  TensorId add_stem(TensorId picture) {
    const Features in{3, o_.image}, mid{std::max<int64_t>(1, o_.width / 2), (o_.image + 1) / 2};
    const Features out{o_.width, (mid.side + 1) / 2};
    const double first = 2.0 * 27 * elements(mid) + 2 * elements(mid);
    const TensorId half =
        add("stem.conv1", "Convolution", {picture}, in, mid, first, 27 * mid.channels + 2 * mid.channels);
    const double second = elements(mid) + (18.0 * static_cast<double>(mid.channels) + 2) * elements(out);
    return add("stem.conv2", "Convolution", {half}, mid, out, second,
               9 * mid.channels * out.channels + 2 * out.channels);
  }

  // Modules are divided evenly among four resolutions; each halves the side and doubles the feature maps.
  Features features_of(int module) const {
    const int stage = static_cast<int>(int64_t{module} * kStages / o_.modules);
    Features f{o_.width << stage, (((o_.image + 1) / 2) + 1) / 2};
    for (int i = 0; i < stage; ++i) f.side = (f.side + 1) / 2;
    return f;
  }

  std::vector<TensorId> add_module(int index, const Wiring& w, const std::vector<TensorId>& channels) {
    const std::string prefix = "module" + std::to_string(index) + ".";
    const Features before = now_, f = features_of(index);
    std::vector<std::vector<TensorId>> reads(w.preds.size());
    for (size_t c = 0; c < channels.size(); ++c) {
      const TensorId in = add_node(prefix + "in" + std::to_string(c), {channels[c]}, before, f);
      for (const int node : w.fed[c]) reads[static_cast<size_t>(node)].push_back(in);
    }
    std::vector<TensorId> made;
    std::vector<bool> used(w.preds.size(), false);
    for (size_t i = 0; i < w.preds.size(); ++i) {
      for (const int p : w.preds[i]) {
        reads[i].push_back(made[static_cast<size_t>(p)]);
        used[static_cast<size_t>(p)] = true;
      }
      made.push_back(add_node(prefix + "node" + std::to_string(i), reads[i], f, f));
    }
    std::vector<TensorId> outputs;
    for (size_t c = 0; c < channels.size(); ++c) {
      std::vector<TensorId> collected;
      for (const int node : w.collected[c]) {
        collected.push_back(made[static_cast<size_t>(node)]);
        used[static_cast<size_t>(node)] = true;
      }
      const double flops = static_cast<double>(collected.size()) * elements(f);  // sum and division
      outputs.push_back(
          add(prefix + "out" + std::to_string(c), "Mean", std::move(collected), f, f, flops, 0));
    }
    for (size_t i = 0; i < made.size(); ++i)
      if (!used[i]) dead_ends_.push_back(made[i]);
    return outputs;
  }

  // Sum of the channels, 1x1 convolution, global average, classifier.
  void add_head(const std::vector<TensorId>& channels) {
    const Features in = now_, mid{kHeadFeatures, now_.side}, out{kClasses, 1};
    const double sum = static_cast<double>(channels.size()) * elements(in);
    const double conv = 2.0 * static_cast<double>(in.channels) * elements(mid) + 3 * elements(mid);
    const double classify = 2.0 * static_cast<double>(o_.batch * kHeadFeatures * kClasses);
    const int64_t weights = in.channels * kHeadFeatures + 2 * kHeadFeatures + (kHeadFeatures + 1) * kClasses;
    builder_.add_output(add("head", "Classifier", channels, in, out, sum + conv + classify, weights));
    for (const TensorId t : dead_ends_) builder_.add_output(t);
  }

  const RandomWiredOptions& o_;
  GraphBuilder builder_;
  ClassTimes& times_;
  Features now_;  // of the last op added
  std::vector<TensorId> dead_ends_;
};

const char* family_name(Family family) {
  return family == Family::kErdosRenyi ? "er" : family == Family::kWattsStrogatz ? "ws" : "ba";
}

}  // namespace

Result<std::shared_ptr<const Graph>> generate_random_wired(const RandomWiredOptions& o) {
  HEDDLE_RETURN_IF_ERROR(check_options(o));
  Random random(o.seed);
  const bool weak = o.dependency == RandomWiredOptions::Dependency::kWeak;
  std::string name =
      std::string(family_name(o.family)) + "-" + std::to_string(o.nodes) + "-" + std::to_string(o.modules);
  if (o.channels > 1) name += std::string(weak ? "-wdep" : "-sdep") + std::to_string(o.channels);
  name += "-" + std::to_string(o.seed);
  ClassTimes times(o);
  auto graph = NetworkMaker(o, name, times).make(random);
  if (!graph.ok() || o.device_class_factors.empty()) return graph;
  times.sums_are_known();
  random = Random(o.seed);
  return NetworkMaker(o, name, times).make(random);
}

}  // namespace heddle

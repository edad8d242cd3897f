// Placeto: a learned placer. R. Addanki et al., "Placeto: learning generalizable device placement algorithms
// for distributed machine learning", NeurIPS 2019, sections 3 and 4. Moirai's learning-based baseline.
//
// As there, a small network visits the ops one after another and puts each on a device: an op's features
// (computation, bytes, parameters, ways to the ends) are passed along the graph in both directions, joined
// with what is known of each device (the op's time there, data already there, load so far), and a softmax
// over devices follows. Unlike there, training is for this one problem and by evolution strategies instead of
// policy gradients (T. Salimans et al., arXiv:1703.03864, 2017), each sample's reward being the evaluator's
// makespan; and it lasts as long as the deadline allows, seconds and not hours: the detail says how many
// placements were tried.
//
// Minimises the makespan of one request. O((V + E) k) a placement. Exploits unequal devices, transfers with
// contention and memory limits, as far as it learns them.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/param_use.h"
#include "heddle/base/random.h"
#include "lists/construction.h"
#include "search/order_timer.h"

namespace heddle {
namespace {

constexpr size_t kOpFeatures = 6, kEmbedding = 6, kPairFeatures = 6, kHidden = 8;
constexpr size_t kPasses = 2;  // of messages, each way
constexpr size_t kPairs = 8;   // mirrored samples a generation
constexpr double kSigma = 0.15, kStep = 0.3, kDecay = 0.995;
constexpr int kGenerations = 150;  // without a deadline
constexpr size_t kHeadInputs = 2 * kEmbedding + kPairFeatures;
constexpr size_t kWeights = kEmbedding * kOpFeatures + 2 * kEmbedding * kEmbedding +
                            kHidden * (kHeadInputs + 1) + kHidden + kPairFeatures;

using Embedding = std::array<double, kEmbedding>;

// The ops' fixed features, each about between 0 and 1.
class Features {
 public:
  explicit Features(const FlatProblem& flat) : flat_(flat), ops(flat.num_ops()) {
    const size_t n = flat.num_ops();
    const auto rank = upward_ranks(flat);
    std::vector<double> least = flat.least_us(), depth(n, 0);
    double most_us = 0, most_bytes = 0, most_rank = 0, most_params = 0, most_depth = 0;
    std::vector<double> bytes(n, 0), params(n, 0);
    for (const uint32_t v : flat.topological()) {
      for (const uint32_t t : flat.inputs(v)) depth[v] = std::max(depth[v], depth[flat.producer(t)] + 1);
      for (const uint32_t t : flat.outputs(v)) bytes[v] += static_cast<double>(flat.bytes(t));
      for (const uint32_t p : flat.params(v)) params[v] += static_cast<double>(flat.param_bytes(p));
      most_us = std::max(most_us, least[v]);
      most_bytes = std::max(most_bytes, bytes[v]);
      most_params = std::max(most_params, params[v]);
      most_rank = std::max(most_rank, rank[v]);
      most_depth = std::max(most_depth, depth[v]);
      total_us += least[v];
    }
    const auto share = [](double value, double most) { return most > 0 ? value / most : 0; };
    for (size_t v = 0; v < n; ++v) {
      ops[v] = {share(least[v], most_us),  share(bytes[v], most_bytes), share(params[v], most_params),
                share(rank[v], most_rank), share(depth[v], most_depth), 1};
    }
    most_rank_ = std::max(most_rank, 1e-9);
  }
  double most_rank() const { return most_rank_; }

  const FlatProblem& flat_;
  std::vector<std::array<double, kOpFeatures>> ops;
  double total_us = 0;  // each op on its fastest device

 private:
  double most_rank_ = 1;
};

class PlacementPolicy {
 public:
  PlacementPolicy(const FlatProblem& flat, const Features& features, const Reserve& reserve)
      : flat_(flat),
        features_(features),
        reserve_(reserve),
        order_(order_by_priority(flat, upward_ranks(flat))),
        up_(flat.num_ops()),
        down_(flat.num_ops()) {}

  // Devices one op after another: drawn from the softmax, or its largest where `random` is null.
  FlatPlan place(const std::vector<double>& weights, Random* random) {
    embed(weights);
    const size_t k = flat_.num_devices();
    FlatPlan plan{std::vector<uint32_t>(flat_.num_ops(), 0), order_};
    std::vector<double> load(k, 0), logit(k), near(k);
    ParamRoom room(flat_, reserve_);
    for (const uint32_t v : order_) {
      std::fill(near.begin(), near.end(), 0.0);
      double bytes = 0, fastest = kImpossible;
      for (const uint32_t t : flat_.inputs(v)) {
        near[plan.device[flat_.producer(t)]] += static_cast<double>(flat_.bytes(t));
        bytes += static_cast<double>(flat_.bytes(t));
      }
      for (const double us : flat_.row(v)) fastest = std::min(fastest, us);
      bool any = false;
      for (size_t i = 0; i < k; ++i) {
        const size_t pool = flat_.pool(i);
        const bool limited = flat_.pool_limit(pool) > 0;
        const int64_t fresh = limited ? room.new_bytes(v, i) : 0;
        logit[i] = -kImpossible;
        if (!(flat_.us(v, i) < kImpossible) || (fresh > 0 && fresh > room.room(pool))) continue;
        any = true;
        const double slow = fastest > 0 ? std::log(flat_.us(v, i) / fastest) : 0;
        double transfer = 0;
        for (const uint32_t t : flat_.inputs(v))
          transfer = std::max(transfer, flat_.transfer_us(plan.device[flat_.producer(t)], i, flat_.bytes(t)));
        const std::array<double, kPairFeatures> pair{
            slow,
            bytes > 0 ? near[i] / bytes : 0,
            load[i] / std::max(features_.total_us, 1e-9),
            std::min(transfer / std::max(fastest, 1e-3), 10.0) / 10,
            limited ? static_cast<double>(fresh) / static_cast<double>(flat_.pool_limit(pool)) : 0,
            static_cast<double>(i) / static_cast<double>(k)};
        logit[i] = score(weights, v, pair);
      }
      const uint32_t chosen = any ? choose(logit, random) : fallback(v);
      plan.device[v] = chosen;
      load[chosen] += flat_.us(v, chosen);
      if (flat_.has_limits()) room.add(v, chosen);
    }
    return plan;
  }

 private:
  // Where nothing has room: the evaluator's memory check will say no.
  uint32_t fallback(uint32_t v) const {
    uint32_t best = 0;
    for (uint32_t i = 1; i < flat_.num_devices(); ++i) {
      if (flat_.us(v, i) < flat_.us(v, best)) best = i;
    }
    return best;
  }

  static uint32_t choose(const std::vector<double>& logit, Random* random) {
    const auto most = std::max_element(logit.begin(), logit.end());
    if (random == nullptr) return static_cast<uint32_t>(most - logit.begin());
    double sum = 0;
    for (const double l : logit) sum += std::exp(l - *most);
    double draw = random->unit() * sum;
    for (uint32_t i = 0; i < logit.size(); ++i) {
      draw -= std::exp(logit[i] - *most);
      if (draw < 0 && logit[i] > -kImpossible) return i;
    }
    return static_cast<uint32_t>(most - logit.begin());
  }

  // Messages from feeders to readers and back: an op's embedding is that of its features and its neighbours'
  // mean.
  void embed(const std::vector<double>& weights) {
    const double* w = weights.data();
    const double* w_up = w + kEmbedding * kOpFeatures;
    const double* w_down = w_up + kEmbedding * kEmbedding;
    for (size_t pass = 0; pass < kPasses; ++pass) {
      const auto order = flat_.topological();
      for (size_t i = 0; i < order.size(); ++i) {
        const uint32_t v = order[i];
        Embedding mean{};
        for (const uint32_t t : flat_.inputs(v)) add(mean, up_[flat_.producer(t)]);
        up_[v] = mix(w, w_up, features_.ops[v], mean, flat_.inputs(v).size());
      }
      for (size_t i = order.size(); i-- > 0;) {
        const uint32_t v = order[i];
        Embedding mean{};
        size_t count = 0;
        for (const uint32_t t : flat_.outputs(v)) {
          for (const uint32_t r : flat_.readers(t)) add(mean, down_[r]), ++count;
        }
        down_[v] = mix(w, w_down, features_.ops[v], mean, count);
      }
    }
  }
  static void add(Embedding& sum, const Embedding& e) {
    for (size_t i = 0; i < kEmbedding; ++i) sum[i] += e[i];
  }
  static Embedding mix(const double* own, const double* message,
                       const std::array<double, kOpFeatures>& features, const Embedding& sum, size_t count) {
    Embedding out{};
    for (size_t i = 0; i < kEmbedding; ++i) {
      double x = 0;
      for (size_t j = 0; j < kOpFeatures; ++j) x += own[i * kOpFeatures + j] * features[j];
      for (size_t j = 0; j < kEmbedding && count > 0; ++j)
        x += message[i * kEmbedding + j] * sum[j] / static_cast<double>(count);
      out[i] = std::tanh(x);
    }
    return out;
  }

  double score(const std::vector<double>& weights, uint32_t v,
               const std::array<double, kPairFeatures>& pair) const {
    const double* w = weights.data() + kEmbedding * kOpFeatures + 2 * kEmbedding * kEmbedding;
    const double* out = w + kHidden * (kHeadInputs + 1);
    double sum = 0;
    for (size_t h = 0; h < kHidden; ++h, w += kHeadInputs + 1) {
      double x = w[kHeadInputs];
      for (size_t i = 0; i < kEmbedding; ++i) x += w[i] * up_[v][i] + w[kEmbedding + i] * down_[v][i];
      for (size_t i = 0; i < kPairFeatures; ++i) x += w[2 * kEmbedding + i] * pair[i];
      sum += out[h] * std::tanh(x);
    }
    for (size_t i = 0; i < kPairFeatures; ++i) sum += out[kHidden + i] * pair[i];
    return 4 * sum;
  }

  const FlatProblem& flat_;
  const Features& features_;
  const Reserve& reserve_;
  const std::vector<uint32_t> order_;
  std::vector<Embedding> up_, down_;
};

double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
  return radius * std::cos(6.283185307179586 * random.unit());
}

struct Training {
  FlatPlan best;
  double best_us = kImpossible;
  double placements = 0, generations = 0;
  bool stopped = false;
};

// Mirrored sampling with ranks as rewards (Salimans et al., algorithm 2 and section 2.1).
void train(const FlatProblem& flat, const Reserve& reserve, const PlannerOptions& options, Training& result) {
  const Features features(flat);
  PlacementPolicy policy(flat, features, reserve);
  OrderTimer timer(flat);
  Random random(options.seed);
  std::vector<double> weights(kWeights);
  for (double& w : weights) w = 0.3 * normal(random);
  const auto value_of = [&](const FlatPlan& plan) {
    const double us = timer.time(plan, kImpossible);
    timer.drop();
    ++result.placements;
    if (us < result.best_us || result.best.device.empty()) {
      result.best_us = us;
      result.best = plan;
    }
    return us;
  };
  value_of(policy.place(weights, nullptr));
  const bool endless = !std::isfinite(options.deadline.seconds_left());
  double step = kStep;
  for (int g = 0; !(endless && g >= kGenerations); ++g, step *= kDecay) {
    std::vector<std::vector<double>> noise(kPairs, std::vector<double>(kWeights));
    std::vector<std::pair<double, size_t>> values;  // makespan, sample
    for (size_t s = 0; s < 2 * kPairs; ++s) {
      if (options.deadline.should_stop()) {
        result.stopped = true;
        return;
      }
      if (s % 2 == 0) {
        for (double& x : noise[s / 2]) x = normal(random);
      }
      auto sample = weights;
      for (size_t i = 0; i < kWeights; ++i) sample[i] += (s % 2 == 0 ? kSigma : -kSigma) * noise[s / 2][i];
      values.emplace_back(value_of(policy.place(sample, &random)), s);
    }
    std::sort(values.begin(), values.end());
    for (size_t r = 0; r < values.size(); ++r) {
      const double reward = 0.5 - static_cast<double>(r) / static_cast<double>(values.size() - 1);
      const size_t s = values[r].second;
      const double scale = (s % 2 == 0 ? 1 : -1) * reward * step / static_cast<double>(kPairs);
      for (size_t i = 0; i < kWeights; ++i) weights[i] += scale * noise[s / 2][i];
    }
    value_of(policy.place(weights, nullptr));
    ++result.generations;
    report_progress(options, "planner placeto", g + 1, endless ? kGenerations : 0,
                    result.best_us < kImpossible ? std::optional<double>(result.best_us) : std::nullopt);
  }
}

Result<PlannerOutput> plan_placeto(const Problem& problem, const PlannerOptions& options) {
  Training total;
  const auto sets = configurations(problem);
  size_t done = 0;
  auto out = plan_by_construction(
      problem, options, "placeto",
      [&](const FlatProblem& flat, const Reserve& reserve) -> std::optional<FlatPlan> {
        PlannerOptions part = options;
        const size_t left = sets.size() > done ? sets.size() - done : 1;
        ++done;
        part.deadline = options.deadline.sooner(options.deadline.seconds_left() / static_cast<double>(left));
        Training training;
        train(flat, reserve, part, training);
        total.placements += training.placements;
        total.generations += training.generations;
        total.stopped |= training.stopped;
        if (training.best.device.empty()) return std::nullopt;
        return std::move(training.best);
      });
  if (!out.ok()) return out;
  if (total.stopped) out->stop = StopReason::kTimeLimit;
  out->detail = "trained for this problem on " + std::to_string(static_cast<int64_t>(total.placements)) +
                " timed placements (the paper trains for hours)";
  out->counters["placements"] = total.placements;
  out->counters["generations"] = total.generations;
  return out;
}

}  // namespace

PlannerEntry placeto_planner() {
  return {
      {.name = "placeto",
       .description = "a small message-passing network, trained on the evaluator until the deadline",
       .source = "Placeto (Addanki et al., NeurIPS 2019), sections 3 and 4; Moirai's baseline",
       .objectives = {Objective::kLatency, Objective::kColdLatency},
       .exploits =
           "unequal devices, transfers with contention, parameter loads, memory limits, as it learns them",
       .ignores = "order: ops run by rank"},
      plan_placeto};
}

}  // namespace heddle

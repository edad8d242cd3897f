// The model of a step, x(v, i): free op v on device i, M: the largest load. Minimise M, and with small weight
// the sum of the loads, with for every device, group of cores and resource of transfers
//   M >= base + sum of us(v, i) x(v, i) + sum of the transfers' times z(t, i, j)
// where `base` is what the ops that stay do, and z(t, i, j) >= x(u, i) + x(w, j) - 1 for a tensor from u to
// w, which goes to each device once. Parameters respect the memories' limits.
#include "lns_load.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heddle/solve/cp.h"
#include "lns_area.h"
#include "load_search.h"

namespace heddle {
namespace {

constexpr double kLoadTicks = 1 << 20;
constexpr int64_t kWeightOfLargest = 64;
constexpr size_t kMostLoadPlacements = 400;
constexpr double kLoadStepWork = 0.02;
// And seconds at most: some propagation is not counted as work.
constexpr double kLoadStepSeconds = 1;
constexpr uint64_t kLoadPolishEvery = 6;
constexpr uint64_t kLoadPolishMoves = 4000;
constexpr int kBytesShift = 10;

class LoadStep {
 public:
  LoadStep(const FlatProblem& flat, LoadModel& model, const std::vector<uint32_t>& device,
           const Neighbourhood& area, double period_us)
      : flat_(flat), model_(model), device_(device), area_(area), k_(flat.num_devices()) {
    tick_us_ = std::max(period_us, 1e-9) / kLoadTicks;
    for (uint32_t f = 0; f < area.free.size(); ++f) index_[area.free[f]] = f;
  }

  void build() {
    for (const uint32_t v : area_.free) model_.put(v, -1);
    terms_.resize(model_.loads().size());
    for (size_t r = 0; r < terms_.size(); ++r) terms_[r].add(length(model_.loads()[r]));
    for (uint32_t f = 0; f < area_.free.size(); ++f) add_op(f);
    std::map<uint32_t, bool> seen;
    for (const uint32_t v : area_.free) {
      for (const uint32_t t : flat_.outputs(v)) add_tensor(t);
      for (const uint32_t t : flat_.inputs(v)) {
        if (seen.try_emplace(t, true).second && !index_.contains(flat_.producer(t))) add_tensor(t);
      }
    }
    for (const uint32_t v : area_.free) model_.put(v, static_cast<int32_t>(device_[v]));
    add_loads();
    add_memory();
  }
  const CpModel& cp() const { return cp_; }

  std::vector<uint32_t> decode(const std::vector<double>& values) const {
    std::vector<uint32_t> device = device_;
    for (const auto& [v, f] : index_) {
      for (uint32_t i = 0; i < k_; ++i) {
        const auto& x = x_[f * k_ + i];
        if (x && values[static_cast<size_t>(x->var().index)] > 0.5) device[v] = i;
      }
    }
    return device;
  }

 private:
  int64_t length(double us) const {
    return static_cast<int64_t>(std::llround(std::clamp(us / tick_us_, 0.0, 1e6 * kLoadTicks)));
  }

  void add_op(uint32_t f) {
    const uint32_t v = area_.free[f];
    std::vector<CpLit> one;
    x_.resize((f + 1) * k_);
    for (uint32_t i = 0; i < k_; ++i) {
      const bool wanted = area_.devices.empty() || i == device_[v] ||
                          std::find(area_.devices.begin(), area_.devices.end(), i) != area_.devices.end();
      if (!wanted || !model_.possible(v, i)) continue;
      const CpLit x = cp_.add_literal();
      x_[f * k_ + i] = x;
      one.push_back(x);
      cp_.hint(x.var(), device_[v] == i ? 1 : 0);
      terms_[i].add(x, length(flat_.us(v, i)));
      for (const uint32_t g : model_.groups_of(i)) terms_[model_.of_group(g)].add(x, length(flat_.us(v, i)));
    }
    cp_.exactly_one(one);
  }

  void add_tensor(uint32_t t) {
    const uint32_t u = flat_.producer(t);
    const auto source = index_.find(u);
    for (uint32_t j = 0; j < k_; ++j) {
      bool stays = false;
      std::vector<CpLit> readers;
      bool now = false;
      for (const uint32_t w : flat_.readers(t)) {
        const auto at = index_.find(w);
        if (at == index_.end()) {
          stays = stays || device_[w] == j;
        } else if (const auto& x = x_[at->second * k_ + j]) {
          readers.push_back(*x);
          now = now || device_[w] == j;
        }
      }
      if (readers.empty() && !stays) continue;
      for (uint32_t i = 0; i < k_; ++i) {
        if (i == j) continue;
        if (source == index_.end()) {
          if (device_[u] == i && !stays) add_way(t, i, j, std::nullopt, readers, false, now);
        } else if (const auto& x = x_[source->second * k_ + i]) {
          add_way(t, i, j, *x, readers, stays, device_[u] == i && now);
        }
      }
    }
  }

  void add_way(uint32_t t, uint32_t i, uint32_t j, std::optional<CpLit> source,
               const std::vector<CpLit>& readers, bool stays, bool now) {
    const auto& way = flat_.way(i, j);
    const auto no_source = [&] { return source ? std::vector<CpLit>{!*source} : std::vector<CpLit>{}; };
    if (way.passage == Passage::kFree) return;
    if (way.passage == Passage::kNone) {
      for (const CpLit w : readers) {
        auto no = no_source();
        no.push_back(!w);
        cp_.any_of(no);
      }
      return;
    }
    if (way.resources.empty()) return;
    const int64_t time = length(way.time_us(flat_.bytes(t)));
    if (time == 0) return;
    std::optional<CpLit> moves = stays ? source : std::nullopt;
    if (!moves) {
      moves = cp_.add_literal();
      cp_.hint(moves->var(), now ? 1 : 0);
      for (const CpLit w : readers) {
        auto one = no_source();
        one.push_back(!w);
        one.push_back(*moves);
        cp_.any_of(one);
      }
    }
    for (const uint32_t r : way.resources) terms_[model_.of_resource(r)].add(*moves, time);
  }

  void add_loads() {
    const CpVar largest = cp_.add_integer(0, static_cast<int64_t>(4 * kLoadTicks));
    CpExpr sum;
    sum.add(largest, kWeightOfLargest);
    for (CpExpr& load : terms_) {
      if (load.terms.empty() && load.constant == 0) continue;
      CpExpr room(largest);
      for (const CpTerm& term : load.terms) {
        room.add(term.var, -term.coefficient);
        sum.add(term.var, term.coefficient);
      }
      room.add(-load.constant);
      cp_.linear(0, std::move(room), int64_t{1} << 60);
    }
    cp_.minimise(std::move(sum));
  }

  void add_memory() {
    if (!flat_.has_limits()) return;
    ParamUse use(flat_, Reserve(flat_.num_pools(), 0));
    std::vector<uint8_t> there(flat_.num_pools() * flat_.num_params(), 0);
    std::vector<int64_t> room(flat_.num_pools());
    for (size_t pool = 0; pool < room.size(); ++pool) room[pool] = flat_.pool_limit(pool);
    for (uint32_t v = 0; v < flat_.num_ops(); ++v) {
      if (index_.contains(v)) continue;
      const uint32_t pool = flat_.pool(device_[v]);
      for (const uint32_t p : flat_.params(v)) {
        uint8_t& mark = there[pool * flat_.num_params() + p];
        if (!mark) room[pool] = plus_bytes(room[pool], -flat_.param_bytes(p));
        mark = 1;
      }
    }
    for (size_t pool = 0; pool < room.size(); ++pool) {
      if (flat_.pool_limit(pool) <= 0) continue;
      CpExpr bytes;
      int64_t now = 0;
      for (const auto& [v, f] : index_) {
        int64_t own = 0;
        for (const uint32_t p : flat_.params(v)) {
          if (!there[pool * flat_.num_params() + p]) own = plus_bytes(own, flat_.param_bytes(p));
        }
        own >>= kBytesShift;
        if (own == 0) continue;
        for (uint32_t i = 0; i < k_; ++i) {
          if (flat_.pool(i) != pool || !x_[f * k_ + i]) continue;
          bytes.add(*x_[f * k_ + i], own);
          if (device_[v] == i) now = plus_bytes(now, own);
        }
      }
      if (!bytes.terms.empty()) cp_.linear(0, std::move(bytes), std::max(now, room[pool] >> kBytesShift));
    }
  }

  const FlatProblem& flat_;
  LoadModel& model_;
  const std::vector<uint32_t>& device_;
  const Neighbourhood& area_;
  const size_t k_;
  double tick_us_ = 1;
  std::map<uint32_t, uint32_t> index_;  // free op -> its number
  CpModel cp_;
  std::vector<std::optional<CpLit>> x_;
  std::vector<CpExpr> terms_;  // per load
};

class LoadLns final : public LnsSearch {
 public:
  LoadLns(const FlatProblem& flat, FlatPlan start, uint64_t seed)
      : flat_(flat), model_(flat), random_(seed), seed_(seed) {
    place_.resize(flat.num_ops());
    restart(std::move(start));
    size_ = std::max<size_t>(8, kMostLoadPlacements / std::max<size_t>(1, flat.num_devices()) / 4);
  }

  void restart(FlatPlan plan) override {
    plan_ = std::move(plan);
    for (uint32_t i = 0; i < plan_.order.size(); ++i) place_[plan_.order[i]] = i;
    put(plan_.device);
  }

  Status step(const Deadline& deadline, const Accept& accept) override {
    const Neighbourhood area = draw();
    LoadStep step(flat_, model_, plan_.device, area, period_us_);
    step.build();
    SolveOptions options;
    options.deadline = deadline.sooner(kLoadStepSeconds);
    options.seed = random_.next();
    options.work = kLoadStepWork;
    HEDDLE_ASSIGN_OR_RETURN(const Solution solution, solve(step.cp(), options));
    const bool complete = solution.status == SolveStatus::kOptimal;
    bool better = false;
    if (solution.has_values()) better = consider(step.decode(solution.values), accept);
    if (!complete)
      size_ = std::max<size_t>(4, size_ * 4 / 5);
    else if (!better)
      size_ = std::min(std::max<size_t>(8, kMostLoadPlacements / flat_.num_devices()), size_ + 2);
    ++counts_.steps;
    counts_.better += better ? 1 : 0;
    counts_.complete += complete ? 1 : 0;
    if (counts_.steps % kLoadPolishEvery == 0) polish(deadline, accept);
    return {};
  }

  const FlatPlan& best() const override { return plan_; }
  double best_us() const override { return period_us_; }

 private:
  void put(const std::vector<uint32_t>& device) {
    for (uint32_t v = 0; v < device.size(); ++v) model_.put(v, static_cast<int32_t>(device[v]));
    model_.refresh();
    period_us_ = model_.period_us();
    norm_us_ = model_.norm_us();
    excess_ = excess(device);
  }
  int64_t excess(const std::vector<uint32_t>& device) const {
    if (!flat_.has_limits()) return 0;
    ParamUse use(flat_, Reserve(flat_.num_pools(), 0));
    for (uint32_t v = 0; v < device.size(); ++v) use.add(v, device[v]);
    return use.excess();
  }

  // Ops of the busiest device and others, near each other or anywhere.
  Neighbourhood draw() {
    Neighbourhood area;
    const size_t n = flat_.num_ops(), size = std::min(size_, n);
    std::vector<uint8_t> seen(n, 0);
    const auto take = [&](uint32_t v) {
      if (area.free.size() >= size || seen[v]) return;
      seen[v] = 1;
      area.free.push_back(v);
    };
    const uint32_t busiest = model_.busiest();
    std::vector<uint32_t> there;
    for (uint32_t v = 0; v < n; ++v) {
      if (plan_.device[v] == busiest) there.push_back(v);
    }
    uint32_t centre = static_cast<uint32_t>(random_.below(n));
    if (!there.empty() && random_.chance(0.7)) centre = there[random_.below(there.size())];
    const double dice = random_.unit();
    if (dice < 0.4) {
      // Half from the busiest device, half from anywhere.
      random_.shuffle(there);
      for (size_t i = 0; i < there.size() && 2 * area.free.size() < size; ++i) take(there[i]);
      for (size_t i = 0; i < 4 * size; ++i) take(static_cast<uint32_t>(random_.below(n)));
    } else if (dice < 0.75) {
      take(centre);
      for (size_t i = 0; i < area.free.size() && area.free.size() < size; ++i) {
        for (const uint32_t t : flat_.inputs(area.free[i])) take(flat_.producer(t));
        for (const uint32_t t : flat_.outputs(area.free[i])) {
          for (const uint32_t w : flat_.readers(t)) take(w);
        }
      }
    } else {
      const size_t at = place_[centre], before = random_.below(size);
      const size_t first = std::min(at > before ? at - before : 0, n - size);
      for (size_t i = first; i < first + size; ++i) take(plan_.order[i]);
    }
    std::sort(area.free.begin(), area.free.end());
    return area;
  }

  // Less period, or the same with less load elsewhere.
  bool consider(const std::vector<uint32_t>& device, const Accept& accept) {
    if (device == plan_.device) return false;
    const double period = period_us_, norm = norm_us_;
    const int64_t before = excess_;
    put(device);
    const bool better = excess_ < before || (excess_ == before && period_us_ < period * (1 - 1e-12));
    const bool same = excess_ == before && period_us_ <= period && norm_us_ < norm;
    if (better ? accept({device, plan_.order}) : same && !flat_.has_limits()) {
      plan_.device = device;
      return better;
    }
    put(plan_.device);
    return false;
  }

  void polish(const Deadline& deadline, const Accept& accept) {
    LoadSearch local(flat_, plan_.device, Reserve(flat_.num_pools(), 0), seed_ + counts_.steps);
    local.run({kLoadPolishMoves, 0.005, 1e-4, 0}, deadline);
    if (local.best_us() < period_us_) consider(local.best(), accept);
  }

  const FlatProblem& flat_;
  LoadModel model_;
  Random random_;
  const uint64_t seed_;
  size_t size_ = 8;
  FlatPlan plan_;
  double period_us_ = kImpossible, norm_us_ = kImpossible;
  int64_t excess_ = 0;
  std::vector<uint32_t> place_;
};

}  // namespace

std::unique_ptr<LnsSearch> make_load_lns(const FlatProblem& flat, FlatPlan start, uint64_t seed) {
  return std::make_unique<LoadLns>(flat, std::move(start), seed);
}

}  // namespace heddle

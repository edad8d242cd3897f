// ppipe-dp: exact planning of fleets with one or two classes. A table per model gives the best rate for every
// number of devices of both classes (ModelTable). The devices are then divided among the models. Max-min:
// bisection over all rates in the tables. Cost and power: the cheapest sum of the models' least needs.
// Goodput: adding up the tables. The problem is that of PPipe, ATC'25, appendix A.2, without its limit of one
// configuration per sequence of classes.
#include <algorithm>
#include <array>
#include <vector>

#include "columns.h"
#include "heddle/base/spelling.h"
#include "planner_parts.h"

namespace heddle {
namespace {

// One or two pipelines that share a device.
struct Piece {
  int column = -1, other = -1;  // -1: none
  std::array<int64_t, kMaxPartitions> counts{}, other_counts{};
};

// The two classes of a table. If the fleet has one class, class_a is -1 and count_a is 0.
struct TableAxes {
  int class_a = 0, class_b = 0;
  int count_a = 0, count_b = 0;
  size_t cells() const { return static_cast<size_t>(count_a + 1) * static_cast<size_t>(count_b + 1); }
  size_t at(int a, int b) const {
    return static_cast<size_t>(a) * static_cast<size_t>(count_b + 1) + static_cast<size_t>(b);
  }
};

class ModelTable {
 public:
  // Computes the best rate at every (a, b). Pipelines of one model and position may share devices of either
  // class. Exact if no device is shared by more than two pipelines, and no two pipelines share more than one
  // device; always exact if no device is split. O(cells * kept pieces + pairs of sharing pipelines).
  ModelTable(const TableAxes& axes, const std::vector<Column>& columns);

  double rate(int a, int b) const { return best_[axes_.at(a, b)]; }
  // Pipelines that reach rate(a, b).
  std::vector<FleetPipeline> pipelines(int a, int b) const;
  // [a]: the smallest b with rate(a, b) >= rate; count_b + 1 if there is none.
  std::vector<int> least_b(double rate) const;
  const std::vector<double>& rates() const { return best_; }

 private:
  struct Entry {
    int a = 0, b = 0;
    double rate = 0;
    Piece piece;
  };
  struct Sharing;
  void walk_staircase(int index, Sharing& sharing);
  void join_pairs(const Sharing& sharing);
  void close();
  static void offer(std::vector<Entry>& table, const TableAxes& axes, int a, int b, double rate,
                    const Piece& piece);

  TableAxes axes_;
  const std::vector<Column>& columns_;
  std::vector<Entry> single_;  // [cell]: the best piece that uses exactly these devices
  std::vector<Entry> kept_;    // pieces better than every sum of smaller ones
  std::vector<double> best_;
  std::vector<int> via_;  // [cell]: index into kept_, or kOneLessA, kOneLessB or kNothing
};

constexpr int kFree[] = {3, 4, 6, 8, 9};  // twelfths that a device split into 2, 3 or 4 can leave free
constexpr double kSame = 1e-12;           // relative: smaller differences between rates are rounding errors
constexpr int kOneLessA = -1, kOneLessB = -2, kNothing = -3;

// For each bin (partition position and class): pipelines that leave a part of a device free, and pipelines
// that need at most that part beside whole devices.
struct ModelTable::Sharing {
  // [(position * 2 + class) * 5 + index into kFree][cell]
  std::vector<std::vector<Entry>> leaves, needs;
};

void ModelTable::offer(std::vector<Entry>& table, const TableAxes& axes, int a, int b, double rate,
                       const Piece& piece) {
  if (a > axes.count_a || b > axes.count_b) return;
  if (table.empty()) table.resize(axes.cells());
  auto& cell = table[axes.at(a, b)];
  if (rate > cell.rate) cell = {a, b, rate, piece};
}

ModelTable::ModelTable(const TableAxes& axes, const std::vector<Column>& columns)
    : axes_(axes), columns_(columns) {
  single_.resize(axes.cells());
  Sharing sharing;
  sharing.leaves.resize(static_cast<size_t>(kMaxPartitions) * 2 * std::size(kFree));
  sharing.needs.resize(sharing.leaves.size());
  for (size_t c = 0; c < columns.size(); ++c) walk_staircase(static_cast<int>(c), sharing);
  join_pairs(sharing);
  close();
}

// Adds every rate of the column: the pool of the slowest partition grows by one virtual device at a time.
void ModelTable::walk_staircase(int index, Sharing& sharing) {
  const auto& column = columns_[static_cast<size_t>(index)];
  Piece piece;
  piece.column = index;
  const auto stages = static_cast<size_t>(column.stages);
  for (size_t k = 0; k < stages; ++k) {
    piece.counts[k] = 1;
    const int c = column.stage[k].device_class;
    if (c != axes_.class_a && c != axes_.class_b) return;
  }
  while (true) {
    int whole[2] = {0, 0};
    int free[kMaxPartitions] = {};
    for (size_t k = 0; k < stages; ++k) {
      const auto twelfths = piece.counts[k] * (kTwelfths / column.stage[k].share);
      const auto devices = whole_devices(twelfths);
      const int side = column.stage[k].device_class == axes_.class_a ? 0 : 1;
      if (devices > axes_.count_a + axes_.count_b) return;
      whole[side] += static_cast<int>(devices);
      free[k] = static_cast<int>(devices * kTwelfths - twelfths);
    }
    const double rate = column.rate(piece.counts);
    offer(single_, axes_, whole[0], whole[1], rate, piece);
    bool may_fit = whole[0] <= axes_.count_a && whole[1] <= axes_.count_b;
    for (size_t k = 0; k < stages; ++k) {
      if (free[k] == 0) continue;
      const size_t side = column.stage[k].device_class == axes_.class_a ? 0 : 1;
      for (size_t i = 0; i < std::size(kFree); ++i) {
        const size_t bin = (k * 2 + side) * std::size(kFree) + i;
        if (kFree[i] <= free[k]) offer(sharing.leaves[bin], axes_, whole[0], whole[1], rate, piece);
        if (kTwelfths - free[k] <= kFree[i]) {
          const int a = whole[0] - (side == 0), b = whole[1] - (side == 1);
          offer(sharing.needs[bin], axes_, a, b, rate, piece);
          may_fit = may_fit || (a <= axes_.count_a && b <= axes_.count_b);
        }
      }
    }
    if (!may_fit) return;
    for (size_t k = 0; k < stages; ++k)
      if (static_cast<double>(piece.counts[k]) * column.stage[k].rate_per_s <= rate * (1 + kSame))
        ++piece.counts[k];
  }
}

void ModelTable::join_pairs(const Sharing& sharing) {
  // The entries of a table that no entry with at most as many devices equals.
  const auto useful = [&](const std::vector<Entry>& table) {
    std::vector<Entry> entries;
    if (table.empty()) return entries;
    std::vector<double> so_far(static_cast<size_t>(axes_.count_b) + 1, 0);
    for (int a = 0; a <= axes_.count_a; ++a) {
      double row = 0;
      for (int b = 0; b <= axes_.count_b; ++b) {
        const auto& e = table[axes_.at(a, b)];
        auto& column = so_far[static_cast<size_t>(b)];
        row = std::max(row, column);
        if (e.rate > row) {
          entries.push_back(e);
          row = e.rate;
        }
        column = row;
      }
    }
    return entries;
  };
  for (size_t bin = 0; bin < sharing.leaves.size(); ++bin) {
    const auto leaves = useful(sharing.leaves[bin]);
    if (leaves.empty()) continue;
    for (const auto& need : useful(sharing.needs[bin])) {
      for (const auto& leave : leaves) {
        const int a = leave.a + need.a, b = leave.b + need.b;
        if (a > axes_.count_a) break;
        if (b > axes_.count_b) continue;
        auto& cell = single_[axes_.at(a, b)];
        if (leave.rate + need.rate <= cell.rate) continue;
        cell = {a, b, leave.rate + need.rate, leave.piece};
        cell.piece.other = need.piece.column;
        cell.piece.other_counts = need.piece.counts;
      }
    }
  }
}

// Unbounded knapsack over both classes. Cells are visited in the order of a, then b, so a cell's predecessors
// are complete.
void ModelTable::close() {
  best_.assign(axes_.cells(), 0);
  via_.assign(axes_.cells(), kNothing);
  for (int a = 0; a <= axes_.count_a; ++a) {
    for (int b = 0; b <= axes_.count_b; ++b) {
      const auto cell = axes_.at(a, b);
      double best = 0;
      int via = kNothing;
      if (a > 0 && best_[axes_.at(a - 1, b)] > best) best = best_[axes_.at(a - 1, b)], via = kOneLessA;
      if (b > 0 && best_[axes_.at(a, b - 1)] > best) best = best_[axes_.at(a, b - 1)], via = kOneLessB;
      for (size_t i = 0; i < kept_.size() && kept_[i].a <= a; ++i) {
        if (kept_[i].b > b) continue;
        const double rate = best_[axes_.at(a - kept_[i].a, b - kept_[i].b)] + kept_[i].rate;
        if (rate > best * (1 + kSame)) best = rate, via = static_cast<int>(i);
      }
      if (single_[cell].rate > best * (1 + kSame)) {
        best = single_[cell].rate;
        via = static_cast<int>(kept_.size());
        kept_.push_back(single_[cell]);
      }
      best_[cell] = best;
      via_[cell] = via;
    }
  }
  single_ = {};
}

std::vector<FleetPipeline> ModelTable::pipelines(int a, int b) const {
  std::vector<FleetPipeline> all;
  while (true) {
    const int via = via_[axes_.at(a, b)];
    if (via == kNothing) break;
    if (via == kOneLessA) {
      --a;
    } else if (via == kOneLessB) {
      --b;
    } else {
      const auto& e = kept_[static_cast<size_t>(via)];
      all.push_back(make_pipeline(columns_[static_cast<size_t>(e.piece.column)], e.piece.counts));
      if (e.piece.other >= 0)
        all.push_back(make_pipeline(columns_[static_cast<size_t>(e.piece.other)], e.piece.other_counts));
      a -= e.a;
      b -= e.b;
    }
  }
  merge_pipelines(all);
  return all;
}

std::vector<int> ModelTable::least_b(double rate) const {
  std::vector<int> least(static_cast<size_t>(axes_.count_a) + 1);
  int b = axes_.count_b + 1;
  for (int a = 0; a <= axes_.count_a; ++a) {
    while (b > 0 && this->rate(a, b - 1) >= rate) --b;
    least[static_cast<size_t>(a)] = b;
  }
  return least;
}

constexpr size_t kMaxCells = 6'000;  // of a table: joining pairs that share a device takes up to their square
constexpr double kSameValue = 1e-12;

TableAxes axes_of(const Fleet& fleet) {
  std::vector<int> present;
  for (size_t c = 0; c < fleet.classes.size(); ++c)
    if (fleet.classes[c].count > 0) present.push_back(static_cast<int>(c));
  const auto count = [&](int c) { return static_cast<int>(fleet.classes[static_cast<size_t>(c)].count); };
  if (present.size() == 1) return {-1, present[0], 0, count(present[0])};
  // The smaller class comes first, since dividing the devices is quadratic in its count.
  if (count(present[0]) > count(present[1])) std::swap(present[0], present[1]);
  return {present[0], present[1], count(present[0]), count(present[1])};
}

struct Split {
  std::vector<std::pair<int, int>> devices;  // of each model
};

// Serves `targets` with the fewest devices of class b for every number of class a; cheapest() then picks the
// cheapest number of a.
class LeastDevices {
 public:
  LeastDevices(const TableAxes& axes, const std::vector<ModelTable>& tables) : axes_(axes), tables_(tables) {}

  bool serve(const std::vector<double>& targets) {
    least_.clear();
    sums_.clear();
    for (size_t m = 0; m < tables_.size(); ++m) {
      least_.push_back(tables_[m].least_b(targets[m] * (1 - kSameValue)));
      sums_.push_back(m == 0 ? least_[0] : add(sums_.back(), least_.back()));
    }
    return sums_.back().back() <= axes_.count_b;
  }

  // The cheapest split of the last call of serve(), which must have returned true.
  Split cheapest(double cost_a, double cost_b) const {
    int best = -1;
    double best_cost = 0;
    for (int a = 0; a <= axes_.count_a; ++a) {
      const int b = sums_.back()[static_cast<size_t>(a)];
      if (b > axes_.count_b) continue;
      const double cost = cost_a * a + cost_b * b;
      if (best < 0 || cost < best_cost * (1 - kSameValue)) best = a, best_cost = cost;
    }
    Split split;
    split.devices.resize(tables_.size());
    int left = best;
    for (size_t m = tables_.size(); m-- > 0;) {
      int own = left;
      if (m > 0) {
        const int sum = sums_[m][static_cast<size_t>(left)];
        own = 0;
        while (sums_[m - 1][static_cast<size_t>(left - own)] + least_[m][static_cast<size_t>(own)] != sum)
          ++own;
      }
      split.devices[m] = {own, least_[m][static_cast<size_t>(own)]};
      left -= own;
    }
    return split;
  }

 private:
  std::vector<int> add(const std::vector<int>& x, const std::vector<int>& y) const {
    std::vector<int> sum(x.size(), axes_.count_b + 1);
    for (size_t a = 0; a < x.size(); ++a)
      for (size_t i = 0; i <= a; ++i) sum[a] = std::min(sum[a], x[i] + y[a - i]);
    return sum;
  }

  const TableAxes& axes_;
  const std::vector<ModelTable>& tables_;
  std::vector<std::vector<int>> least_, sums_;
};

Split split_max_min(const TableAxes& axes, const std::vector<ModelTable>& tables, const FleetTask& task) {
  const auto& load = task.goal.load;
  std::vector<double> values = {0};
  for (size_t m = 0; m < tables.size(); ++m)
    for (const double rate : tables[m].rates()) {
      const double value = (task.served_of(m) + rate) / load[m];
      if (value <= task.bound.value * (1 + kSameValue)) values.push_back(value);
    }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  LeastDevices least(axes, tables);
  const auto reached = [&](double value) {
    std::vector<double> targets;
    for (size_t m = 0; m < load.size(); ++m)
      targets.push_back(std::max(0.0, value * load[m] - task.served_of(m)));
    return least.serve(targets);
  };
  size_t low = 0, high = values.size();
  while (high - low > 1) {
    const auto middle = (low + high) / 2;
    (reached(values[middle]) ? low : high) = middle;
  }
  reached(values[low]);
  return least.cheapest(1.0 / std::max(1, axes.count_a), 1.0 / std::max(1, axes.count_b));
}

Split split_goodput(const TableAxes& axes, const std::vector<ModelTable>& tables, const FleetTask& task) {
  // best[m][cell]: value of the first m + 1 models; from[m][cell]: devices of model m in it.
  std::vector<std::vector<double>> best(tables.size(), std::vector<double>(axes.cells(), 0));
  std::vector<std::vector<std::pair<int, int>>> from(tables.size(),
                                                     std::vector<std::pair<int, int>>(axes.cells()));
  for (size_t m = 0; m < tables.size(); ++m) {
    for (int a = 0; a <= axes.count_a; ++a)
      for (int b = 0; b <= axes.count_b; ++b) {
        double value = -1;
        std::pair<int, int> own;
        for (int i = m == 0 ? a : 0; i <= a; ++i)
          for (int j = m == 0 ? b : 0; j <= b; ++j) {
            const double v = std::min(task.served_of(m) + tables[m].rate(i, j), task.goal.load[m]) +
                             (m == 0 ? 0 : best[m - 1][axes.at(a - i, b - j)]);
            if (v > value * (1 + kSameValue) || value < 0) value = v, own = {i, j};
          }
        best[m][axes.at(a, b)] = value;
        from[m][axes.at(a, b)] = own;
      }
  }
  Split split;
  split.devices.resize(tables.size());
  int a = axes.count_a, b = axes.count_b;
  for (size_t m = tables.size(); m-- > 0;) {
    split.devices[m] = from[m][axes.at(a, b)];
    a -= split.devices[m].first;
    b -= split.devices[m].second;
  }
  return split;
}

}  // namespace

bool dp_fits(const Fleet& fleet) {
  size_t present = 0, cells = 1;
  for (const auto& c : fleet.classes) {
    if (c.count == 0) continue;
    ++present;
    if (c.count >= static_cast<int64_t>(kMaxCells)) return false;
    cells *= static_cast<size_t>(c.count) + 1;
    if (present > 2 || cells > kMaxCells) return false;
  }
  return true;
}

Error no_plan_serves(const FleetTask& task) {
  std::string text = "no plan was found that serves the load: ";
  for (size_t m = 0; m < task.goal.load.size(); ++m)
    text += (m > 0 ? ", " : "") + quote_text(task.fleet.models[m].name) + " " +
            std::to_string(task.goal.load[m]) + " /s";
  FleetGoal most{FleetObjective::kMaxMin, task.goal.load};
  const auto bound = best_price_bound(task.fleet, task.needs, most, task.options.deadline.sooner(5));
  if (bound.value >= 1 && task.options.deadline.should_stop())
    return cancelled_error(
        "the planner was stopped before it had a plan that serves the load; give it more time");
  if (bound.value < 1)
    text += "; with all devices at most " + std::to_string(100 * bound.value) + " % of it can be served";
  return {Code::kInfeasible, text};
}

Result<FleetAnswer> plan_dp(const FleetTask& task) {
  const auto& fleet = task.fleet;
  if (!dp_fits(fleet))
    return unsupported(
        "ppipe-dp plans for at most two classes with devices, (count + 1) * (count + 1) up to " +
        std::to_string(kMaxCells) + "; use ppipe-columns or auto");
  const auto axes = axes_of(fleet);
  const auto objective = task.goal.objective;
  std::vector<ModelTable> tables;
  for (const auto& columns : task.columns) {
    if (task.options.deadline.should_stop())
      return cancelled_error("ppipe-dp was stopped before it had a plan; give it more time");
    tables.emplace_back(axes, columns);
  }
  Split split;
  if (objective == FleetObjective::kMaxMin) {
    split = split_max_min(axes, tables, task);
  } else if (objective == FleetObjective::kGoodput) {
    split = split_goodput(axes, tables, task);
  } else {
    LeastDevices least(axes, tables);
    auto targets = task.goal.load;
    for (size_t m = 0; m < targets.size(); ++m) targets[m] = std::max(0.0, targets[m] - task.served_of(m));
    if (!least.serve(targets)) return no_plan_serves(task);
    const auto cost = [&](int c) {
      return c < 0 ? 0 : device_cost(fleet.classes[static_cast<size_t>(c)], objective);
    };
    split = least.cheapest(cost(axes.class_a), cost(axes.class_b));
  }
  FleetAnswer answer;
  for (size_t m = 0; m < tables.size(); ++m)
    answer.models.push_back({tables[m].pipelines(split.devices[m].first, split.devices[m].second), 0});
  // Without split devices no two pipelines share one, so the tables are exact.
  answer.optimal = std::all_of(fleet.classes.begin(), fleet.classes.end(),
                               [](const DeviceClass& c) { return c.count == 0 || c.share_levels == 1; });
  answer.proof = "exact dynamic program over whole devices";
  return answer;
}

}  // namespace heddle

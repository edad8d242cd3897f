#include "tables.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr int kFree[] = {3, 4, 6, 8, 9};  // twelfths that a device split into 2, 3 or 4 can leave free
constexpr double kSame = 1e-12;           // relative: smaller differences between rates are rounding errors
constexpr int kOneLessA = -1, kOneLessB = -2, kNothing = -3;

}  // namespace

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

}  // namespace heddle

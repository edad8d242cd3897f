// Tables of the exact planner: a model's best rate on a whole devices of one class and b of another.
#pragma once

#include <array>
#include <vector>

#include "columns.h"

namespace heddle {

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

}  // namespace heddle

// What one model gets out of a whole devices of one class and b of another: the tables of the exact planner.
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

// The two classes that tables are over; a is -1, with a count of 0, when the fleet has one class.
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
  // Best rate at every (a, b), devices of both classes shared by pipelines of one model and position. Optimal
  // when no device is shared by more than two pipelines, and these two share one only; always when nothing is
  // split. O(cells * kept pieces + pairs of sharing pipelines).
  ModelTable(const TableAxes& axes, const std::vector<Column>& columns);

  double rate(int a, int b) const { return best_[axes_.at(a, b)]; }
  // The pipelines that reach rate(a, b).
  std::vector<FleetPipeline> pipelines(int a, int b) const;
  // [a]: the least b with rate(a, b) >= rate; count_b + 1 where there is none.
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
  std::vector<Entry> single_;  // [cell]: the best piece of exactly these devices
  std::vector<Entry> kept_;    // pieces that are better than all sums of smaller ones
  std::vector<double> best_;
  std::vector<int> via_;  // [cell]: index into kept_, or where the same rate is had with less
};

}  // namespace heddle

// Which parameters lie in which memory: while ops move between devices, and while ops are placed one by one.
#pragma once

#include <algorithm>
#include <vector>

#include "flat_problem.h"

namespace heddle {

// Memory that a planner must leave free in each pool for tensors; parameters are counted exactly.
using Reserve = std::vector<int64_t>;

class ParamUse {
 public:
  ParamUse(const FlatProblem& flat, const Reserve& reserve) : flat_(flat), reserve_(reserve) {
    if (!flat.has_limits()) return;
    reserve_.resize(flat.num_pools(), 0);
    used_.assign(flat.num_pools(), 0);
    users_.assign(flat.num_pools() * flat.num_params(), 0);
  }
  void add(uint32_t op, uint32_t device) { change(op, device, 1); }
  void remove(uint32_t op, uint32_t device) { change(op, device, -1); }
  // Bytes beyond the pools' limits, when so much is reserved for tensors.
  int64_t excess() const {
    int64_t sum = 0;
    for (size_t p = 0; p < used_.size(); ++p) {
      if (flat_.pool_limit(p) <= 0 || used_[p] == 0) continue;
      sum = plus_bytes(
          sum, std::max<int64_t>(0, plus_bytes(plus_bytes(used_[p], reserve_[p]), -flat_.pool_limit(p))));
    }
    return sum;
  }

 private:
  void change(uint32_t op, uint32_t device, int32_t by) {
    if (users_.empty()) return;
    const uint32_t pool = flat_.pool(device);
    for (const uint32_t p : flat_.params(op)) {
      int32_t& users = users_[pool * flat_.num_params() + p];
      const bool was = users > 0;
      users += by;
      if (was != (users > 0)) used_[pool] = plus_bytes(used_[pool], by * flat_.param_bytes(p));
    }
  }
  const FlatProblem& flat_;
  Reserve reserve_;
  std::vector<int64_t> used_;
  std::vector<int32_t> users_;  // pool x param
};

// What ops that are placed leave of the pools for others.
class ParamRoom {
 public:
  explicit ParamRoom(const FlatProblem& flat, const Reserve& reserve = {})
      : flat_(flat), there_(flat.num_pools() * flat.num_params(), 0) {
    for (size_t p = 0; p < flat.num_pools(); ++p)
      room_.push_back(flat.pool_limit(p) - (reserve.empty() ? 0 : reserve[p]));
  }
  // Of the op's parameters, what its device does not have yet.
  int64_t new_bytes(uint32_t op, size_t device) const {
    const uint32_t pool = flat_.pool(device);
    int64_t bytes = 0;
    for (const uint32_t p : flat_.params(op)) {
      if (!there_[pool * flat_.num_params() + p]) bytes = plus_bytes(bytes, flat_.param_bytes(p));
    }
    return bytes;
  }
  // Places the op; the bytes that are new there.
  int64_t add(uint32_t op, size_t device) {
    const uint32_t pool = flat_.pool(device);
    const int64_t bytes = new_bytes(op, device);
    for (const uint32_t p : flat_.params(op)) there_[pool * flat_.num_params() + p] = 1;
    room_[pool] = plus_bytes(room_[pool], -bytes);
    return bytes;
  }
  bool has(size_t pool, size_t param) const { return there_[pool * flat_.num_params() + param] != 0; }
  // Bytes left; without meaning where the pool has no limit.
  int64_t room(size_t pool) const { return room_[pool]; }

 private:
  const FlatProblem& flat_;
  std::vector<int64_t> room_;   // per pool
  std::vector<uint8_t> there_;  // pool x param
};

}  // namespace heddle

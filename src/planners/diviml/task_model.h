// A problem as DiviML sees it: tasks of a DAG, each executed for one or several requests (the paper's inputs
// l = 1..L). The requests of one task on one device form a batch.
//
// A problem has several requests when its known segments say so: each known segment of several ops is a batch
// of equal ops, one of each of some copies of one graph (batch_problem() makes such problems). Otherwise
// every op is a task and there is one request.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/flat_problem.h"

namespace heddle {

// The requests of one task that run together on one device.
struct Batch {
  uint32_t task = 0, device = 0;
  uint32_t requests = 0;  // bit l: request l
  friend bool operator==(const Batch&, const Batch&) = default;
};

class TaskModel {
 public:
  // All tensors from src to dst together: without contention they arrive when the largest one does.
  struct Edge {
    uint32_t src = 0, dst = 0;
    int64_t bytes = 0;
  };

  // The flat problem must outlive this object. Tasks are numbered in a topological order.
  // O(V log V + E + known segments).
  explicit TaskModel(const FlatProblem& flat);
  // These tasks alone, numbered in their order, which must be ascending, with the edges between them.
  TaskModel part(std::span<const uint32_t> tasks) const;

  const FlatProblem& flat() const { return flat_; }
  size_t num_tasks() const { return tasks_; }
  size_t num_requests() const { return requests_; }
  size_t num_devices() const { return flat_.num_devices(); }
  uint32_t all_requests() const { return (uint32_t{1} << requests_) - 1; }

  uint32_t op(size_t task, size_t request) const { return ops_[task * requests_ + request]; }
  // Of the whole model only.
  uint32_t task_of(size_t op) const { return task_of_[op]; }
  uint32_t request_of(size_t op) const { return request_of_[op]; }
  // Time of a batch of `count` requests; infinite where the device cannot run it.
  double us(size_t task, size_t device, size_t count) const {
    return us_[(task * num_devices() + device) * requests_ + count - 1];
  }
  double us(const Batch& b) const {
    return us(b.task, b.device, static_cast<size_t>(__builtin_popcount(b.requests)));
  }
  double transfer_us(size_t from, size_t to, int64_t bytes) const {
    return from == to ? 0 : flat_.transfer_us(from, to, bytes);
  }

  std::span<const Edge> in(size_t task) const { return slice(in_, in_begin_, task); }
  std::span<const Edge> out(size_t task) const { return slice(out_, out_begin_, task); }

 private:
  static std::span<const Edge> slice(const std::vector<Edge>& v, const std::vector<uint32_t>& begin,
                                     size_t i) {
    return std::span<const Edge>(v).subspan(begin[i], begin[i + 1] - begin[i]);
  }
  TaskModel(const FlatProblem& flat, size_t tasks, size_t requests);
  bool find_requests();
  void take_ops_as_tasks();
  void fill_times();
  void fill_edges();
  void set_edges(std::vector<Edge> edges);

  const FlatProblem& flat_;
  size_t tasks_ = 0, requests_ = 1;
  std::vector<uint32_t> ops_, task_of_, request_of_;
  std::vector<double> us_;
  std::vector<Edge> in_, out_;
  std::vector<uint32_t> in_begin_, out_begin_;
};

// Appends a part's batches, with the numbers that its tasks have in the whole model.
void append_batches(const std::vector<Batch>& own, const std::vector<uint32_t>& tasks,
                    std::vector<Batch>& all);

// Decisions as an assignment: each batch of several requests is a segment.
Assignment to_assignment(const TaskModel& model, const std::vector<Batch>& batches);
// The inverse, batches by their place in the order; ops of one device and task that are one segment form a
// batch. Empty when the assignment uses other devices.
std::vector<Batch> to_batches(const TaskModel& model, const Assignment& assignment);

}  // namespace heddle

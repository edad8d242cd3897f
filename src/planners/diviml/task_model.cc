#include "task_model.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace heddle {
namespace {

constexpr size_t kMostRequests = 16;

uint32_t root_of(std::vector<uint32_t>& parent, uint32_t v) {
  while (parent[v] != v) v = parent[v] = parent[parent[v]];
  return v;
}

}  // namespace

TaskModel::TaskModel(const FlatProblem& flat) : flat_(flat) {
  if (!find_requests()) take_ops_as_tasks();
  fill_edges();
  fill_times();
}

TaskModel::TaskModel(const FlatProblem& flat, size_t tasks, size_t requests)
    : flat_(flat), tasks_(tasks), requests_(requests) {}

TaskModel TaskModel::part(std::span<const uint32_t> tasks) const {
  constexpr uint32_t kOutside = UINT32_MAX;
  TaskModel part(flat_, tasks.size(), requests_);
  const size_t row = num_devices() * requests_;
  std::vector<uint32_t> number(tasks_, kOutside);
  std::vector<Edge> edges;
  for (uint32_t i = 0; i < tasks.size(); ++i) {
    const uint32_t t = tasks[i];
    number[t] = i;
    part.ops_.insert(part.ops_.end(), &ops_[t * requests_], &ops_[t * requests_] + requests_);
    part.us_.insert(part.us_.end(), &us_[t * row], &us_[t * row] + row);
  }
  for (const uint32_t t : tasks) {
    for (const Edge& e : out(t)) {
      if (number[e.dst] != kOutside) edges.push_back({number[t], number[e.dst], e.bytes});
    }
  }
  part.set_edges(std::move(edges));
  return part;
}

void TaskModel::take_ops_as_tasks() {
  tasks_ = flat_.num_ops();
  requests_ = 1;
  ops_.assign(flat_.topological().begin(), flat_.topological().end());
  task_of_.resize(tasks_);
  for (uint32_t t = 0; t < tasks_; ++t) task_of_[ops_[t]] = t;
  request_of_.assign(tasks_, 0);
}

// Ops that some known segment unites are copies of one task. All tasks must have the same number of copies,
// copy l being the l-th in the order of ids, and edges must lead from copy l to copy l.
bool TaskModel::find_requests() {
  const size_t n = flat_.num_ops();
  std::vector<uint32_t> parent(n);
  std::iota(parent.begin(), parent.end(), 0u);
  for (const SegmentCost& s : flat_.problem().costs->segments()) {
    for (size_t i = 1; i < s.ops.size(); ++i) {
      const uint32_t a = root_of(parent, static_cast<uint32_t>(s.ops[0].index()));
      const uint32_t b = root_of(parent, static_cast<uint32_t>(s.ops[i].index()));
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  std::vector<std::vector<uint32_t>> members(n);
  for (uint32_t v = 0; v < n; ++v) members[root_of(parent, v)].push_back(v);
  std::erase_if(members, [](const auto& m) { return m.empty(); });
  requests_ = members.empty() ? 0 : members[0].size();
  if (requests_ < 2 || requests_ > kMostRequests) return false;
  // The graph's own order of the first copies is topological.
  std::sort(members.begin(), members.end(), [&](const auto& a, const auto& b) {
    return flat_.topological_position(a[0]) < flat_.topological_position(b[0]);
  });
  task_of_.assign(n, 0);
  request_of_.assign(n, 0);
  ops_.clear();
  for (size_t t = 0; t < members.size(); ++t) {
    if (members[t].size() != requests_) return false;
    for (uint32_t l = 0; l < requests_; ++l) {
      task_of_[members[t][l]] = static_cast<uint32_t>(t);
      request_of_[members[t][l]] = l;
      ops_.push_back(members[t][l]);
    }
  }
  tasks_ = members.size();
  std::map<std::pair<uint32_t, uint32_t>, size_t> edges;  // tasks -> copies seen
  for (const auto& e : flat_.problem().graph->edges()) {
    const auto a = e.src.index(), b = e.dst.index();
    if (request_of_[a] != request_of_[b] || task_of_[a] == task_of_[b]) return false;
    ++edges[{task_of_[a], task_of_[b]}];
  }
  return std::all_of(edges.begin(), edges.end(), [&](const auto& e) { return e.second == requests_; });
}

void TaskModel::fill_edges() {
  std::map<std::pair<uint32_t, uint32_t>, int64_t> bytes;
  for (uint32_t t = 0; t < tasks_; ++t) {
    for (const uint32_t tensor : flat_.inputs(op(t, 0))) {
      int64_t& most = bytes[{task_of_[flat_.producer(tensor)], t}];
      most = std::max(most, flat_.bytes(tensor));
    }
  }
  std::vector<Edge> edges;
  for (const auto& [ends, b] : bytes) edges.push_back({ends.first, ends.second, b});
  set_edges(std::move(edges));
}

// Sorted by src, then by dst.
void TaskModel::set_edges(std::vector<Edge> edges) {
  in_begin_.assign(tasks_ + 1, 0);
  out_begin_.assign(tasks_ + 1, 0);
  out_ = std::move(edges);
  for (const Edge& e : out_) {
    ++out_begin_[e.src + 1];
    ++in_begin_[e.dst + 1];
  }
  for (size_t t = 0; t < tasks_; ++t) {
    in_begin_[t + 1] += in_begin_[t];
    out_begin_[t + 1] += out_begin_[t];
  }
  in_ = out_;
  std::stable_sort(in_.begin(), in_.end(), [](const Edge& a, const Edge& b) { return a.dst < b.dst; });
}

void TaskModel::fill_times() {
  const size_t k = num_devices();
  us_.assign(tasks_ * k * requests_, kImpossible);
  for (size_t t = 0; t < tasks_; ++t) {
    for (size_t d = 0; d < k; ++d) {
      const double one = flat_.us(op(t, 0), d);
      for (size_t m = 1; m <= requests_; ++m) {
        us_[(t * k + d) * requests_ + m - 1] = one * static_cast<double>(m);
      }
    }
  }
  if (requests_ == 1) return;
  // Any set of m copies stands for all sets of m; of several that are known, the slowest counts.
  std::map<std::pair<size_t, size_t>, double> slowest;
  for (const SegmentCost& s : flat_.problem().costs->segments()) {
    const int32_t d = flat_.local(s.device);
    if (d < 0) continue;
    const size_t row = task_of_[s.ops[0].index()] * k + static_cast<size_t>(d);
    double& us = slowest[{row, s.ops.size()}];
    us = std::max(us, s.cost.us);
  }
  for (const auto& [key, us] : slowest) us_[key.first * requests_ + key.second - 1] = us;
}

void append_batches(const std::vector<Batch>& own, const std::vector<uint32_t>& tasks,
                    std::vector<Batch>& all) {
  for (const Batch& b : own) all.push_back({tasks[b.task], b.device, b.requests});
}

Assignment to_assignment(const TaskModel& model, const std::vector<Batch>& batches) {
  const FlatProblem& flat = model.flat();
  Assignment a;
  a.device.resize(flat.num_ops());
  if (model.num_requests() > 1) a.segment.resize(flat.num_ops());
  for (size_t i = 0; i < batches.size(); ++i) {
    const Batch& b = batches[i];
    for (size_t l = 0; l < model.num_requests(); ++l) {
      if ((b.requests >> l & 1) == 0) continue;
      const OpId op(static_cast<size_t>(model.op(b.task, l)));
      a.device[op.index()] = flat.device(b.device);
      a.order.push_back(op);
      if (!a.segment.empty()) a.segment[op.index()] = static_cast<int>(i);
    }
  }
  return a;
}

std::vector<Batch> to_batches(const TaskModel& model, const Assignment& a) {
  const FlatProblem& flat = model.flat();
  std::vector<Batch> batches;
  std::map<std::pair<uint32_t, int>, size_t> known;  // task, segment -> batch
  // A segment takes the place of its last op.
  for (size_t i = a.order.size(); i-- > 0;) {
    const OpId op = a.order[i];
    const int32_t d = flat.local(a.device[op.index()]);
    if (d < 0) return {};
    const uint32_t t = model.task_of(op.index()), bit = uint32_t{1} << model.request_of(op.index());
    const int segment = a.segment.empty() ? static_cast<int>(op.index()) : a.segment[op.index()];
    const auto [it, fresh] = known.try_emplace({t, segment}, batches.size());
    if (fresh) batches.push_back({t, static_cast<uint32_t>(d), 0});
    batches[it->second].requests |= bit;
  }
  std::reverse(batches.begin(), batches.end());
  return batches;
}

}  // namespace heddle

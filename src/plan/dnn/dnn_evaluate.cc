// The exact values of splits; formulas in dnn_split.h.
#include <algorithm>
#include <map>

#include "heddle/plan/dnn_split.h"

namespace heddle {
namespace {

size_t at(int32_t v) { return static_cast<size_t>(v); }

Error bad_device(const DnnWorkload& w, size_t v, int32_t device) {
  return Error(Code::kInvalidInput, w.name + ": node " + std::to_string(w.nodes[v].id) + " is on device " +
                                        std::to_string(device) + "; expected 0.." +
                                        std::to_string(w.accelerators + w.cpus - 1));
}

DnnValue max_load(const DnnWorkload& w, const DnnSplit& split) {
  DnnValue value;
  value.loads.assign(at(w.accelerators + w.cpus), 0);
  std::vector<int32_t> paid(value.loads.size(), -1);  // by device: the last node whose transfer it paid
  for (size_t v = 0; v < w.nodes.size(); ++v) {
    const auto home = split.device[v];
    const bool cpu = home >= w.accelerators;
    value.loads[at(home)] += cpu ? w.nodes[v].cpu : w.nodes[v].accelerator;
    bool leaves = false;
    for (const auto consumer : w.out[v]) {
      const auto there = split.device[at(consumer)];
      if (there == home) continue;
      leaves = true;
      if (there < w.accelerators && paid[at(there)] != static_cast<int32_t>(v)) {
        paid[at(there)] = static_cast<int32_t>(v);
        value.loads[at(there)] += w.nodes[v].cost;
      }
    }
    if (leaves && !cpu) value.loads[at(home)] += w.nodes[v].cost;
  }
  value.value = *std::max_element(value.loads.begin(), value.loads.end());
  return value;
}

// Vertices are pieces, then CPU nodes; edges are those of the graph and from each piece to the next one of
// its accelerator.
class LatencyTimer {
 public:
  LatencyTimer(const DnnWorkload& w, const DnnSplit& split) : w_(w), vertex_(w.nodes.size()) {
    std::map<std::pair<int32_t, int32_t>, int32_t> pieces;
    for (size_t v = 0; v < w.nodes.size(); ++v)
      if (split.device[v] < w.accelerators) pieces[{split.device[v], piece_of(split, v)}] = 0;
    int32_t count = 0;
    for (auto& [key, index] : pieces) index = count++;
    members_.resize(pieces.size());
    for (size_t v = 0; v < w.nodes.size(); ++v) {
      if (split.device[v] < w.accelerators) {
        vertex_[v] = pieces[{split.device[v], piece_of(split, v)}];
      } else {
        vertex_[v] = static_cast<int32_t>(members_.size());
        members_.emplace_back();
      }
      members_[at(vertex_[v])].push_back(static_cast<int32_t>(v));
    }
    is_cpu_from_ = pieces.size();
    follows_.assign(members_.size(), -1);
    for (auto it = pieces.begin(); it != pieces.end(); ++it) {
      const auto next = std::next(it);
      if (next != pieces.end() && next->first.first == it->first.first)
        follows_[at(next->second)] = it->second;
    }
  }

  Result<DnnValue> run() {
    std::vector<std::vector<int32_t>> out(members_.size());
    std::vector<int32_t> waiting(members_.size(), 0);
    const auto connect = [&](int32_t a, int32_t b) {
      out[at(a)].push_back(b);
      ++waiting[at(b)];
    };
    for (const auto& [u, v] : w_.edges)
      if (vertex_[at(u)] != vertex_[at(v)]) connect(vertex_[at(u)], vertex_[at(v)]);
    for (size_t s = 0; s < follows_.size(); ++s)
      if (follows_[s] >= 0) connect(follows_[s], static_cast<int32_t>(s));
    finish_.assign(members_.size(), 0);
    std::vector<int32_t> ready;
    for (size_t s = 0; s < members_.size(); ++s)
      if (waiting[s] == 0) ready.push_back(static_cast<int32_t>(s));
    size_t timed = 0;
    for (; timed < ready.size(); ++timed) {
      const auto s = ready[timed];
      finish_[at(s)] = finish(at(s));
      for (const auto next : out[at(s)])
        if (--waiting[at(next)] == 0) ready.push_back(next);
    }
    if (timed < members_.size()) {
      size_t s = 0;
      while (waiting[s] == 0) ++s;
      return Error(Code::kInvalidInput,
                   w_.name + ": the piece or CPU node with node " +
                       std::to_string(w_.nodes[at(members_[s].front())].id) +
                       " waits for itself through other pieces; expected pieces without cycles among them");
    }
    DnnValue value;
    value.lat.resize(w_.nodes.size());
    for (size_t v = 0; v < value.lat.size(); ++v) {
      value.lat[v] = finish_[at(vertex_[v])];
      value.value = std::max(value.value, value.lat[v]);
    }
    return value;
  }

 private:
  static int32_t piece_of(const DnnSplit& split, size_t v) {
    return split.piece.empty() ? 0 : split.piece[v];
  }

  double finish(size_t s) {
    double start = follows_[s] >= 0 ? finish_[at(follows_[s])] : 0, work = 0;
    std::vector<int32_t> sources;
    for (const auto v : members_[s]) {
      const auto& node = w_.nodes[at(v)];
      work += s >= is_cpu_from_ ? node.cpu : node.accelerator;
      for (const auto u : w_.in[at(v)])
        if (vertex_[at(u)] != static_cast<int32_t>(s)) sources.push_back(u);
      if (s >= is_cpu_from_) continue;
      const bool leaves = std::any_of(w_.out[at(v)].begin(), w_.out[at(v)].end(), [&](int32_t consumer) {
        return vertex_[at(consumer)] != static_cast<int32_t>(s);
      });
      if (leaves) work += node.cost;
    }
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    for (const auto u : sources) {
      start = std::max(start, finish_[at(vertex_[at(u)])]);
      if (s < is_cpu_from_) work += w_.nodes[at(u)].cost;
    }
    return start + work;
  }

  const DnnWorkload& w_;
  std::vector<int32_t> vertex_;  // of each node
  std::vector<std::vector<int32_t>> members_;
  std::vector<int32_t> follows_;  // the piece before it on its accelerator, or -1
  std::vector<double> finish_;
  size_t is_cpu_from_ = 0;
};

}  // namespace

Result<DnnValue> evaluate_dnn_split(const DnnWorkload& w, const DnnSplit& split, DnnObjective objective) {
  if (split.device.size() != w.nodes.size() || (!split.piece.empty() && split.piece.size() != w.nodes.size()))
    return Error(Code::kInvalidInput, w.name + ": the split places " + std::to_string(split.device.size()) +
                                          " nodes, the workload has " + std::to_string(w.nodes.size()));
  // Latency has its CPU pool even where maxCPUs is 0: the objective ignores the number of cores.
  const int32_t devices = objective == DnnObjective::kLatency ? w.accelerators + 1 : w.accelerators + w.cpus;
  for (size_t v = 0; v < w.nodes.size(); ++v)
    if (split.device[v] < 0 || split.device[v] >= devices) return bad_device(w, v, split.device[v]);
  if (objective == DnnObjective::kMaxLoad) return max_load(w, split);
  return LatencyTimer(w, split).run();
}

}  // namespace heddle

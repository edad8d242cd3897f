// Memory: a sweep over the times at which tensors and parameters appear and disappear.
#include <algorithm>
#include <limits>
#include <set>

#include "checker_state.h"

namespace heddle {
namespace {

// Saturating sum: sizes come from files and may overflow int64.
int64_t plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return b > 0 ? INT64_MAX : INT64_MIN;
  return sum;
}

// Largest sum of the intervals' bytes at any time; intervals are half-open: [start, end).
int64_t sweep(std::vector<std::pair<double, int64_t>> changes) {
  std::sort(changes.begin(), changes.end());
  int64_t now = 0, most = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    now = plus(now, changes[i].second);
    if (i + 1 == changes.size() || changes[i + 1].first > changes[i].first) most = std::max(most, now);
  }
  return most;
}

}  // namespace

// True when an op outside the segment, or the model's caller, reads `tensor`.
bool PlanChecker::leaves(const Segment& segment, TensorId tensor) const {
  for (const OpId reader : graph_.tensor(tensor).consumers) {
    if (!std::binary_search(segment.ops.begin(), segment.ops.end(), reader)) return true;
  }
  return is_output_[tensor.index()];
}

void PlanChecker::live_in_run(size_t i, std::vector<LiveInterval>& live) {
  const Segment& segment = segment_of(i);
  const int pool = cluster_.memory_pool(segment.device);
  const double start = timeline_.start_us[i], finish = timeline_.finish_us[i];
  for (const OpId op : segment.ops) {
    for (const TensorId t : graph_.op(op).inputs) {
      const OpId maker = graph_.tensor(t).producer;
      if (!maker.valid()) {
        live.push_back({segment.lane, t.value, pool, 0, finish});
      } else if (!std::binary_search(segment.ops.begin(), segment.ops.end(), maker)) {
        live.push_back({segment.lane, t.value, pool, start, finish});
      }
    }
    for (const TensorId t : graph_.op(op).outputs) {
      if (segment.ops.size() > 1 && !leaves(segment, t)) continue;
      live.push_back({segment.lane, t.value, pool, start, is_output_[t.index()] ? makespan_ : finish});
    }
  }
}

// Peak of tensors inside a segment: ops run in topological order, a tensor is freed after its last reader.
int64_t PlanChecker::inner_peak(const Segment& segment) const {
  std::vector<OpId> ops = segment.ops;
  std::sort(ops.begin(), ops.end(),
            [&](OpId a, OpId b) { return graph_.topological_position(a) < graph_.topological_position(b); });
  std::map<TensorId, size_t> readers_left;
  int64_t now = 0, most = 0;
  for (const OpId op : ops) {
    std::vector<TensorId> unread;
    for (const TensorId t : graph_.op(op).outputs) {
      if (leaves(segment, t)) continue;
      now = plus(now, graph_.tensor(t).bytes);
      readers_left[t] = graph_.tensor(t).consumers.size();
      if (graph_.tensor(t).consumers.empty()) unread.push_back(t);
    }
    most = std::max(most, now);
    const std::set<TensorId> read(graph_.op(op).inputs.begin(), graph_.op(op).inputs.end());
    for (const TensorId t : read) {
      const auto it = readers_left.find(t);
      if (it != readers_left.end() && --it->second == 0) now = plus(now, -graph_.tensor(t).bytes);
    }
    for (const TensorId t : unread) now = plus(now, -graph_.tensor(t).bytes);
  }
  return most;
}

// Per pool, the sum of the lanes' peaks, because lanes are not synchronised.
std::vector<int64_t> PlanChecker::activation_peaks() {
  std::vector<LiveInterval> live;
  std::map<std::pair<int, int>, std::vector<std::pair<double, int64_t>>> changes;  // (lane, pool)
  const auto add = [&](int lane, int pool, double start, double finish, int64_t bytes) {
    if (start >= finish) return;
    changes[{lane, pool}].push_back({start, bytes});
    changes[{lane, pool}].push_back({finish, -bytes});
  };
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    const Segment& segment = segment_of(i);
    const double start = timeline_.start_us[i], finish = timeline_.finish_us[i];
    if (step.kind == StepKind::kTransfer) {
      live.push_back({segment.lane, step.tensor.value, cluster_.memory_pool(step.from), start, finish});
      live.push_back({segment.lane, step.tensor.value, cluster_.memory_pool(step.to), start, finish});
    } else if (step.kind == StepKind::kRun) {
      live_in_run(i, live);
      if (segment.ops.size() > 1)
        add(segment.lane, cluster_.memory_pool(step.to), start, finish, inner_peak(segment));
    }
  }
  std::vector<std::tuple<int, double, double, int64_t>> params;
  live_params(params);
  for (const auto& [pool, start, finish, bytes] : params) add(0, pool, start, finish, bytes);
  std::sort(live.begin(), live.end(), [](const LiveInterval& a, const LiveInterval& b) {
    return std::tie(a.lane, a.tensor, a.pool) < std::tie(b.lane, b.tensor, b.pool);
  });
  for (size_t i = 0; i < live.size();) {
    LiveInterval whole = live[i];
    for (; i < live.size() && std::tie(live[i].lane, live[i].tensor, live[i].pool) ==
                                  std::tie(whole.lane, whole.tensor, whole.pool);
         ++i) {
      whole.start = std::min(whole.start, live[i].start);
      whole.finish = std::max(whole.finish, live[i].finish);
    }
    add(whole.lane, whole.pool, whole.start, whole.finish, graph_.tensor(TensorId(whole.tensor)).bytes);
  }
  std::vector<int64_t> peaks(static_cast<size_t>(cluster_.num_memory_pools()), 0);
  for (auto& [key, list] : changes) {
    peaks[static_cast<size_t>(key.second)] =
        plus(peaks[static_cast<size_t>(key.second)], sweep(std::move(list)));
  }
  return peaks;
}

// Cold, outside host memory: a parameter is present from time 0 if it is resident and used, else from its
// load. It stays until the end, or until its last user there is done if all users there drop it.
void PlanChecker::live_params(std::vector<std::tuple<int, double, double, int64_t>>& live) const {
  struct Use {
    double last = 0;
    bool kept = false;
  };
  std::map<std::pair<int, int>, Use> uses;  // (pool, param)
  for (size_t s = 0; s < plan_.segments.size(); ++s) {
    const Segment& segment = plan_.segments[s];
    if (!loads_needed(segment.device) || segment.host_access || run_step_[s] < 0) continue;
    for (const OpId op : segment.ops) {
      for (const ParamId p : graph_.op(op).params) {
        Use& use = uses[{cluster_.memory_pool(segment.device), p.value}];
        use.last = std::max(use.last, timeline_.finish_us[static_cast<size_t>(run_step_[s])]);
        use.kept = use.kept || !segment.drops_params;
      }
    }
  }
  for (const auto& [key, use] : uses) {
    const ParamId p(key.second);
    const auto load = load_of_.find(key);
    const bool resident = is_resident(key.first, p);
    if (!resident && load == load_of_.end()) continue;  // empty, or missing (reported elsewhere)
    const double start = resident ? 0 : timeline_.start_us[load->second];
    const double finish = use.kept ? std::numeric_limits<double>::infinity() : use.last;
    live.push_back({key.first, start, finish, graph_.param(p).bytes});
  }
}

// Parameters that are in the pool all the time, each once.
int64_t PlanChecker::param_bytes(int pool) const {
  std::set<ParamId> there;
  for (const Segment& segment : plan_.segments) {
    if (cluster_.memory_pool(segment.device) != pool || loads_needed(segment.device)) continue;
    for (const OpId op : segment.ops) there.insert(graph_.op(op).params.begin(), graph_.op(op).params.end());
  }
  int64_t sum = 0;
  for (const ParamId p : there) sum = plus(sum, graph_.param(p).bytes);
  return sum;
}

void PlanChecker::check_peak(size_t pool, int64_t peak) {
  const int64_t limit = cluster_.memory_pool_bytes(static_cast<int>(pool));
  const bool stated = pool < timeline_.peak_memory_bytes.size();
  std::string name;
  for (size_t d = 0; d < cluster_.num_devices(); ++d) {
    if (cluster_.memory_pool(DeviceId(d)) == static_cast<int>(pool))
      name += (name.empty() ? "" : ", ") + cluster_.devices()[d].name;
  }
  if (limit > 0 && peak > limit) {
    report(Violation::kMemory, "the memory of " + name + " would hold " + std::to_string(peak) +
                                   " bytes at once, it has " + std::to_string(limit));
  }
  if (stated && timeline_.peak_memory_bytes[pool] != peak) {
    report(Violation::kMemory, "the peak in the memory of " + name + " is given as " +
                                   std::to_string(timeline_.peak_memory_bytes[pool]) + " bytes, it is " +
                                   std::to_string(peak));
  }
}

void PlanChecker::check_memory() {
  const std::vector<int64_t> peaks = activation_peaks();
  for (size_t pool = 0; pool < peaks.size(); ++pool)
    check_peak(pool, plus(peaks[pool], param_bytes(static_cast<int>(pool))));
  if (!timeline_.peak_memory_bytes.empty() && timeline_.peak_memory_bytes.size() != peaks.size()) {
    report(Violation::kMalformed, "the timeline has peaks for another number of memories than the cluster");
  }
}

}  // namespace heddle

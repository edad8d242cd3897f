// Merges neighbouring runs without delaying anything. Let A and B be neighbours in a device's order, with no
// run between them on devices that share its cores. Running them as one changes three things: B's inputs are
// needed when A starts, A's tensors leave when B is done, and the union's time may differ from the sum. So A
// and B are merged when all of these hold: B's inputs from other devices have arrived when A starts, no other
// device reads A's tensors, B needs no load, and the union takes no longer. The rest of the timeline is
// unchanged. An edge between merged groups either starts in the last part of its group or leads to a later
// group of the same device. So places in the order increase along edges, and the quotient is acyclic.

#include "heddle/plan/builder.h"
#include "lane_timing.h"

namespace heddle {
namespace {

constexpr double kLater = 1e-9;  // relative: rounding errors of sums do not count as later

class Merger {
 public:
  Merger(const TimingTables& tables, const LaneTiming& timing)
      : t_(tables), timing_(timing), read_elsewhere_(timing.runs().size(), 0), group_(timing.runs().size()) {
    find_readers_elsewhere();
    std::vector<int32_t> open(t_.problem.cluster->num_devices(),
                              -1);               // per device: the run that starts its open group
    std::vector<int32_t> last(open.size(), -1);  // per device: its latest run
    std::vector<std::vector<uint32_t>> parts(open.size());
    for (size_t r = 0; r < group_.size(); ++r) {
      const size_t d = timing_.runs()[r].device.index();
      // Host access also holds links; delays that merging would cause on them are not modelled here.
      if (timing_.stage_of(r) >= 0 || timing_.runs()[r].host_access) {
        leave_alone(r, open, parts);
        continue;
      }
      const bool joins =
          open[d] >= 0 && may_join(static_cast<size_t>(open[d]), static_cast<size_t>(last[d]), r);
      if (!joins) {
        close(parts[d]);
        open[d] = static_cast<int32_t>(r);
      }
      parts[d].push_back(static_cast<uint32_t>(r));
      last[d] = static_cast<int32_t>(r);
      end_groups_beside(DeviceId(d), open, parts);
    }
    for (auto& p : parts) close(p);
  }

  std::vector<int> segments(bool merged) const {
    std::vector<int> result(t_.problem.graph->num_ops());
    for (size_t r = 0; r < group_.size(); ++r) {
      for (const OpId op : timing_.ops_of(r)) result[op.index()] = static_cast<int>(merged ? group_[r] : r);
    }
    return result;
  }

  // True when each group starts and ends no later than its parts did before merging.
  bool no_later(const LaneTiming& merged) const {
    for (size_t r = 0; r < group_.size(); ++r) {
      const auto& now = merged.runs()[merged.run_of(timing_.ops_of(r)[0].index())];
      if (group_[r] == r && later(now.start, timing_.runs()[r].start)) return false;
      const bool is_last = r + 1 == group_.size() || last_of_group_[r];
      if (is_last && later(now.finish, timing_.runs()[r].finish)) return false;
    }
    return true;
  }

 private:
  static bool later(double now, double before) { return now > before + kLater * std::max(1.0, before); }

  void find_readers_elsewhere() {
    const Graph& graph = *t_.problem.graph;
    for (size_t r = 0; r < group_.size(); ++r) {
      for (const OpId op : timing_.ops_of(r)) {
        for (const OpId next : graph.successors(op)) {
          if (timing_.runs()[timing_.run_of(next.index())].device != timing_.runs()[r].device)
            read_elsewhere_[r] = 1;
        }
      }
    }
    last_of_group_.assign(group_.size(), 0);
  }

  // Stages and runs with host access stay separate: a stage's time is not the sum of its members', and host
  // access holds links. No group spans them.
  void leave_alone(size_t r, std::vector<int32_t>& open, std::vector<std::vector<uint32_t>>& parts) {
    const DeviceId device = timing_.runs()[r].device;
    group_[r] = static_cast<uint32_t>(r);
    last_of_group_[r] = 1;
    close(parts[device.index()]);
    open[device.index()] = -1;
    end_groups_beside(device, open, parts);
  }

  // Groups of devices that share cores with this one must not span its run.
  void end_groups_beside(DeviceId device, std::vector<int32_t>& open,
                         std::vector<std::vector<uint32_t>>& parts) {
    for (const DeviceId other : t_.problem.cluster->overlaps(device)) {
      close(parts[other.index()]);
      open[other.index()] = -1;
    }
  }

  bool may_join(size_t first, size_t last, size_t r) const {
    const auto& run = timing_.runs()[r];
    return !read_elsewhere_[last] && !run.brings_params && run.ready_elsewhere <= timing_.runs()[first].start;
  }

  // Closes a group; splits it again if the union is known to take longer than the sum.
  void close(std::vector<uint32_t>& parts) {
    if (parts.empty()) return;
    bool together = true;
    if (parts.size() > 1 && !t_.problem.costs->segments().empty()) {
      std::vector<OpId> ops;
      double sum = 0;
      for (const uint32_t r : parts) {
        ops.insert(ops.end(), timing_.ops_of(r).begin(), timing_.ops_of(r).end());
        sum += timing_.runs()[r].us;
      }
      std::sort(ops.begin(), ops.end());
      together = !later(t_.times.us(ops, timing_.runs()[parts[0]].device), sum);
    }
    for (const uint32_t r : parts) {
      group_[r] = together ? parts[0] : r;
      last_of_group_[r] = !together || r == parts.back();
    }
    parts.clear();
  }

  const TimingTables& t_;
  const LaneTiming& timing_;
  std::vector<uint8_t> read_elsewhere_, last_of_group_;
  std::vector<uint32_t> group_;  // per run: the first run of its group
};

}  // namespace

std::vector<int> merge_segments(const Problem& problem, const Assignment& assignment) {
  const TimingTables tables(problem);
  LaneTiming timing(tables);
  std::vector<int> unchanged = assignment.segment;
  if (unchanged.empty()) {
    unchanged.resize(problem.graph->num_ops());
    for (size_t v = 0; v < unchanged.size(); ++v) unchanged[v] = static_cast<int>(v);
  }
  if (!timing.time(assignment).ok()) return unchanged;
  const Merger merger(tables, timing);
  Assignment merged = assignment;
  merged.segment = merger.segments(/*merged=*/true);
  // A union that is faster than its parts, or a sum that rounds differently, can change the order on a link
  // and so delay another step. Therefore the merged timeline is checked.
  LaneTiming check(tables);
  if (!check.time(merged).ok() || !merger.no_later(check)) return unchanged;
  return merged.segment;
}

}  // namespace heddle

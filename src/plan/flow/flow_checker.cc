// The checker of flow workloads: Moirai's constraints, equations (4) to (8), in whole numbers.
#include <algorithm>

#include "heddle/plan/flow_workload.h"

namespace heddle {
namespace {

constexpr size_t kMostFindings = 20;

class FlowChecker {
 public:
  FlowChecker(const FlowWorkload& w, const FlowSchedule& s) : w_(w), s_(s) {}

  std::vector<std::string> run() {
    if (s_.device.size() != w_.num_ops() || s_.op_start.size() != w_.num_ops() ||
        s_.flow_start.size() != w_.num_flows()) {
      add("the schedule's sizes are not the workload's");
      return std::move(findings_);
    }
    for (const uint32_t k : s_.device) {
      if (k >= w_.num_devices()) {
        add("there is no device " + std::to_string(k));
        return std::move(findings_);
      }
    }
    memory();
    ops();
    flows();
    return std::move(findings_);
  }

 private:
  struct Busy {
    int64_t start, end;
    std::string name;
  };

  void add(std::string text) {
    if (findings_.size() < kMostFindings) findings_.push_back(std::move(text));
  }
  int64_t op_end(size_t v) const { return s_.op_start[v] + w_.ops[v].ticks[s_.device[v]]; }

  // Equation (5).
  void memory() {
    std::vector<double> used(w_.num_devices(), 0);
    for (size_t v = 0; v < w_.num_ops(); ++v) used[s_.device[v]] += w_.ops[v].memory;
    for (size_t k = 0; k < used.size(); ++k) {
      if (used[k] > w_.memory[k])
        add("device " + std::to_string(k) + " holds " + std::to_string(used[k]) + " of " +
            std::to_string(w_.memory[k]) + " memory");
    }
  }

  // One at a time: of two tasks one ends before the other starts, also when one takes no time.
  void exclusive(std::vector<Busy> tasks, const std::string& resource) {
    std::sort(tasks.begin(), tasks.end(), [](const Busy& a, const Busy& b) {
      return a.start != b.start ? a.start < b.start : a.end < b.end;
    });
    for (size_t i = 1; i < tasks.size(); ++i) {
      if (tasks[i].start < tasks[i - 1].end)
        add(tasks[i - 1].name + " and " + tasks[i].name + " overlap on " + resource);
    }
  }

  // Equations (4), (4b), (6).
  void ops() {
    int64_t last = 0;
    std::vector<std::vector<Busy>> on(w_.num_devices());
    for (size_t v = 0; v < w_.num_ops(); ++v) {
      if (s_.op_start[v] < 0) add("op " + w_.ops[v].name + " starts before 0");
      last = std::max(last, op_end(v));
      on[s_.device[v]].push_back({s_.op_start[v], op_end(v), "op " + w_.ops[v].name});
    }
    for (size_t k = 0; k < on.size(); ++k) exclusive(std::move(on[k]), "device " + std::to_string(k));
    if (last != s_.makespan)
      add("the makespan is " + std::to_string(last) + " ticks, not " + std::to_string(s_.makespan));
  }

  // Equations (4a), (7), (8).
  void flows() {
    std::vector<std::vector<Busy>> egress(w_.num_devices()), ingress(w_.num_devices());
    for (size_t q = 0; q < w_.num_flows(); ++q) {
      const Flow& f = w_.flows[q];
      const uint32_t from = s_.device[f.from], to = s_.device[f.to];
      const bool crosses = !f.precedence && from != to;
      const int64_t start = s_.flow_start[q];
      const int64_t end = start + (crosses ? f.ticks[from * w_.num_devices() + to] : 0);
      const std::string name = "flow " + w_.ops[f.from].name + " -> " + w_.ops[f.to].name;
      if (start < op_end(f.from)) add(name + " starts before its op has ended");
      if (end > s_.op_start[f.to]) add(name + " ends after its reader has started");
      if (!crosses) continue;
      egress[from].push_back({start, end, name});
      ingress[to].push_back({start, end, name});
    }
    for (size_t k = 0; k < egress.size(); ++k) {
      exclusive(std::move(egress[k]), "the egress port of device " + std::to_string(k));
      exclusive(std::move(ingress[k]), "the ingress port of device " + std::to_string(k));
    }
  }

  const FlowWorkload& w_;
  const FlowSchedule& s_;
  std::vector<std::string> findings_;
};

}  // namespace

std::vector<std::string> check_flows(const FlowWorkload& workload, const FlowSchedule& schedule) {
  return FlowChecker(workload, schedule).run();
}

}  // namespace heddle

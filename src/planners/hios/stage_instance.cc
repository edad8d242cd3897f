#include "stage_instance.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace heddle {
namespace {

Error bad_instance(const std::string& text) { return Error(Code::kInvalidInput, "stage instance: " + text); }

// Times and sizes whose sums over all ops stay far from overflow.
constexpr double kLargest = 1e15;
bool is_amount(double x) { return x >= 0 && x <= kLargest; }  // false for NaN

Status check_sizes(const StageInput& in) {
  const size_t n = in.ops, k = in.devices;
  if (k == 0) return bad_instance("no device; at least one is needed");
  if (n > UINT32_MAX / 2 || k > UINT16_MAX || in.edges.size() > UINT32_MAX / 2)
    return bad_instance("too many ops, devices or edges; at most 2^31 ops and edges and 65535 devices");
  if (in.width < 1) return bad_instance("width 0; a stage holds at least one op");
  const auto wrong = [](const char* what, size_t has, size_t expected) {
    return bad_instance(std::string(what) + " has " + std::to_string(has) + " entries, expected " +
                        std::to_string(expected));
  };
  if (in.us.size() != n * k) return wrong("us", in.us.size(), n * k);
  if (!in.utilization.empty() && in.utilization.size() != n * k)
    return wrong("utilization", in.utilization.size(), n * k);
  if (!in.sharing.empty() && in.sharing.size() != k) return wrong("sharing", in.sharing.size(), k);
  if (in.latency_us.size() != k * k) return wrong("latency_us", in.latency_us.size(), k * k);
  if (in.us_per_byte.size() != k * k) return wrong("us_per_byte", in.us_per_byte.size(), k * k);
  return {};
}

Status check_numbers(const StageInput& in) {
  const size_t n = in.ops, k = in.devices;
  for (size_t v = 0; v < n; ++v) {
    bool runs = false;
    for (size_t d = 0; d < k; ++d) {
      const double us = in.us[v * k + d];
      const std::string place = "op " + std::to_string(v) + " on device " + std::to_string(d);
      if (us != kNoTime && !is_amount(us)) return bad_instance(place + " has a time outside 0..1e15 us");
      runs |= us != kNoTime;
      const double u = in.utilization.empty() ? 1 : in.utilization[v * k + d];
      if (!(u >= 0 && u <= 1)) return bad_instance(place + " has a utilization outside 0..1");
    }
    if (!runs) return bad_instance("op " + std::to_string(v) + " can run on no device");
  }
  for (size_t d = 0; d < in.sharing.size(); ++d) {
    const StageModel& s = in.sharing[d];
    if (!is_amount(s.serial) || !is_amount(s.overlap) || !is_amount(s.launch_us))
      return bad_instance("device " + std::to_string(d) + " has a sharing number outside 0..1e15");
  }
  for (size_t i = 0; i < k * k; ++i) {
    if (i / k == i % k) continue;
    const std::string place = "the way from device " + std::to_string(i / k) + " to " + std::to_string(i % k);
    if (in.latency_us[i] != kNoTime && !is_amount(in.latency_us[i]))
      return bad_instance(place + " has a latency outside 0..1e15 us");
    if (!is_amount(in.us_per_byte[i])) return bad_instance(place + " has a time per byte outside 0..1e15 us");
  }
  for (size_t e = 0; e < in.edges.size(); ++e) {
    const StageEdge& edge = in.edges[e];
    if (edge.from >= n || edge.to >= n)
      return bad_instance("edge " + std::to_string(e) + " names an op that is not there; ops are 0.." +
                          std::to_string(n));
    if (!is_amount(edge.bytes))
      return bad_instance("edge " + std::to_string(e) + " has bytes outside 0..1e15");
  }
  return {};
}

}  // namespace

Result<StageInstance> StageInstance::make(StageInput input) {
  HEDDLE_RETURN_IF_ERROR(check_sizes(input));
  HEDDLE_RETURN_IF_ERROR(check_numbers(input));
  StageInstance s;
  const size_t n = s.n_ = input.ops, k = s.k_ = input.devices;
  s.width_ = input.width;
  s.us_ = std::move(input.us);
  s.busy_ = s.us_;
  for (size_t i = 0; i < input.utilization.size(); ++i) {
    if (s.us_[i] != kNoTime) s.busy_[i] *= input.utilization[i];
  }
  s.sharing_ = std::move(input.sharing);
  s.sharing_.resize(k, kSimulatedStages);
  s.latency_us_ = std::move(input.latency_us);
  s.us_per_byte_ = std::move(input.us_per_byte);
  for (size_t i = 0; i < k * k; ++i) {
    if (i / k == i % k) s.latency_us_[i] = s.us_per_byte_[i] = 0;
    if (s.latency_us_[i] == kNoTime) s.us_per_byte_[i] = 0;
  }

  s.in_begin_.assign(n + 1, 0);
  s.out_begin_.assign(n + 1, 0);
  for (const StageEdge& e : input.edges) {
    ++s.in_begin_[e.to + 1];
    ++s.out_begin_[e.from + 1];
  }
  for (size_t v = 0; v < n; ++v) {
    s.in_begin_[v + 1] += s.in_begin_[v];
    s.out_begin_[v + 1] += s.out_begin_[v];
  }
  s.in_.resize(input.edges.size());
  s.out_.resize(input.edges.size());
  std::vector<uint32_t> in_next(s.in_begin_.begin(), s.in_begin_.end()),
      out_next(s.out_begin_.begin(), s.out_begin_.end());
  for (const StageEdge& e : input.edges) {
    s.in_[in_next[e.to]++] = {e.from, e.bytes};
    s.out_[out_next[e.from]++] = {e.to, e.bytes};
  }

  std::vector<uint32_t> waiting(n);
  for (uint32_t v = 0; v < n; ++v) {
    waiting[v] = static_cast<uint32_t>(s.inputs(v).size());
    if (waiting[v] == 0) s.topological_.push_back(v);
  }
  for (size_t i = 0; i < s.topological_.size(); ++i) {
    for (const Neighbour& next : s.outputs(s.topological_[i])) {
      if (--waiting[next.op] == 0) s.topological_.push_back(next.op);
    }
  }
  if (s.topological_.size() != n)
    return bad_instance("the edges form a cycle; ops must form a directed acyclic graph");
  return s;
}

double StageInstance::stage_us(std::span<const uint32_t> ops, size_t device) const {
  if (ops.size() == 1) return us(ops[0], device);
  double sum = 0, busy = 0, longest = 0;
  for (const uint32_t v : ops) {
    const double t = us(v, device);
    sum += t;
    busy += busy_us(v, device);
    longest = std::max(longest, t);
  }
  if (ops.empty() || sum == kNoTime) return sum;
  return sharing_[device].us(sum, busy, longest);
}

double StageInstance::least_work_us(size_t op, size_t device) const {
  const double t = us(op, device);
  if (t == kNoTime || width_ == 1) return t;
  return sharing_[device].least_us({t, busy_us(op, device)});
}

}  // namespace heddle

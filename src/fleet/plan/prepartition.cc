#include "heddle/fleet/prepartition.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "heddle/base/units.h"

namespace heddle {
namespace {

constexpr double kWiden = 0.1;

// Bytes that cross the cut before each topological position. Inputs cross the first cut, outputs the last.
std::vector<double> crossing_bytes(const Graph& graph) {
  const auto n = static_cast<int>(graph.num_ops());
  std::vector<double> step(static_cast<size_t>(n) + 2, 0);
  const auto crosses = [&](int first_cut, int last_cut, int64_t bytes) {
    if (first_cut > last_cut) return;
    step[static_cast<size_t>(first_cut)] += static_cast<double>(bytes);
    step[static_cast<size_t>(last_cut) + 1] -= static_cast<double>(bytes);
  };
  std::set<TensorId> outputs(graph.outputs().begin(), graph.outputs().end());
  for (size_t t = 0; t < graph.num_tensors(); ++t) {
    const auto& tensor = graph.tensor(TensorId(t));
    int first = tensor.producer.valid() ? graph.topological_position(tensor.producer) + 1 : 0;
    int last = first - 1;
    for (const auto op : tensor.consumers) last = std::max(last, graph.topological_position(op));
    if (outputs.contains(TensorId(t))) last = n;
    crosses(first, last, tensor.bytes);
  }
  std::vector<double> bytes(static_cast<size_t>(n) + 1, 0);
  double sum = 0;
  for (size_t k = 0; k <= static_cast<size_t>(n); ++k) bytes[k] = sum += step[k];
  return bytes;
}

// Time of the ops before each position, as a share of the whole; [class][position].
std::vector<std::vector<double>> shares_of(const Graph& graph, const std::vector<std::vector<double>>& us) {
  std::vector<std::vector<double>> shares;
  for (const auto& of_class : us) {
    std::vector<double> before = {0};
    for (const auto op : graph.topological_order()) before.push_back(before.back() + of_class[op.index()]);
    const double whole = before.back();
    if (whole > 0)
      for (auto& b : before) b /= whole;
    if (whole > 0) shares.push_back(std::move(before));
  }
  return shares;
}

std::vector<size_t> greedy_cuts(const std::vector<double>& share, size_t blocks) {
  const size_t n = share.size() - 1;
  std::vector<size_t> cuts = {0};
  const double target = 1.0 / static_cast<double>(blocks);
  while (cuts.back() < n && cuts.size() < blocks) {
    size_t end = cuts.back() + 1;
    const auto off = [&](size_t k) { return std::abs(share[k] - share[cuts.back()] - target); };
    while (end < n && off(end + 1) <= off(end)) ++end;
    cuts.push_back(end);
  }
  if (cuts.back() < n) cuts.push_back(n);
  return cuts;
}

// The cuts of fewest bytes that keep each block's time in the window on every class; empty: there are none.
std::vector<size_t> window_cuts(const std::vector<std::vector<double>>& shares,
                                const std::vector<double>& bytes, size_t blocks, double window) {
  const size_t n = bytes.size() - 1;
  const double target = 1.0 / static_cast<double>(blocks);
  const auto fits = [&](size_t from, size_t to) {
    return std::all_of(shares.begin(), shares.end(), [&](const auto& s) {
      const double t = s[to] - s[from];
      return t >= (1 - window) * target - 1e-12 && t <= (1 + window) * target + 1e-12;
    });
  };
  std::vector<std::vector<double>> best(blocks + 1, std::vector<double>(n + 1, kInfinity));
  std::vector<std::vector<size_t>> from(blocks + 1, std::vector<size_t>(n + 1, 0));
  best[0][0] = 0;
  for (size_t k = 1; k <= blocks; ++k)
    for (size_t to = k; to <= n; ++to)
      for (size_t i = k - 1; i < to; ++i) {
        const double sum = best[k - 1][i] + (to < n ? bytes[to] : 0);
        if (sum < best[k][to] && fits(i, to)) best[k][to] = sum, from[k][to] = i;
      }
  if (best[blocks][n] == kInfinity) return {};
  std::vector<size_t> cuts(blocks + 1, n);
  for (size_t k = blocks; k > 0; --k) cuts[k - 1] = from[k][cuts[k]];
  return cuts;
}

}  // namespace

std::optional<PrepartitionMethod> prepartition_method_named(std::string_view name) {
  if (name == "greedy") return PrepartitionMethod::kGreedy;
  return name == "balanced" ? std::optional(PrepartitionMethod::kBalanced) : std::nullopt;
}

Result<Prepartition> prepartition(const Graph& graph, const std::vector<std::vector<double>>& us, int blocks,
                                  PrepartitionMethod method) {
  const size_t n = graph.num_ops();
  if (n == 0) return invalid_input("the graph has no op; there is nothing to cut into blocks");
  if (blocks < 1)
    return invalid_input("the number of blocks is " + std::to_string(blocks) + "; expected at least 1");
  if (us.empty()) return invalid_input("there are no times; expected those of at least one class");
  for (const auto& of_class : us)
    if (of_class.size() != n ||
        !std::all_of(of_class.begin(), of_class.end(), [](double t) { return std::isfinite(t) && t >= 0; }))
      return invalid_input("an op has no time on a class; expected one of every op, finite, not negative");
  const auto shares = shares_of(graph, us);
  if (shares.empty()) return invalid_input("all times are 0; blocks of equal time have no meaning");
  const auto bytes = crossing_bytes(graph);
  const auto wanted = std::min(static_cast<size_t>(blocks), n);
  Prepartition result;
  std::vector<size_t> cuts;
  if (method == PrepartitionMethod::kGreedy) {
    cuts = greedy_cuts(shares.front(), wanted);
  } else {
    // The loop ends: a window of `wanted` accepts every partition.
    for (double window = kWiden; cuts.empty(); window += kWiden) {
      cuts = window_cuts(shares, bytes, wanted, window);
      result.window = window;
    }
  }
  const auto order = graph.topological_order();
  for (size_t k = 0; k + 1 < cuts.size(); ++k) {
    std::vector<OpId> ops(order.begin() + static_cast<std::ptrdiff_t>(cuts[k]),
                          order.begin() + static_cast<std::ptrdiff_t>(cuts[k + 1]));
    std::sort(ops.begin(), ops.end());
    result.parameter_bytes.push_back(static_cast<double>(graph.param_bytes(ops)));
    result.blocks.push_back(std::move(ops));
  }
  for (const auto cut : cuts) result.cut_bytes.push_back(bytes[cut]);
  return result;
}

}  // namespace heddle

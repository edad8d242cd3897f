// Reading Moirai's public workloads.
#include "heddle/plan/flow_workload.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "heddle/base/json.h"

namespace heddle {
namespace {

constexpr int kMostDecimals = 9;
constexpr double kMostTicks = 1099511627776.0;  // 2^40: sums over a million tasks stay exact
constexpr size_t kMostDevices = 1024, kMostOps = 1'000'000;
constexpr double kMostMemory = 1e18;

// The power of ten that makes the value a whole number, within the rounding of its decimal text.
bool whole_at(double value, double scale) {
  const double x = value * scale;
  return std::fabs(x - std::round(x)) <= std::max(1e-6, 1e-15 * std::fabs(x));
}

class Reader {
 public:
  explicit Reader(const Json& json) : root_(json) {}

  Result<FlowWorkload> run() {
    HEDDLE_RETURN_IF_ERROR(root_.check_keys({"name", "source", "units", "devices", "ops", "edges"}));
    HEDDLE_ASSIGN_OR_RETURN(const auto name, root_.at("name"));
    HEDDLE_ASSIGN_OR_RETURN(out_.name, name.as_string());
    if (root_.has("units")) {
      HEDDLE_ASSIGN_OR_RETURN(const auto units, root_.at("units"));
      HEDDLE_ASSIGN_OR_RETURN(out_.time_unit, units.string_or("time", ""));
    }
    HEDDLE_RETURN_IF_ERROR(devices());
    HEDDLE_RETURN_IF_ERROR(ops());
    HEDDLE_RETURN_IF_ERROR(edges());
    HEDDLE_RETURN_IF_ERROR(to_ticks());
    HEDDLE_RETURN_IF_ERROR(sort_topologically());
    return std::move(out_);
  }

 private:
  Result<double> amount(const JsonCursor& at, std::string_view key) {
    HEDDLE_ASSIGN_OR_RETURN(const auto value, at.at(key));
    return value.as_number(0, kMostMemory);
  }

  Status devices() {
    HEDDLE_ASSIGN_OR_RETURN(const auto at, root_.at("devices"));
    HEDDLE_ASSIGN_OR_RETURN(const auto list, at.elements(kMostDevices));
    if (list.empty()) return at.error("no devices; expected at least one");
    for (const auto& d : list) {
      HEDDLE_RETURN_IF_ERROR(d.check_keys({"id", "memory"}));
      HEDDLE_ASSIGN_OR_RETURN(const auto id, d.at("id"));
      HEDDLE_ASSIGN_OR_RETURN(const auto number, id.as_int(0, INT32_MAX));
      if (static_cast<size_t>(number) != out_.memory.size())
        return id.error("device ids must be 0, 1, 2, ... in this order; expected " +
                        std::to_string(out_.memory.size()));
      HEDDLE_ASSIGN_OR_RETURN(const double memory, amount(d, "memory"));
      out_.memory.push_back(memory);
    }
    return {};
  }

  Status ops() {
    HEDDLE_ASSIGN_OR_RETURN(const auto at, root_.at("ops"));
    HEDDLE_ASSIGN_OR_RETURN(const auto list, at.elements(kMostOps));
    for (const auto& o : list) {
      HEDDLE_RETURN_IF_ERROR(o.check_keys({"id", "time", "memory"}));
      HEDDLE_ASSIGN_OR_RETURN(const auto id, o.at("id"));
      HEDDLE_ASSIGN_OR_RETURN(const auto number, id.as_int(0, INT64_MAX));
      if (!index_.emplace(number, static_cast<uint32_t>(out_.ops.size())).second)
        return id.error("op " + std::to_string(number) + " is there twice");
      FlowOp op;
      op.name = std::to_string(number);
      HEDDLE_ASSIGN_OR_RETURN(op.memory, amount(o, "memory"));
      out_.ops.push_back(std::move(op));
      HEDDLE_ASSIGN_OR_RETURN(const auto times, o.at("time"));
      HEDDLE_ASSIGN_OR_RETURN(auto row, times.as_numbers(0, kMostTicks));
      if (row.size() != out_.num_devices())
        return times.error(std::to_string(row.size()) + " times; expected one for each of the " +
                           std::to_string(out_.num_devices()) + " devices");
      op_times_.push_back(std::move(row));
    }
    return {};
  }

  Result<uint32_t> op_at(const JsonCursor& edge, std::string_view key) {
    HEDDLE_ASSIGN_OR_RETURN(const auto at, edge.at(key));
    HEDDLE_ASSIGN_OR_RETURN(const auto number, at.as_int(0, INT64_MAX));
    const auto found = index_.find(number);
    if (found == index_.end()) return at.error("there is no op " + std::to_string(number));
    return found->second;
  }

  Status edges() {
    HEDDLE_ASSIGN_OR_RETURN(const auto at, root_.at("edges"));
    HEDDLE_ASSIGN_OR_RETURN(const auto list, at.elements());
    const size_t k = out_.num_devices();
    for (const auto& e : list) {
      HEDDLE_RETURN_IF_ERROR(e.check_keys({"src", "dst", "flow", "time"}));
      Flow flow;
      HEDDLE_ASSIGN_OR_RETURN(flow.from, op_at(e, "src"));
      HEDDLE_ASSIGN_OR_RETURN(flow.to, op_at(e, "dst"));
      std::vector<double> row;
      flow.precedence = !e.has("flow") || e.value()["flow"].is_null();
      if (!flow.precedence) {
        HEDDLE_ASSIGN_OR_RETURN(const auto matrix, e.at("time"));
        HEDDLE_ASSIGN_OR_RETURN(const auto rows, matrix.elements(kMostDevices));
        if (rows.size() != k)
          return matrix.error(std::to_string(rows.size()) + " rows; expected one for each device");
        for (size_t i = 0; i < k; ++i) {
          HEDDLE_ASSIGN_OR_RETURN(const auto values, rows[i].as_numbers(0, kMostTicks));
          if (values.size() != k)
            return rows[i].error(std::to_string(values.size()) + " times; expected one for each device");
          if (values[i] != 0) return rows[i].error("the time from a device to itself must be 0");
          row.insert(row.end(), values.begin(), values.end());
        }
      }
      out_.flows.push_back(std::move(flow));
      flow_times_.push_back(std::move(row));
    }
    return {};
  }

  Status to_ticks() {
    double scale = 1;
    for (int decimals = 0;; ++decimals, scale *= 10) {
      const auto whole = [&](const std::vector<double>& row) {
        return std::all_of(row.begin(), row.end(), [&](double v) { return whole_at(v, scale); });
      };
      if (std::all_of(op_times_.begin(), op_times_.end(), whole) &&
          std::all_of(flow_times_.begin(), flow_times_.end(), whole))
        break;
      if (decimals == kMostDecimals) return root_.error("a time has more than nine decimals; round it");
    }
    out_.ticks_per_unit = scale;
    const auto convert = [&](const std::vector<double>& from, std::vector<int64_t>& to) {
      for (const double v : from) {
        if (v * scale > kMostTicks) return false;
        to.push_back(std::llround(v * scale));
      }
      return true;
    };
    bool fits = true;
    for (size_t v = 0; v < op_times_.size(); ++v) fits = fits && convert(op_times_[v], out_.ops[v].ticks);
    for (size_t q = 0; q < flow_times_.size(); ++q)
      fits = fits && convert(flow_times_[q], out_.flows[q].ticks);
    if (!fits) return root_.error("a time is above 2^40 of its smallest decimal; use a coarser unit");
    return {};
  }

  // Files list ops in a topological order, but nothing relies on it.
  Status sort_topologically() {
    const size_t n = out_.num_ops();
    std::vector<uint32_t> missing(n, 0), order;
    const FlowAdjacency around(out_);
    for (const auto& f : out_.flows) ++missing[f.to];
    for (uint32_t v = 0; v < n; ++v) {
      if (missing[v] == 0) order.push_back(v);
    }
    for (size_t i = 0; i < order.size(); ++i) {
      for (const uint32_t q : around.out(order[i])) {
        if (--missing[out_.flows[q].to] == 0) order.push_back(out_.flows[q].to);
      }
    }
    if (order.size() < n) {
      for (uint32_t v = 0; v < n; ++v) {
        if (missing[v] > 0) return root_.error("op " + out_.ops[v].name + " is on or after a cycle of edges");
      }
    }
    const bool sorted =
        std::all_of(out_.flows.begin(), out_.flows.end(), [](const Flow& f) { return f.from < f.to; });
    if (sorted) return {};
    std::vector<uint32_t> place(n);
    std::vector<FlowOp> ops(n);
    for (uint32_t i = 0; i < n; ++i) {
      place[order[i]] = i;
      ops[i] = std::move(out_.ops[order[i]]);
    }
    out_.ops = std::move(ops);
    for (auto& f : out_.flows) {
      f.from = place[f.from];
      f.to = place[f.to];
    }
    return {};
  }

  JsonCursor root_;
  FlowWorkload out_;
  std::unordered_map<int64_t, uint32_t> index_;
  std::vector<std::vector<double>> op_times_, flow_times_;
};

}  // namespace

FlowAdjacency::FlowAdjacency(const FlowWorkload& workload)
    : in_(workload.num_flows()),
      in_begin_(workload.num_ops() + 1, 0),
      out_(workload.num_flows()),
      out_begin_(workload.num_ops() + 1, 0) {
  for (const auto& f : workload.flows) {
    ++in_begin_[f.to + 1];
    ++out_begin_[f.from + 1];
  }
  for (size_t v = 0; v < workload.num_ops(); ++v) {
    in_begin_[v + 1] += in_begin_[v];
    out_begin_[v + 1] += out_begin_[v];
  }
  auto in_at = in_begin_, out_at = out_begin_;
  for (uint32_t q = 0; q < workload.num_flows(); ++q) {
    in_[in_at[workload.flows[q].to]++] = q;
    out_[out_at[workload.flows[q].from]++] = q;
  }
}

Result<FlowWorkload> parse_flow_workload(std::string_view json) {
  HEDDLE_ASSIGN_OR_RETURN(const auto document, parse_json(json));
  return Reader(document).run();
}

Result<FlowWorkload> read_flow_workload(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto document, read_json_file(path));
  auto workload = Reader(document).run();
  if (!workload.ok()) return std::move(workload).error().with_context(path);
  return workload;
}

}  // namespace heddle

#include "columns.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heddle/base/spelling.h"

namespace heddle {
namespace {

constexpr int64_t kMaxVisits = 50'000'000;
constexpr double kDeadlineSlack_us = 1e-6;  // for rounding errors of sums

class Enumeration {
 public:
  Enumeration(const Fleet& fleet, size_t model, const ColumnRules& rules, const Deadline& deadline)
      : fleet_(fleet), model_(fleet.models[model]), index_(model), rules_(rules), deadline_(deadline) {}

  Result<std::vector<Column>> run() {
    int batches = 0;
    for (size_t c = 0; c < fleet_.classes.size(); ++c)
      for (int v = 1; v <= kMaxShare; ++v)
        if (usable(c, v)) batches = std::max(batches, model_.max_batch(c, v));
    for (int batch = 1; batch <= batches; ++batch) {
      prepare(batch);
      column_.batch = batch;
      limit_us_ =
          model_.slo_us - model_.margin_us - batch_delay_us(fleet_, index_, batch) + kDeadlineSlack_us;
      HEDDLE_RETURN_IF_ERROR(extend(0, 0));
    }
    std::vector<Column> all;
    for (auto& [key, columns] : kept_) all.insert(all.end(), columns.begin(), columns.end());
    if (all.empty()) return infeasible();
    return all;
  }

 private:
  struct Option {  // a class and share at the present batch size
    int device_class, share;
    std::vector<double> until;  // [block]: time of the blocks before it
    double nic_share;           // bytes/s of one virtual device
    double memory;              // of one virtual device
  };

  bool usable(size_t c, int share) const {
    const bool allowed = rules_.classes.empty() ? fleet_.classes[c].count > 0 : rules_.classes[c];
    return allowed && share <= std::min(rules_.max_share, fleet_.classes[c].share_levels);
  }

  void prepare(int batch) {
    options_.clear();
    const auto n = static_cast<size_t>(model_.blocks);
    fastest_after_.assign(n + 1, kInfinity);
    for (size_t c = 0; c < fleet_.classes.size(); ++c) {
      const auto& dc = fleet_.classes[c];
      for (int v = 1; v <= kMaxShare; ++v) {
        if (!usable(c, v) || model_.max_batch(c, v) < batch) continue;
        Option o{static_cast<int>(c), v, std::vector<double>(n + 1, 0), nic_share(dc, v),
                 dc.memory_bytes > 0 ? static_cast<double>(dc.memory_bytes) / v : kInfinity};
        for (size_t k = 0; k < n; ++k)
          o.until[k + 1] = o.until[k] + model_.block_us(c, v, batch, static_cast<int>(k));
        options_.push_back(std::move(o));
      }
    }
    // Lower bound on the time of the remaining blocks: each on its fastest option, without transfers.
    fastest_after_[n] = 0;
    for (size_t k = n; k-- > 0;) {
      double fastest = kInfinity;
      for (const auto& o : options_) fastest = std::min(fastest, o.until[k + 1] - o.until[k]);
      fastest_after_[k] = fastest_after_[k + 1] + fastest;
    }
  }

  bool fits(const Option& o, int from, int to) const {
    if (o.memory == kInfinity || model_.parameter_bytes.empty()) return true;
    double bytes = 0;
    for (int k = from; k < to; ++k)
      bytes += static_cast<double>(model_.parameter_bytes[static_cast<size_t>(k)]);
    return bytes <= o.memory;
  }

  Status extend(int from, double before_us) {
    const bool last = column_.stages + 1 == rules_.max_partitions;
    for (const auto& o : options_) {
      double start_us = before_us;
      if (from > 0)
        start_us +=
            transfer_us(fleet_, model_, column_.batch, from,
                        column_.stage[static_cast<size_t>(column_.stages - 1)].device_class, o.device_class);
      for (int to = last ? model_.blocks : from + 1; to <= model_.blocks; ++to) {
        if (++visits_ > kMaxVisits)
          return unsupported("model " + quote_text(model_.name) +
                             ": more than 50 million ways to cut and place it; give the fleet fewer "
                             "blocks, max_partitions, share levels or batch sizes");
        if ((visits_ & 0xffff) == 0 && deadline_.should_stop())
          return cancelled_error("stopped while enumerating pipelines of model " + quote_text(model_.name));
        const double infer_us = o.until[static_cast<size_t>(to)] - o.until[static_cast<size_t>(from)];
        const double latency_us = start_us + infer_us;
        if (start_us + infer_us > limit_us_) break;
        if (latency_us + fastest_after_[static_cast<size_t>(to)] > limit_us_ || !fits(o, from, to)) continue;
        auto& stage = column_.stage[static_cast<size_t>(column_.stages)];
        stage = {from, to, o.device_class, o.share,
                 virtual_device_rate(model_, o.nic_share, column_.batch, from, to, infer_us)};
        ++column_.stages;
        if (to == model_.blocks) {
          keep();
        } else {
          HEDDLE_RETURN_IF_ERROR(extend(to, latency_us));
        }
        --column_.stages;
      }
    }
    return {};
  }

  void keep() {
    uint64_t key = 0;
    for (int k = 0; k < column_.stages; ++k) {
      const auto& s = column_.stage[static_cast<size_t>(k)];
      key = key * 256 + static_cast<uint64_t>(s.device_class * kMaxShare + s.share);
    }
    auto& columns = kept_[key];
    const auto dominates = [](const Column& a, const Column& b) {
      for (int k = 0; k < a.stages; ++k)
        if (a.stage[static_cast<size_t>(k)].rate_per_s < b.stage[static_cast<size_t>(k)].rate_per_s)
          return false;
      return true;
    };
    for (const auto& c : columns)
      if (dominates(c, column_)) return;
    std::erase_if(columns, [&](const Column& c) { return dominates(column_, c); });
    columns.push_back(column_);
  }

  // For the error: the classes with times and those with devices.
  std::string classes_text() const {
    std::string timed, present;
    for (size_t c = 0; c < fleet_.classes.size(); ++c) {
      const auto name = quote_text(fleet_.classes[c].name);
      if (model_.max_batch(c, 1) > 0) timed += (timed.empty() ? "" : ", ") + name;
      if (usable(c, 1)) present += (present.empty() ? "" : ", ") + name;
    }
    return "; there are times for " + (timed.empty() ? "none" : timed) + ", and devices of " +
           (present.empty() ? "none" : present);
  }

  Error infeasible() const {
    const auto where = "model " + quote_text(model_.name);
    double fastest_us = kInfinity;
    size_t fastest = 0;
    bool times = false;
    for (size_t c = 0; c < fleet_.classes.size(); ++c) {
      if (!usable(c, 1) || model_.max_batch(c, 1) < 1) continue;
      times = true;
      const double sum = blocks_us(model_, static_cast<int>(c), 1, 1, 0, model_.blocks);
      if (sum < fastest_us) fastest_us = sum, fastest = c;
    }
    if (!times)
      return {Code::kInfeasible,
              where + ": no class with a device has times for it at share 1/1 and batch 1" + classes_text()};
    const double limit_us = model_.slo_us - model_.margin_us;
    if (fastest_us <= limit_us)
      return {Code::kInfeasible, where + ": no pipeline of at most " + std::to_string(rules_.max_partitions) +
                                     " partitions fits the devices' memory within its deadline; its fastest "
                                     "class is " +
                                     quote_text(fleet_.classes[fastest].name)};
    return {Code::kInfeasible, where + ": no pipeline meets its deadline: on its fastest class " +
                                   quote_text(fleet_.classes[fastest].name) + " one request takes " +
                                   format_us(fastest_us) + ", the SLO of " + format_us(model_.slo_us) +
                                   " less the margin of " + format_us(model_.margin_us) + " leaves " +
                                   format_us(limit_us)};
  }

  const Fleet& fleet_;
  const FleetModel& model_;
  size_t index_;
  const ColumnRules& rules_;
  const Deadline& deadline_;
  std::vector<Option> options_;
  std::vector<double> fastest_after_;
  Column column_;
  double limit_us_ = 0;
  int64_t visits_ = 0;
  std::map<uint64_t, std::vector<Column>> kept_;
};

}  // namespace

double Column::devices_per_rate(int device_class) const {
  double sum = 0;
  for (int k = 0; k < stages; ++k) {
    const auto& s = stage[static_cast<size_t>(k)];
    if (s.device_class == device_class) sum += 1 / (s.share * s.rate_per_s);
  }
  return sum;
}

double Column::rate(const std::array<int64_t, kMaxPartitions>& counts) const {
  double rate = kInfinity;
  for (int k = 0; k < stages; ++k)
    rate = std::min(
        rate, static_cast<double>(counts[static_cast<size_t>(k)]) * stage[static_cast<size_t>(k)].rate_per_s);
  return rate;
}

ColumnRules rules_of(const Fleet& fleet) { return {fleet.max_partitions, kMaxShare, {}}; }

double batch_delay_us(const Fleet& fleet, size_t model, int batch) {
  const double rate = fleet.models[model].estimated_rate_per_s;
  return rate > 0 ? fleet.batch_delay_factor * kUsPerSecond * (batch - 1) / rate : 0;
}

Result<std::vector<Column>> columns_of(const Fleet& fleet, size_t model, const ColumnRules& rules,
                                       const Deadline& deadline) {
  return Enumeration(fleet, model, rules, deadline).run();
}

Result<std::vector<std::vector<Column>>> all_columns(const Fleet& fleet, const ColumnRules& rules,
                                                     const Deadline& deadline) {
  std::vector<std::vector<Column>> all;
  for (size_t m = 0; m < fleet.models.size(); ++m) {
    HEDDLE_ASSIGN_OR_RETURN(auto columns, columns_of(fleet, m, rules, deadline));
    all.push_back(std::move(columns));
  }
  return all;
}

std::optional<Column> column_of(const Fleet& fleet, size_t model, const FleetPipeline& pipeline) {
  const auto& m = fleet.models[model];
  Column column;
  column.batch = pipeline.batch;
  double latency_us = batch_delay_us(fleet, model, pipeline.batch) + m.margin_us;
  if (pipeline.partitions.empty() || pipeline.partitions.size() > static_cast<size_t>(fleet.max_partitions))
    return std::nullopt;
  for (size_t k = 0; k < pipeline.partitions.size(); ++k) {
    const auto& p = pipeline.partitions[k];
    const auto& dc = fleet.classes[static_cast<size_t>(p.device_class)];
    if (dc.count == 0 || p.share > dc.share_levels) return std::nullopt;
    const double infer_us = blocks_us(m, p.device_class, p.share, pipeline.batch, p.block_from, p.block_to);
    double bytes = 0;
    for (int b = p.block_from; b < p.block_to && !m.parameter_bytes.empty(); ++b)
      bytes += static_cast<double>(m.parameter_bytes[static_cast<size_t>(b)]);
    if (std::isnan(infer_us) ||
        (dc.memory_bytes > 0 && bytes * p.share > static_cast<double>(dc.memory_bytes)))
      return std::nullopt;
    latency_us += infer_us;
    if (k > 0)
      latency_us += transfer_us(fleet, m, pipeline.batch, p.block_from,
                                pipeline.partitions[k - 1].device_class, p.device_class);
    column.stage[static_cast<size_t>(column.stages++)] = {
        p.block_from, p.block_to, p.device_class, p.share,
        virtual_device_rate(m, nic_share(dc, p.share), pipeline.batch, p.block_from, p.block_to, infer_us)};
  }
  if (latency_us > m.slo_us + kDeadlineSlack_us) return std::nullopt;
  return column;
}

bool same_pipeline(const FleetPipeline& a, const FleetPipeline& b) {
  return a.batch == b.batch &&
         std::ranges::equal(a.partitions, b.partitions, [](const FleetPartition& p, const FleetPartition& q) {
           return p.block_from == q.block_from && p.block_to == q.block_to &&
                  p.device_class == q.device_class && p.share == q.share;
         });
}

FleetPipeline make_pipeline(const Column& column, const std::array<int64_t, kMaxPartitions>& counts) {
  FleetPipeline p;
  p.batch = column.batch;
  for (int k = 0; k < column.stages; ++k) {
    const auto& s = column.stage[static_cast<size_t>(k)];
    p.partitions.push_back(
        {s.block_from, s.block_to, s.device_class, s.share, counts[static_cast<size_t>(k)]});
  }
  p.rate_per_s = column.rate(counts);
  return p;
}

void merge_pipelines(std::vector<FleetPipeline>& pipelines) {
  std::vector<FleetPipeline> merged;
  for (auto& p : pipelines) {
    const auto twin =
        std::find_if(merged.begin(), merged.end(), [&](const auto& q) { return same_pipeline(p, q); });
    if (twin == merged.end()) {
      merged.push_back(std::move(p));
    } else {
      for (size_t k = 0; k < p.partitions.size(); ++k) twin->partitions[k].count += p.partitions[k].count;
    }
  }
  pipelines = std::move(merged);
}

}  // namespace heddle

#include "stage_net.h"

#include <algorithm>

namespace heddle {

StageNet::StageNet(size_t ops, size_t all)
    : n(ops), devices(all), before(ops), behind(ops), us(ops, kNoTime), work(ops, kNoTime) {}

void StageNet::add_edge(uint32_t from, uint32_t to, double least_us) {
  before[to].push_back({from, 0, least_us});
}

void StageNet::finish() {
  for (uint32_t v = 0; v < n; ++v) {
    // Of several tensors between two ops the slowest counts.
    auto& arcs = before[v];
    std::sort(arcs.begin(), arcs.end(),
              [](const StageArc& a, const StageArc& b) { return a.op != b.op ? a.op < b.op : a.us > b.us; });
    const auto same = [](const StageArc& a, const StageArc& b) { return a.op == b.op; };
    arcs.erase(std::unique(arcs.begin(), arcs.end(), same), arcs.end());
    for (StageArc& arc : arcs) {
      arc.edge = static_cast<uint32_t>(edges++);
      behind[arc.op].push_back({v, arc.edge, arc.us});
    }
  }
  std::vector<size_t> waiting(n);
  for (uint32_t v = 0; v < n; ++v) {
    waiting[v] = before[v].size();
    if (waiting[v] == 0) order.push_back(v);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (const StageArc& arc : behind[order[i]]) {
      if (--waiting[arc.op] == 0) order.push_back(arc.op);
    }
  }
  find_above();
}

StageNet StageNet::reversed() const {
  StageNet r = *this;
  std::reverse(r.order.begin(), r.order.end());
  std::swap(r.before, r.behind);
  r.find_above();
  return r;
}

StageNet StageNet::part(const std::vector<uint32_t>& ops) const {
  StageNet r(ops.size(), devices);
  std::vector<uint32_t> number(n, UINT32_MAX);
  for (uint32_t i = 0; i < ops.size(); ++i) number[ops[i]] = i;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    r.us[i] = us[ops[i]];
    r.work[i] = work[ops[i]];
    for (const StageArc& arc : before[ops[i]]) {
      if (number[arc.op] != UINT32_MAX) r.add_edge(number[arc.op], i, arc.us);
    }
  }
  r.finish();
  return r;
}

void StageNet::find_above() {
  if (n > kMostOps) return;
  above.assign(n, std::vector<uint64_t>((n + 63) / 64, 0));
  for (const uint32_t v : order) {
    for (const StageArc& arc : before[v]) {
      above[v][arc.op / 64] |= uint64_t{1} << (arc.op % 64);
      for (size_t i = 0; i < above[v].size(); ++i) above[v][i] |= above[arc.op][i];
    }
  }
}

double one_device_us(const StageNet& net, const std::vector<double>& head, std::vector<uint32_t>& ops) {
  std::sort(ops.begin(), ops.end(),
            [&](uint32_t a, uint32_t b) { return head[a] != head[b] ? head[a] > head[b] : a < b; });
  double work = 0, most = 0;
  for (const uint32_t v : ops) {
    work += net.work[v];
    most = std::max({most, head[v] + work, head[v] + net.us[v]});
  }
  return most;
}

namespace {

class HeadRaiser {
 public:
  HeadRaiser(const StageNet& net, const StageKnowledge& known, std::vector<double>& head)
      : net_(net), known_(known), head_(head), source_(widest_source(net)) {}

  bool run() {
    const auto elsewhere = starts_elsewhere(net_, head_, source_);
    bool rose = false;
    for (const uint32_t v : net_.order) {
      const double now = std::max({head_[v], by_inputs(v), by_ancestors(v, elsewhere)});
      rose |= now > head_[v] * (1 + 1e-12) + 1e-12;
      head_[v] = now;
    }
    return rose;
  }

 private:
  // Inputs come from v's own device, where they take turns, or are transferred: the cheapest choice.
  double by_inputs(uint32_t v) {
    double head = 0;
    here_.clear();
    for (const uint32_t u : known_.members[known_.cluster[v]]) {
      if (net_.is_above(u, v)) here_.push_back(u);
    }
    open_.clear();
    for (const StageArc& arc : net_.before[v]) {
      const double done = head_[arc.op] + net_.us[arc.op];
      head = std::max(head, done);
      if (known_.cluster[arc.op] == known_.cluster[v]) continue;
      if (known_.apart[arc.edge])
        head = std::max(head, done + arc.us);
      else
        open_.push_back({done + arc.us, arc.op});
    }
    std::sort(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    // The first j inputs by falling arrival are on v's device.
    double least = kNoTime;
    for (size_t j = 0;; ++j) {
      const double here = one_device_us(net_, head_, here_);
      least = std::min(least, std::max(here, j < open_.size() ? open_[j].first : 0));
      if (j == open_.size() || here >= least) break;
      here_.push_back(open_[j].second);
    }
    return std::max(head, least);
  }

  // The work above v, over all devices; other devices than the source's begin later, and other devices than
  // v's must be done a transfer earlier.
  double by_ancestors(uint32_t v, const std::vector<double>& elsewhere) {
    above_.clear();
    for (uint32_t u = 0; u < net_.n; ++u) {
      if (net_.is_above(u, v)) above_.push_back(u);
    }
    if (above_.empty()) return 0;
    const bool below_source = v != source_ && net_.is_above(source_, v);
    std::sort(above_.begin(), above_.end(),
              [&](uint32_t a, uint32_t b) { return head_[a] != head_[b] ? head_[a] > head_[b] : a < b; });
    find_leave(v);
    const auto others = static_cast<double>(net_.devices - 1);
    double best = 0, work = 0, first = kNoTime, leave = kNoTime;
    bool all_below = below_source;
    for (const uint32_t u : above_) {
      all_below = all_below && (u == source_ || net_.is_above(source_, u));
      work += net_.work[u];
      leave = std::min(leave, leave_[u]);
      first = std::min(first, all_below ? elsewhere[u] : head_[u]);
      if (!all_below) first = std::min(first, head_[u]);
      best = std::max(best, shared_us(head_[u], first, leave, work, others));
    }
    return best;
  }

 public:
  // The least end of a window with so much work that one device enters at `begin` and all others at `first`,
  // when all but one must be done `leave` before its end.
  static double shared_us(double begin, double first, double leave, double work, double others) {
    const double alone = begin + work;
    if (first == kNoTime || leave == kNoTime || others == 0) return alone;
    return std::min(alone, (work + begin + others * (first + leave)) / (others + 1));
  }

 private:
  // Per op above v: the least time from its end to v's start when it is not on v's device.
  void find_leave(uint32_t v) {
    leave_.assign(net_.n, kNoTime);
    for (size_t i = net_.n; i-- > 0;) {
      const uint32_t u = net_.order[i];
      if (!net_.is_above(u, v)) continue;
      double least = 0;
      for (const StageArc& arc : net_.behind[u]) {
        if (arc.op == v) {
          least = std::max(least, arc.us);
        } else if (net_.is_above(arc.op, v)) {
          // The reader stays away from v's device, or is moved to and comes before v there.
          least = std::max(least, std::min(leave_[arc.op], arc.us) + net_.us[arc.op]);
        }
      }
      leave_[u] = least;
    }
  }

  const StageNet& net_;
  const StageKnowledge& known_;
  std::vector<double>& head_;
  const uint32_t source_;
  std::vector<uint32_t> here_, above_;
  std::vector<std::pair<double, uint32_t>> open_;
  std::vector<double> leave_;
};

}  // namespace

bool raise_heads(const StageNet& net, const StageKnowledge& known, std::vector<double>& head) {
  return net.n > 0 && HeadRaiser(net, known, head).run();
}

std::vector<double> starts_elsewhere(const StageNet& net, const std::vector<double>& head, uint32_t source) {
  std::vector<double> start = head;
  start[source] = kNoTime;
  for (const uint32_t v : net.order) {
    if (!net.is_above(source, v)) continue;
    for (const StageArc& arc : net.before[v]) {
      if (arc.op != source && !net.is_above(source, arc.op)) continue;
      const double done = head[arc.op] + net.us[arc.op];
      start[v] = std::max(start[v], std::min(start[arc.op] + net.us[arc.op], done + arc.us));
    }
  }
  return start;
}

uint32_t widest_source(const StageNet& net) {
  std::vector<uint32_t> below(net.n, 0);
  for (uint32_t v = 0; v < net.n; ++v) {
    for (uint32_t u = 0; u < net.n; ++u) below[u] += net.is_above(u, v);
  }
  return static_cast<uint32_t>(std::max_element(below.begin(), below.end()) - below.begin());
}

}  // namespace heddle

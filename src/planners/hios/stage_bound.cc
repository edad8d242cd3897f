#include "stage_bound.h"

#include <algorithm>

namespace heddle {
namespace {

// A limit counts as refuted only when it is exceeded by more than sums of doubles are off.
constexpr double kMargin = 1e-9;
constexpr int kLimits = 14;          // tried between what is proven and what is known
constexpr double kFirstStep = 1e-3;  // of the way: nothing more is tried where this is not refuted
constexpr int kRounds = 8;           // of drawing conclusions from one limit
// Of an op's own start: how many ops above it are looked at, how many limits, how far above what is known.
constexpr size_t kNearOps = 40;
constexpr int kStartLimits = 6;
constexpr double kStartReach = 1.3;

class Prover {
 public:
  Prover(const StageNet& net, const Deadline& deadline)
      : deadline_(deadline), down_(net), up_(net.reversed()) {
    const size_t n = down_.n;
    for (StageKnowledge* k : {&head_, &tail_}) {
      k->head.assign(n, 0);
      k->apart.assign(down_.edges, 0);
      k->cluster.resize(n);
      k->members.assign(n, {});
      for (uint32_t v = 0; v < n; ++v) {
        k->cluster[v] = v;
        k->members[v] = {v};
      }
    }
  }

  StageBound run(double upper) {
    StageBound best{0, "nothing to do"};
    if (down_.n == 0) return best;
    double work = 0;
    for (const double w : down_.work) work += w;
    offer(best, work / static_cast<double>(down_.devices), "work over all devices");
    if (down_.n > StageNet::kMostOps) return best;
    settle();
    deepen(down_, head_.head);
    deepen(up_, tail_.head);
    settle();
    for (uint32_t v = 0; v < down_.n; ++v) offer(best, through(v), "head + op + tail");
    offer(best, windows(), "window of work between heads and tails");
    // Refuted limits need not be ordered; each is a proof by itself.
    offer(best, refute_from(best.us, upper == kNoTime ? 4 * best.us : upper, kLimits),
          "a limit refuted by who must share a device");
    return best;
  }

 private:
  // Sums over a path or a window are off by less.
  double rounded_down(double us) const { return us * (1 - 1e-12 - 4e-16 * static_cast<double>(down_.n)); }
  void offer(StageBound& best, double us, const char* reason) const {
    us = rounded_down(us);
    if (us > best.us) best = {us, reason};
  }

  void settle() {
    for (int round = 0; round < kRounds && !deadline_.should_stop(); ++round) {
      const bool down = raise_heads(down_, head_, head_.head);
      const bool up = raise_heads(up_, tail_, tail_.head);
      if (!down && !up) break;
    }
  }

  // Raises heads by refuting earlier starts of one op after the other, as makespans of the part above it.
  void deepen(const StageNet& net, std::vector<double>& head) const {
    for (const uint32_t v : net.order) {
      if (deadline_.should_stop()) return;
      std::vector<uint32_t> part;
      for (uint32_t u = 0; u < net.n; ++u) {
        if (net.is_above(u, v)) part.push_back(u);
      }
      if (part.size() < 2) continue;
      const auto later = [&](uint32_t a, uint32_t b) {
        const double ea = head[a] + net.us[a], eb = head[b] + net.us[b];
        return ea != eb ? ea > eb : a < b;
      };
      std::sort(part.begin(), part.end(), later);
      part.resize(std::min(part.size(), kNearOps));
      part.push_back(v);
      StageNet near = net.part(part);
      near.us.back() = near.work.back() = 0;
      Prover prover(near, deadline_);
      for (size_t i = 0; i < part.size(); ++i) prover.head_.head[i] = head[part[i]];
      head[v] = std::max(head[v], prover.refute_from(head[v], kStartReach * head[v], kStartLimits));
    }
  }

  // The largest makespan between them that was refuted (or `low`).
  double refute_from(double low, double high, int limits) {
    const StageKnowledge head = head_, tail = tail_;
    for (int i = 0; i < limits && high > low * (1 + 1e-6) && !deadline_.should_stop(); ++i) {
      const double limit = i == 0 ? low + (high - low) * kFirstStep : (low + high) / 2;
      head_ = head;
      tail_ = tail;
      if (refuted(limit)) {
        low = rounded_down(limit);
      } else {
        high = limit;
        if (i == 0) break;
      }
    }
    return low;
  }

  double through(uint32_t v) const { return head_.head[v] + down_.us[v] + tail_.head[v]; }

  // The work of all ops with a head of at least a and a tail of at least b, over all a and b.
  double windows() const {
    const uint32_t source = widest_source(down_), sink = widest_source(up_);
    const auto enter = starts_elsewhere(down_, head_.head, source);
    const auto leave = starts_elsewhere(up_, tail_.head, sink);
    std::vector<uint32_t> by_tail = down_.order;
    std::sort(by_tail.begin(), by_tail.end(), [&](uint32_t a, uint32_t b) {
      return tail_.head[a] != tail_.head[b] ? tail_.head[a] > tail_.head[b] : a < b;
    });
    std::vector<double> starts(head_.head);
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    const auto others = static_cast<double>(down_.devices - 1);
    double best = 0;
    for (const double a : starts) {
      double work = 0, first = kNoTime, last = kNoTime, begin = kNoTime;
      bool below = true, above = true;
      for (const uint32_t v : by_tail) {
        if (head_.head[v] < a) continue;
        const double b = tail_.head[v];
        work += down_.work[v];
        begin = std::min(begin, head_.head[v]);
        below = below && (v == source || down_.is_above(source, v));
        above = above && (v == sink || up_.is_above(sink, v));
        first = std::min(first, below ? enter[v] : begin);
        if (!below) first = begin;
        last = std::min(last, leave[v]);
        const double end = above ? last : b;
        const double alone = begin + work + b;
        double shared = alone;
        if (first != kNoTime && end != kNoTime && others > 0)
          shared = std::min(alone, (work + begin + b + others * (first + end)) / (others + 1));
        best = std::max(best, shared);
      }
    }
    return best;
  }

  bool refuted(double limit) {
    const double most = limit * (1 + kMargin);
    for (int round = 0; round < kRounds; ++round) {
      if (deadline_.should_stop()) return false;
      bool changed = raise_heads(down_, head_, head_.head);
      changed |= raise_heads(up_, tail_, tail_.head);
      for (uint32_t v = 0; v < down_.n; ++v) {
        if (through(v) > most) return true;
      }
      for (uint32_t v = 0; v < down_.n; ++v) {
        for (const StageArc& arc : down_.before[v]) {
          if (together(arc.op, v)) continue;
          const double moved = head_.head[arc.op] + down_.us[arc.op] + arc.us + down_.us[v] + tail_.head[v];
          if (moved <= most) continue;
          if (head_.apart[arc.edge]) return true;
          unite(arc.op, v);
          changed = true;
        }
      }
      for (const auto& members : head_.members) {
        if (deadline_.should_stop()) return false;
        if (members.size() > 1 && !fits_one_device(members, {}, most)) return true;
      }
      changed |= separate(most);
      if (windows() > most) return true;
      if (!changed) break;
    }
    return false;
  }

  bool together(uint32_t a, uint32_t b) const { return head_.cluster[a] == head_.cluster[b]; }

  void unite(uint32_t a, uint32_t b) {
    for (StageKnowledge* k : {&head_, &tail_}) {
      uint32_t to = k->cluster[a], from = k->cluster[b];
      if (k->members[to].size() < k->members[from].size()) std::swap(to, from);
      for (const uint32_t v : k->members[from]) {
        k->cluster[v] = to;
        k->members[to].push_back(v);
      }
      k->members[from].clear();
    }
  }

  // Whether one device can do all of them between their heads and tails.
  bool fits_one_device(const std::vector<uint32_t>& some, const std::vector<uint32_t>& more, double most) {
    set_.assign(some.begin(), some.end());
    set_.insert(set_.end(), more.begin(), more.end());
    std::sort(set_.begin(), set_.end(), [&](uint32_t a, uint32_t b) {
      return tail_.head[a] != tail_.head[b] ? tail_.head[a] > tail_.head[b] : a < b;
    });
    for (const uint32_t from : set_) {
      const double a = head_.head[from];
      double work = 0;
      for (const uint32_t v : set_) {
        if (head_.head[v] < a) continue;
        work += down_.work[v];
        if (a + work + tail_.head[v] > most) return false;
      }
    }
    return true;
  }

  // Ops joined by an edge whose clusters do not fit one device together are apart.
  bool separate(double most) {
    bool changed = false;
    for (uint32_t v = 0; v < down_.n; ++v) {
      if (deadline_.should_stop()) break;
      for (const StageArc& arc : down_.before[v]) {
        if (together(arc.op, v) || head_.apart[arc.edge]) continue;
        if (fits_one_device(head_.members[head_.cluster[arc.op]], head_.members[head_.cluster[v]], most))
          continue;
        head_.apart[arc.edge] = tail_.apart[arc.edge] = 1;
        changed = true;
      }
    }
    return changed;
  }

  const Deadline& deadline_;
  const StageNet& down_;
  const StageNet up_;
  StageKnowledge head_, tail_;
  std::vector<uint32_t> set_;
};

}  // namespace

StageBound stage_bound(const StageNet& net, double upper_us, const Deadline& deadline) {
  return Prover(net, deadline).run(upper_us);
}

}  // namespace heddle

// IOS, section 4.2, Algorithm 1: cost[S] = min over endings S' of S of cost[S - S'] + latency(S'), where an
// ending has no edge to the rest of S, its groups are its connected components, and S runs over what is left
// of a piece when endings are taken off. At most 2^64 sets by their number, but few are reached: those closed
// under predecessors.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "heddle/cost/stage_model.h"
#include "ios.h"

namespace heddle {
namespace {

constexpr size_t kMaxPiece = 64;  // ops in a mask
constexpr size_t kPartOps = 10;   // of a piece that is too large for the exact program
// Endings tried for an exact piece, some 100 ns each; there are no more sets than endings, some 100 bytes
// each.
constexpr uint64_t kMaxEndings = 2'000'000;

using Mask = uint64_t;
Mask bit(size_t i) { return Mask{1} << i; }

// One piece: ops of a device, consecutive in a topological order.
class Piece {
 public:
  Piece(const StageInstance& instance, size_t device, std::span<const uint32_t> ops,
        const IosPruning& pruning, const std::vector<uint32_t>& place, uint32_t first, uint64_t budget)
      : instance_(instance),
        device_(device),
        ops_(ops),
        pruning_(pruning),
        budget_(budget),
        model_(instance.sharing(device)),
        after_(ops.size()) {
    for (size_t i = 0; i < ops.size(); ++i) {
      for (const auto& next : instance.outputs(ops[i])) {
        const uint32_t p = place[next.op];
        if (p != UINT32_MAX && p >= first && p - first < ops.size()) after_[i] |= bit(p - first);
      }
    }
  }

  // Appends the stages and their time; false when the budget is spent or the deadline passed.
  bool solve(const Deadline& deadline, IosResult& result) {
    const Mask all = ops_.size() == kMaxPiece ? ~Mask{0} : bit(ops_.size()) - 1;
    best_.emplace(0, Choice{0, 0});
    // Depth first with a stack of our own: a set waits until all it leads to are known.
    std::vector<Mask> stack = {all};
    while (!stack.empty()) {
      const Mask set = stack.back();
      if (best_.contains(set)) {
        stack.pop_back();
        continue;
      }
      if (deadline.should_stop()) return false;
      Choice choice{kNoTime, 0};
      const size_t waiting = stack.size();
      endings(set, [&](Mask ending, double us) {
        const auto rest = best_.find(set & ~ending);
        if (rest == best_.end()) {
          stack.push_back(set & ~ending);
        } else if (us + rest->second.us < choice.us) {
          choice = {us + rest->second.us, ending};
        }
      });
      if (tried_ > budget_) return false;
      if (stack.size() > waiting) continue;
      best_.emplace(set, choice);
      stack.pop_back();
    }
    std::vector<IosGroups> stages;
    for (Mask set = all; set != 0; set &= ~best_.at(set).ending)
      stages.push_back(groups_of(best_.at(set).ending));
    result.stages.insert(result.stages.end(), stages.rbegin(), stages.rend());
    result.us += best_.at(all).us;
    return true;
  }

 private:
  struct Choice {
    double us;
    Mask ending;
  };

  // The ending's connected components.
  std::vector<Mask> components(Mask ending) const {
    std::vector<Mask> parts;
    for (size_t i = ops_.size(); i-- > 0;) {
      if (ending & bit(i)) join(parts, i, ending);
    }
    return parts;
  }

  // Adds op i, whose readers are there already, to the components.
  void join(std::vector<Mask>& parts, size_t i, Mask ending) const {
    const Mask readers = after_[i] & ending;
    Mask merged = bit(i);
    std::erase_if(parts, [&](Mask part) {
      if ((part & readers) == 0) return false;
      merged |= part;
      return true;
    });
    parts.push_back(merged);
  }

  IosGroups groups_of(Mask ending) const {
    IosGroups groups;
    for (const Mask part : components(ending)) {
      auto& group = groups.emplace_back();
      for (size_t i = 0; i < ops_.size(); ++i) {
        if (part & bit(i)) group.push_back(ops_[i]);
      }
    }
    return groups;
  }

  double stage_us(const std::vector<Mask>& parts) {
    items_.clear();
    for (const Mask part : parts) {
      StageItem item;
      for (Mask left = part; left != 0; left &= left - 1) {
        const uint32_t v = ops_[static_cast<size_t>(std::countr_zero(left))];
        item.us += instance_.us(v, device_);
        item.busy_us += instance_.busy_us(v, device_);
      }
      items_.push_back(item);
    }
    return model_.us(items_);
  }

  // Calls `use` with every ending of `set` within the pruning. A single group of several ops takes what its
  // ops take one by one, so it is left out.
  template <class Use>
  void endings(Mask set, const Use& use) {
    extend(set, 0, ops_.size(), {}, use);
  }

  // Adds ops with smaller numbers than those there, so that each ending comes once.
  template <class Use>
  void extend(Mask set, Mask ending, size_t below, const std::vector<Mask>& parts, const Use& use) {
    for (size_t i = below; i-- > 0;) {
      if ((set & bit(i)) == 0 || (after_[i] & set & ~ending) != 0) continue;
      if (++tried_ > budget_) return;
      std::vector<Mask> joined = parts;
      join(joined, i, ending);
      if (static_cast<size_t>(std::popcount(joined.back())) > pruning_.group_ops) continue;
      const Mask grown = ending | bit(i);
      const auto ops = static_cast<size_t>(std::popcount(grown));
      if (joined.size() <= pruning_.groups && (joined.size() > 1 || ops == 1)) use(grown, stage_us(joined));
      if (ops < pruning_.groups * pruning_.group_ops) extend(set, grown, i, joined, use);
    }
  }

  const StageInstance& instance_;
  const size_t device_;
  const std::span<const uint32_t> ops_;
  const IosPruning pruning_;
  const uint64_t budget_;
  const StageModel model_;
  uint64_t tried_ = 0;
  std::vector<StageItem> items_;  // of the stage being timed
  std::vector<Mask> after_;       // readers of each op in the piece
  std::unordered_map<Mask, Choice> best_;
};

// Ends of the pieces between ops that all others come before or after: such an op is a piece by itself. In a
// topological order it is one that no edge passes, with no sink before and no source behind it.
std::vector<size_t> piece_ends(const StageInstance& instance, std::span<const uint32_t> ops,
                               const std::vector<uint32_t>& place) {
  const size_t n = ops.size();
  std::vector<size_t> farthest(n, 0), ends;
  size_t last_source = 0, first_sink = n;
  for (size_t i = 0; i < n; ++i) {
    bool reads = false, is_read = false;
    for (const auto& in : instance.inputs(ops[i])) reads |= place[in.op] != UINT32_MAX;
    for (const auto& next : instance.outputs(ops[i])) {
      if (place[next.op] == UINT32_MAX) continue;
      is_read = true;
      farthest[i] = std::max(farthest[i], size_t{place[next.op]});
    }
    if (!reads) last_source = i;
    if (!is_read) first_sink = std::min(first_sink, i);
  }
  size_t passes = 0;  // the farthest reader of the ops before
  for (size_t i = 0; i < n; ++i) {
    if (passes <= i && first_sink >= i && last_source <= i) {
      if (i > 0 && (ends.empty() || ends.back() < i)) ends.push_back(i);
      ends.push_back(i + 1);
    }
    passes = std::max(passes, farthest[i]);
  }
  if (ends.empty() || ends.back() < n) ends.push_back(n);
  return ends;
}

}  // namespace

IosResult ios_schedule(const StageInstance& instance, size_t device, std::span<const uint32_t> ops,
                       const IosPruning& pruning, const Deadline& deadline) {
  std::vector<uint32_t> place(instance.num_ops(), UINT32_MAX);
  for (size_t i = 0; i < ops.size(); ++i) place[ops[i]] = static_cast<uint32_t>(i);
  IosResult result;
  const auto add = [&](size_t begin, size_t end, uint64_t budget) {
    const auto part = ops.subspan(begin, end - begin);
    return Piece(instance, device, part, pruning, place, static_cast<uint32_t>(begin), budget)
        .solve(deadline, result);
  };
  size_t begin = 0;
  for (const size_t end : piece_ends(instance, ops, place)) {
    if (end - begin <= kMaxPiece && add(begin, end, kMaxEndings)) {
      begin = end;
      continue;
    }
    result.exact = false;
    // Parts end at multiples of their size in the whole order.
    while (begin < end) {
      const size_t part_end = std::min(end, (begin / kPartOps + 1) * kPartOps);
      if (!add(begin, part_end, UINT64_MAX)) {
        for (size_t i = begin; i < part_end; ++i) {
          result.stages.push_back({{ops[i]}});
          result.us += instance.us(ops[i], device);
        }
      }
      begin = part_end;
    }
  }
  return result;
}

}  // namespace heddle

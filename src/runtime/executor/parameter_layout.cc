#include "parameter_layout.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr double kTickUs = 1e-6;

struct ParameterStay {
  int32_t segment = -1;
  int64_t begin = 0, end = 0;  // bytes
  int32_t run_step = -1;
  bool over = false;  // its place may be reused
};

// The first gap of `bytes` between the current stays.
int64_t first_gap(const std::vector<ParameterStay>& stays, int64_t bytes) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const ParameterStay& s : stays) {
    if (!s.over) taken.emplace_back(s.begin, s.end);
  }
  std::sort(taken.begin(), taken.end());
  int64_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (begin - at >= bytes) break;
    at = std::max(at, end);
  }
  return at;
}

}  // namespace

ParameterLayout lay_out_parameters(const Plan& plan, const Timeline& timeline,
                                   const std::vector<ParameterNeed>& needs, int32_t memories) {
  const size_t count = plan.segments.size();
  std::vector<int32_t> run_step(count, -1), load_step(count, -1);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const size_t s = plan.steps[i].segment.index();
    if (plan.steps[i].kind == StepKind::kRun) run_step[s] = static_cast<int32_t>(i);
    if (plan.steps[i].kind == StepKind::kLoad) load_step[s] = static_cast<int32_t>(i);
  }
  ParameterLayout layout;
  layout.bytes.assign(static_cast<size_t>(memories), 0);
  layout.offset.assign(count, -1);
  const auto comes_and_goes = [&](size_t s) { return plan.segments[s].drops_params && load_step[s] >= 0; };
  for (size_t s = 0; s < count; ++s) {
    if (needs[s].bytes == 0 || comes_and_goes(s)) continue;
    int64_t& end = layout.bytes[static_cast<size_t>(needs[s].memory)];
    layout.offset[s] = end;
    end += whole_pieces(needs[s].bytes);
  }
  const std::vector<int64_t> kept = layout.bytes;
  std::vector<std::vector<ParameterStay>> stays(static_cast<size_t>(memories));
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const size_t s = plan.steps[i].segment.index();
    if (plan.steps[i].kind != StepKind::kLoad || needs[s].bytes == 0 || !comes_and_goes(s)) continue;
    const auto memory = static_cast<size_t>(needs[s].memory);
    for (ParameterStay& other : stays[memory]) {
      const auto run = static_cast<size_t>(other.run_step);
      other.over = run < i && timeline.finish_us[run] <= timeline.start_us[i] + kTickUs;
    }
    const int64_t begin = first_gap(stays[memory], whole_pieces(needs[s].bytes));
    const int64_t end = begin + whole_pieces(needs[s].bytes);
    for (const ParameterStay& other : stays[memory]) {
      if (other.begin < end && begin < other.end)
        layout.reuses.emplace_back(other.segment, static_cast<int32_t>(s));
    }
    // Later loads wait for this stay, which has already waited for those that it overwrites entirely.
    std::erase_if(stays[memory],
                  [&](const ParameterStay& other) { return begin <= other.begin && other.end <= end; });
    stays[memory].push_back({static_cast<int32_t>(s), begin, end, run_step[s], false});
    layout.offset[s] = kept[memory] + begin;
    layout.bytes[memory] = std::max(layout.bytes[memory], kept[memory] + end);
  }
  return layout;
}

}  // namespace heddle

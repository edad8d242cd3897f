#include "load_sessions.h"

#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/sync.h"

namespace heddle {

LoadSessions::LoadSessions(std::span<const ModelUnderLoad> models, std::span<const Arrival> arrivals,
                           size_t at_once, size_t requests)
    : models_(models),
      arrivals_(arrivals),
      at_once_(at_once),
      requests_(requests),
      sessions_(models.size()),
      came_(models.size(), 0) {
  if (std::ranges::none_of(models, &ModelUnderLoad::keeps_state)) return;
  place_.resize(arrivals.size());
  std::vector<size_t> coming(models.size(), 0);
  for (const auto& a : arrivals) ++coming[a.model];
  // Another load on the server has other sessions.
  const auto load = fmt::format("loadtest-{:x}", wall_ns());
  for (size_t m = 0; m < models.size(); ++m) {
    if (!models[m].keeps_state) continue;
    for (size_t k = 0; k < std::min(at_once, coming[m]); ++k) {
      auto& session = sessions_[m].emplace_back();
      session.step.id = fmt::format("{}-{}", load, k);
      session.left = coming[m] / at_once + (k < coming[m] % at_once ? 1 : 0);
    }
  }
}

LoadSessions::Session* LoadSessions::session_of(size_t i) {
  const auto m = arrivals_[i].model;
  return models_[m].keeps_state ? &sessions_[m][place_[i]] : nullptr;
}

const SessionStep* LoadSessions::step(size_t i) const {
  const auto m = arrivals_[i].model;
  return models_[m].keeps_state ? &sessions_[m][place_[i]].step : nullptr;
}

void LoadSessions::begin(Session& session) const {
  session.busy = true;
  session.step.start = !session.open;
  session.sent = session.open ? session.sent + 1 : 1;
  --session.left;
  session.step.end = session.sent == requests_ || session.left == 0;
}

bool LoadSessions::enter(size_t i) {
  const auto m = arrivals_[i].model;
  if (!models_[m].keeps_state) return true;
  place_[i] = static_cast<uint32_t>(came_[m]++ % at_once_);
  auto& session = *session_of(i);
  if (session.busy) {
    session.waiting.push_back(i);
    return false;
  }
  begin(session);
  return true;
}

std::optional<size_t> LoadSessions::leave(size_t i, int status) {
  auto* const session = session_of(i);
  if (session == nullptr) return std::nullopt;
  const auto& step = session->step;
  if (status == 200) {
    begun_ += step.start;
    session->open = !step.end;
  } else if (step.end || status == 404) {
    session->open = false;  // also if the server still has it: a start begins it anew
  }
  session->busy = false;
  if (session->waiting.empty()) return std::nullopt;
  const size_t next = session->waiting.front();
  session->waiting.pop_front();
  begin(*session);
  return next;
}

}  // namespace heddle

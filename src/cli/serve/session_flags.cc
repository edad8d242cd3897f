#include "session_flags.h"

#include "data_plane_flags.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"

namespace heddle::cli {

void SessionFlags::declare(Command& command) {
  command.list("--session-state", state,
               "models, plan: keep an output for each session and give it to its next request as an input: "
               "INPUT=OUTPUT (repeatable, or with commas)");
  command.option("--session-idle", idle,
                 "models, plan: end a session that had no request for so long (default 60s)");
  command.option("--max-sessions", most, "most sessions at once, of all models (default 10000)", 1,
                 10'000'000);
  command.option("--session-memory", memory, "most bytes of all sessions' state (default 1GiB)");
}

const char* SessionFlags::of_models() const {
  return first_given({{"--session-state", !state.empty()}, {"--session-idle", !idle.empty()}});
}

Status SessionFlags::set(ModelSettings& settings) const {
  for (const auto& texts : state)
    for (const auto& text : split_list(texts)) {
      const auto equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
        return flag_error("--session-state", text, "INPUT=OUTPUT, such as h=hn");
      settings.state.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  if (idle.empty()) return {};
  const auto us = parse_time_us(idle);
  if (!us || !(*us >= 1) || *us > kMostSessionIdle_us)
    return flag_error("--session-idle", idle, "a time such as 60s, at most 168h");
  settings.session_idle_us = *us;
  return {};
}

Result<SessionLimits> SessionFlags::limits() const {
  SessionLimits limits;
  if (most) limits.sessions = static_cast<size_t>(*most);
  if (memory.empty()) return limits;
  const auto bytes = parse_bytes(memory);
  if (!bytes || *bytes < 1) return flag_error("--session-memory", memory, "a size such as 1GiB");
  limits.bytes = *bytes;
  return limits;
}

}  // namespace heddle::cli

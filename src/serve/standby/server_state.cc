#include "server_state.h"

#include <charconv>

namespace heddle {
namespace {

constexpr const char* kStateKey = "state";
constexpr int kMostTries = 5;  // others can write as often while this one does

struct StateEntry {
  uint64_t hash = 0, term = 0;
  std::string state;
};

std::string text_of(const StateEntry& entry) {
  return std::to_string(entry.hash) + " " + std::to_string(entry.term) + "\n" + entry.state;
}

// The first line has the hash of the fleet file and the writer's term.
Result<StateEntry> entry_from(const std::string& text) {
  StateEntry entry;
  const char* const end = text.data() + text.size();
  const auto hash = std::from_chars(text.data(), end, entry.hash);
  const auto space = hash.ptr;
  const bool has_term = hash.ec == std::errc() && space != end && *space == ' ';
  const auto term = has_term ? std::from_chars(space + 1, end, entry.term) : hash;
  if (!has_term || term.ec != std::errc() || term.ptr == end || *term.ptr != '\n')
    return invalid_input(
        "the servers' store has a state that this program does not read; empty it to begin anew");
  entry.state.assign(term.ptr + 1, end);
  return entry;
}

}  // namespace

Result<std::string> ServerState::load(uint64_t fleet_file_hash, uint64_t term) {
  const std::lock_guard lock(mutex_);
  std::string state;
  const auto claimed = [&](const std::string& there) -> Result<std::string> {
    StateEntry entry;
    if (!there.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(entry, entry_from(there));
      if (entry.term > term) return cancelled_error("another server has taken over");
    }
    state = entry.hash == fleet_file_hash ? entry.state : std::string();
    entry.term = term;
    return text_of(entry);
  };
  HEDDLE_RETURN_IF_ERROR(write(claimed));
  return state;
}

Status ServerState::save(uint64_t fleet_file_hash, const std::string& state, uint64_t term) {
  const std::lock_guard lock(mutex_);
  return write([&](const std::string& there) -> Result<std::string> {
    if (!there.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(const auto entry, entry_from(there));
      if (entry.term > term) return cancelled_error("another server has taken over");
    }
    return text_of({fleet_file_hash, term, state});
  });
}

// An earlier write of this server or of the leader before may have been carried out although its answer was lost, and
// even later than it was given up. So what is there decides, not what was written last.
Status ServerState::write(const std::function<Result<std::string>(const std::string& there)>& next) {
  for (int i = 0; i < kMostTries; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const auto entry, store_->get(kStateKey));
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, next(entry.value));
    HEDDLE_ASSIGN_OR_RETURN(const auto set, store_->set(kStateKey, text, entry.revision));
    if (set) return {};
  }
  return io_error("the servers' store changes too often");
}

}  // namespace heddle

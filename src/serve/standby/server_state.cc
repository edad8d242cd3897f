#include "server_state.h"

#include <charconv>

namespace heddle {

struct StateEntry {
  uint64_t hash = 0, term = 0;  // of the fleet file; of the server that wrote it
  std::string state;
};

namespace {

constexpr const char* kStateKey = "state";
constexpr int kMostTries = 5;  // others can write as often while this one does

std::string text_of(const StateEntry& entry) {
  return std::to_string(entry.hash) + " " + std::to_string(entry.term) + "\n" + entry.state;
}

// The first line has the hash of the fleet file and the writer's term; servers of before terms wrote the hash alone.
Result<StateEntry> entry_from(const std::string& text) {
  StateEntry entry;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, entry.hash);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == ' ')
    read = std::from_chars(read.ptr + 1, end, entry.term);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != '\n')
    return invalid_input(
        "the servers' store has a state that this program does not read; empty it to begin anew");
  entry.state.assign(read.ptr + 1, end);
  return entry;
}

}  // namespace

Result<std::string> ServerState::load(uint64_t fleet_file_hash, uint64_t term) {
  const std::lock_guard lock(mutex_);
  std::string state;
  HEDDLE_RETURN_IF_ERROR(write(
      term, [&](StateEntry& entry) { state = entry.hash == fleet_file_hash ? entry.state : std::string(); }));
  return state;
}

Status ServerState::save(uint64_t fleet_file_hash, const std::string& state, uint64_t term) {
  const std::lock_guard lock(mutex_);
  return write(term, [&](StateEntry& entry) {
    entry.hash = fleet_file_hash;
    entry.state = state;
  });
}

// An earlier write of this server or of the leader before may have been carried out although its answer was lost, and
// even later than it was given up. So what is there decides, not what was written last.
Status ServerState::write(uint64_t term, const std::function<void(StateEntry&)>& change) {
  for (int i = 0; i < kMostTries; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const auto there, store_->get(kStateKey));
    StateEntry entry;
    if (there.revision != 0) {
      HEDDLE_ASSIGN_OR_RETURN(entry, entry_from(there.value));
    }
    if (entry.term > term) return cancelled_error("another server has taken over");
    change(entry);
    entry.term = term;
    HEDDLE_ASSIGN_OR_RETURN(const auto set, store_->set(kStateKey, text_of(entry), there.revision));
    if (set) return {};
  }
  return io_error("the servers' store changes too often");
}

}  // namespace heddle

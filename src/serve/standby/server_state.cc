#include "server_state.h"

#include "heddle/base/numbers.h"

namespace heddle {
namespace {

constexpr const char* kStateKey = "state";

}  // namespace

// The first line is the hash of the fleet file.
Result<std::string> ServerState::load(uint64_t fleet_file_hash) {
  HEDDLE_ASSIGN_OR_RETURN(auto entry, store_->get(kStateKey));
  const std::lock_guard lock(mutex_);
  revision_ = entry.revision;
  if (entry.revision == 0) return std::string();
  const size_t end = entry.value.find('\n');
  const auto hash = parse_number<uint64_t>(entry.value.substr(0, std::min(end, entry.value.size())));
  if (end == std::string::npos || !hash)
    return invalid_input(
        "the servers' store has a state that this program does not read; empty it to begin anew");
  return *hash == fleet_file_hash ? entry.value.substr(end + 1) : std::string();
}

Status ServerState::save(uint64_t fleet_file_hash, const std::string& state) {
  const std::lock_guard lock(mutex_);
  HEDDLE_ASSIGN_OR_RETURN(const auto set,
                          store_->set(kStateKey, std::to_string(fleet_file_hash) + "\n" + state, revision_));
  if (set) {
    revision_ = *set;
    return {};
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto entry, store_->get(kStateKey));
  if (entry.revision != 0) return cancelled_error("another server has taken over");
  revision_ = 0;  // the store has lost what it had
  return io_error("the servers' store has lost the state; it is saved again with the next change");
}

}  // namespace heddle

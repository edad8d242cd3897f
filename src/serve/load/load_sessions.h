// The sessions of a load on models with state: which request is of which, one at a time in each.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "heddle/serve/infer_message.h"
#include "heddle/serve/load.h"

namespace heddle {

class LoadSessions {
 public:
  // `at_once` of each model with state, of `requests` each.
  LoadSessions(std::span<const ModelUnderLoad> models, std::span<const Arrival> arrivals, size_t at_once,
               size_t requests);

  // Request number i is due, in the order of the arrivals. False: the one before it in its session has no outcome yet,
  // so it waits here.
  bool enter(size_t i);
  // Request number i has its outcome, by the statuses of HTTP. Gives the one that has waited for it, if any.
  std::optional<size_t> leave(size_t i, int status);
  // Of a request that has entered and has no outcome; null: its model keeps no state.
  const SessionStep* step(size_t i) const;
  uint64_t begun() const { return begun_; }

 private:
  struct Session {
    SessionStep step;            // of the request under way
    std::deque<size_t> waiting;  // behind it
    bool busy = false;
    bool open = false;  // the server has it
    size_t sent = 0;    // requests since it began
    size_t left = 0;    // requests of the load that have not begun
  };
  Session* session_of(size_t i);
  void begin(Session& session) const;

  const std::span<const ModelUnderLoad> models_;
  const std::span<const Arrival> arrivals_;
  const size_t at_once_, requests_;
  std::vector<std::vector<Session>> sessions_;  // [model], none where it keeps no state
  std::vector<size_t> came_;                    // [model]
  std::vector<uint32_t> place_;  // [request], among its model's sessions; empty: no model keeps state
  uint64_t begun_ = 0;
};

}  // namespace heddle

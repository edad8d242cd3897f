// The reason for a bound.
#pragma once

#include <string>
#include <utility>

namespace heddle {

struct Proof {
  std::string reason;  // "critical path", "area", "head + area + tail", ...
  std::string
      claimed_by;  // the solver that vouches for it, "CP-SAT 9.15.6755"; empty: Heddle's own code proved it

  Proof() = default;
  Proof(const char* why) : reason(why) {}          // NOLINT: implicit on purpose
  Proof(std::string why, std::string solver = {})  // NOLINT: implicit on purpose
      : reason(std::move(why)), claimed_by(std::move(solver)) {}

  bool proven() const { return claimed_by.empty(); }
  // "proven: critical path", "claimed by CP-SAT 9.15.6755: solved to the end".
  std::string text() const { return (proven() ? "proven: " : "claimed by " + claimed_by + ": ") + reason; }
};

}  // namespace heddle

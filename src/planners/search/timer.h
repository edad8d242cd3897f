// What a search over schedules asks of its timer. Execution models differ too much for one timer: each body
// says at its head which model it times and why the general one (order_timer.h) does not do.
#pragma once

#include <concepts>

namespace heddle {

// Gives the end of a schedule that a search changes step by step. time() begins at the first changed place and
// gives up, with a value above every schedule's end, when the end surely lies above the limit. keep() makes the
// decisions timed last those that the next change is relative to; drop() returns to the ones kept before. Of
// the kept decisions a timer also knows the critical path, in the form that its search draws moves from.
// `Decisions`: what the search owns and the timer reads; nothing where the timer owns the decisions.
template <class T, class... Decisions>
concept Timer = requires(T timer, typename T::Time limit, const Decisions&... decisions) {
  { timer.time(decisions..., limit) } -> std::same_as<typename T::Time>;
  timer.keep();
  timer.drop();
};

}  // namespace heddle

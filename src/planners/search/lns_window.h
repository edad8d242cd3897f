// Pieces of a plan decided anew by CP-SAT while the rest stays: the step of large-neighbourhood search. P. Shaw,
// "Using constraint programming and local search methods to solve vehicle routing problems", CP 1998; for
// schedules E. Danna, L. Perron, "Structured vs. unstructured large neighborhood search", CP 2003.
#pragma once

#include <vector>

#include "core/flat_problem.h"
#include "heddle/solve/solution.h"
#include "load_model.h"

namespace heddle {

// What may change. The window is the places [first, last) of the plan's order; its ops end up in some order
// again, those before and after stay. `free` ops (all of the window) may go to any device of `devices`; the
// others of the window keep device and relative order. Free ops with one `unit` number share a device.
struct Neighbourhood {
  size_t first = 0, last = 0;
  std::vector<uint32_t> free;
  std::vector<uint32_t> devices;  // empty: all
  std::vector<uint32_t> unit;     // per free op; empty: each on its own
};

// The plan as it is: start and end of each op, which the evaluator's rules give.
struct TimedPlan {
  const FlatPlan* plan = nullptr;
  const std::vector<double>* start = nullptr;
  const std::vector<double>* finish = nullptr;
  double makespan_us = 0;
};

struct WindowAnswer {
  FlatPlan plan;  // the whole plan with the window decided anew
  bool changed = false;
  bool complete = false;  // nothing better is in the neighbourhood, as the model sees it
};

// Latencies: a window of one request's schedule. x(v, i): v runs on i; start S(v). Minimise the makespan M with,
// for ops of the window,
//   S(w) >= E(u) + way(i, j, b)                   where x(u, i), x(w, j), for tensors from u to w
//   S(w) >= end(u) + way(i, j, b)                 where x(w, j), for tensors from before, whose ends are known
//   M >= E(u) + way(i, j, b) + rest(w)            where x(u, i), for tensors to later ops w on j; `rest` is the
//                                                 longest chain from w in the fixed devices and orders
//   no overlap on devices (and on cores that devices share); each is free when the window begins, and
//   M >= the end of its last op there + the chain that follows on it
// With contention each tensor's transfer to each device is an interval on the engines, links and buses of its
// route; transfers outside of the window are not seen. Cold: loads of the window's parameters occupy their
// route likewise. Parameters respect the memories' limits; tensors' memory is not seen. Times are rounded to
// some ten-thousandths of the window: this is a heuristic whose plans the evaluator times, no bound comes of
// it. kUnsupported when CP-SAT cannot be loaded.
Result<WindowAnswer> solve_window(const FlatProblem& flat, const TimedPlan& timed, const Neighbourhood& area,
                                  const SolveOptions& options);

// Throughput: the devices of the free ops. x(v, i): free op v on device i, M: the largest load. Minimise M, and
// with small weight the sum of the loads, with for every device, group of cores and resource of transfers
//   M >= base + sum of us(v, i) x(v, i) + sum of the transfers' times z(t, i, j)
// where `base` is what the ops that stay do, and z(t, i, j) >= x(u, i) + x(w, j) - 1 for a tensor from u to
// w, which goes to each device once. Parameters respect the memories' limits. `loads` are those of the plan,
// before and after the call. kUnsupported when CP-SAT cannot be loaded.
Result<WindowAnswer> solve_loads(const FlatProblem& flat, LoadModel& loads, const FlatPlan& plan,
                                 const Neighbourhood& area, const SolveOptions& options);

}  // namespace heddle

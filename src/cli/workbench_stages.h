// Stages in a workbench's problem: how many segments a device may run at once, and what that takes.
#pragma once

#include <string>

#include "workbench.h"

namespace heddle::cli {

// Lets devices run up to --stages segments at once, by --stage-model: measured here and fitted, HIOS's
// simulation, or one after another.
Status allow_stages(Workbench& bench, const ProblemFlags& flags, const Invocation& invocation);

// HIOS's simulation on every usable device: t(S) with serial = overlap = 1/2, and the utilizations that the
// graph gives; where it gives none, the part of an op's time that is not the device's launch overhead.
void simulate_stages(Problem& problem, int width);

// The same stages on another cluster: devices of the same name keep their stage model and utilizations.
void keep_stages(const Problem& from, Problem& to);

// How many stages of two or more the plan has, and the fits, as lines for people (nothing where no stages are
// allowed) and for machines.
void print_stages(const Workbench& bench, const Plan& plan);
Json stages_json(const Workbench& bench, const Plan& plan);

}  // namespace heddle::cli

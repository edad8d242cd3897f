// A model's structure: sizes, FLOPs by the type of op, cut points.
#pragma once

#include <cstddef>
#include <string>

#include "heddle/report/shown.h"
#include "heddle/session/loaded_model.h"

namespace heddle {

// `rows`: of each table, at most.
std::string model_text(const LoadedModel& model, size_t rows);
Json model_json(const LoadedModel& model);

// The families of graphs that are generated, the zoo's models among them.
Shown families_shown();

}  // namespace heddle

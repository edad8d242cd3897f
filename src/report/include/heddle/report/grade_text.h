// A placement of another tool beside Heddle's plan.
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/session/grade.h"

namespace heddle {

std::string grade_text(const Grade& grade);
Json grade_json(const Grade& grade);

}  // namespace heddle

// The explanation's sections as HTML.
#pragma once

#include <optional>
#include <string>

#include "heddle/report/explain.h"
#include "heddle/runtime/precision_error.h"

namespace heddle {

// `error`: of a run of a plan in narrower types. The texts are escaped here.
std::string why_html(const Explanation& explanation, const std::optional<PrecisionError>& error);

}  // namespace heddle

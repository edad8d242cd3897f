// Text for SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

struct TimelineBar;

// Escapes & < > " ' and drops control characters, which XML forbids.
std::string escape_markup(std::string_view text);
// Lines of details about a bar, shown on hovering.
std::string hover_text(const TimelineBar& bar);

}  // namespace heddle

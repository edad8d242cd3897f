// The page at '/': what is served, live. One file without a build step; it asks GET v2/status every second.
#pragma once

#include <string_view>

namespace heddle {

std::string_view dashboard_page();

}  // namespace heddle

// The common parts of Heddle's pages: style, head and tiles. A page is one file that fetches nothing.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

// From the doctype to the opening of the body. `style` is CSS beside the common one.
std::string page_head(std::string_view title, std::string_view style);

// A figure that matters: what it is, its value, and a note below it. The texts are escaped here.
std::string page_tile(std::string_view label, std::string_view value, std::string_view note);

}  // namespace heddle

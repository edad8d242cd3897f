// The text of --help.
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}

namespace heddle {

// Two columns in at most 80 characters, one block for each group of flags. --help leaves out research flags and
// says how to see them; --help-all shows all.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace heddle

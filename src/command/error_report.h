// What a program of verbs says about errors.
#pragma once

#include "heddle/base/errors.h"

namespace heddle {

// Of several ranks only the first prints.
bool is_silent();

// Prints the error on stderr, for machines on stdout, too, unless this rank is silent. Returns the exit status.
int report_error(const Error& error, bool json);

}  // namespace heddle

// What cluster files call libtorch's accelerators: "cuda:0", or "cpu" for one that is made up on the host;
// with
// "/0-2/8" behind it eighths 0 and 1 of it.
#pragma once

#include <string>
#include <string_view>

#include "heddle/base/status.h"

namespace heddle {

struct AcceleratorName {
  bool cuda = false;
  int index = 0;                    // of cuda
  int first = 0, last = 0, of = 0;  // the parts from first up to last, not included, of `of`; of 0: all of it
};
// Fails (invalid input), saying what was expected, where it is no such name. "" is "cpu".
Result<AcceleratorName> parse_accelerator_name(std::string_view text);
std::string accelerator_name(const AcceleratorName& name);

// Into how many equal parts it can be divided, by name; at least 1.
int most_parts(const AcceleratorName& name);
// Part `index` of `of` equal parts, 0 <= index < of <= most_parts().
AcceleratorName part_of(const AcceleratorName& name, int index, int of);

}  // namespace heddle

// Names of libtorch's accelerators in cluster files: "cuda:0", or "cpu" for one emulated on the host. The
// suffix "/0-2/8" selects eighths 0 and 1 of the device.
#pragma once

#include <string>
#include <string_view>

#include "heddle/base/status.h"

namespace heddle {

struct AcceleratorName {
  bool cuda = false;
  int index = 0;                    // of cuda
  int first = 0, last = 0, of = 0;  // parts [first, last) of `of`; of = 0: the whole device
};
// Fails (invalid input) with the expected form if `text` is no such name. "" means "cpu".
Result<AcceleratorName> parse_accelerator_name(std::string_view text);
std::string accelerator_name(const AcceleratorName& name);

// The largest number of equal parts, judging by the name; at least 1.
int most_parts(const AcceleratorName& name);
// Part `index` of `of` equal parts; 0 <= index < of <= most_parts().
AcceleratorName part_of(const AcceleratorName& name, int index, int of);

}  // namespace heddle

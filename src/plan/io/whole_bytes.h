// Sizes of workloads, in any unit and with decimals, as whole bytes. Private to the readers of workloads.
#pragma once

#include <span>

#include "heddle/base/status.h"

namespace heddle {

class WholeBytes {
 public:
  // The sizes that ops take, and the limits of devices. Fails for more than nine decimals of a size, and for
  // a sum that no graph may have.
  static Result<WholeBytes> make(std::span<const double> sizes, std::span<const double> limits);

  int64_t size(double value) const;
  // At least 1, since a device with a limit of 0 has no limit: where a limit is 0, all other sizes are doubled.
  int64_t limit(double value) const;

 private:
  double scale_ = 1;
};

}  // namespace heddle

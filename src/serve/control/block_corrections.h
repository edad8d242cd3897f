// Corrections of a fleet's block times by measured times: a factor for each block of a model on a class and
// share, the same at all batch sizes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/fleet/fleet.h"

namespace heddle {

// The times that are corrected together.
struct TimesOf {
  std::string model, device_class;
  int share = 1;
  auto operator<=>(const TimesOf&) const = default;
};
std::string place_text(const TimesOf& times);  // "net on slow", "net on slow/2"

class BlockCorrections {
 public:
  // On top of what is corrected already. One factor for each block of the model; all are positive.
  void multiply(const TimesOf& times, const std::vector<double>& factors);
  // The fleet with its times corrected. Corrections of times that it does not have are skipped.
  Fleet applied(const Fleet& fleet) const;
  // Times that the new fleet changes or drops lose their correction.
  void forget_changed(const Fleet& before, const Fleet& after);
  bool empty() const { return factors_.empty(); }
  Json to_json() const;  // [{"model", "class", "share", "factors": [by block]}]
  // What to_json() gave, for a fleet. Errors name the member.
  static Result<BlockCorrections> from_json(const Json& json, const Fleet& fleet);

 private:
  std::map<TimesOf, std::vector<double>> factors_;
};

// `fleet` with the times that `times` has for the same names of models and classes. An error where a model
// has another number of blocks there.
Result<Fleet> with_times_of(const Fleet& fleet, const Fleet& times);

}  // namespace heddle

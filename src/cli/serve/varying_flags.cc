#include "varying_flags.h"

#include <cmath>

#include "heddle/base/numbers.h"
#include "heddle/fleet/size_buckets.h"

namespace heddle::cli {

void VaryingFlags::declare(Command& command) {
  command.list(
      "--buckets", buckets,
      "models: take inputs of any shape up to these: 'NAME=1,3,48,{160,320,640}', in quotes (repeatable)");
  command.option(
      "--shapes-from", shapes_from,
      "models: file with the shapes of a request a line: choose buckets for them, or weigh --buckets");
  command.option("--bucket-count", count, "models: most buckets that --shapes-from chooses (default 4)", 1,
                 kMostBuckets);
  command.list("--pad-value", pad_values,
               "models: value that an input is padded with: NAME=0 (repeatable; default 0)");
  command.option(
      "--padding", padding,
      "models: pad if no output then changes by more than this part of its largest value, else run each "
      "request at its own shape; or never (default .001)");
}

const char* VaryingFlags::first() const {
  return first_given({{"--buckets", !buckets.empty()},
                      {"--shapes-from", !shapes_from.empty()},
                      {"--bucket-count", count.has_value()},
                      {"--pad-value", !pad_values.empty()},
                      {"--padding", !padding.empty()}});
}

Result<VaryingSettings> VaryingFlags::settings() const {
  VaryingSettings out;
  const char* const given = first();
  if (given == nullptr) return out;
  if (buckets.empty() && shapes_from.empty())
    return invalid_input(std::string(given) +
                         " is for inputs of varying shape; add --buckets or --shapes-from");
  if (!buckets.empty()) {
    if (count)
      return invalid_input("--bucket-count is for buckets that --shapes-from chooses; --buckets names them");
    HEDDLE_ASSIGN_OR_RETURN(out.buckets, parse_buckets(buckets));
  }
  if (!shapes_from.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(out.requests, read_shape_trace(shapes_from));
  }
  out.most_buckets = static_cast<int>(count.value_or(out.most_buckets));
  for (const auto& text : pad_values) {
    const auto equals = text.rfind('=');
    const auto value = equals == std::string::npos
                           ? std::nullopt
                           : parse_number<double>(std::string_view(text).substr(equals + 1));
    if (equals == 0 || !value || !std::isfinite(*value))
      return invalid_input("--pad-value " + text + ": expected NAME=VALUE, such as x=0");
    out.pad[text.substr(0, equals)] = *value;
  }
  if (!padding.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(out.padding_limit, parse_padding(padding));
  }
  return out;
}

}  // namespace heddle::cli

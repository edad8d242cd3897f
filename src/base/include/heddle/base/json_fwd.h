// The names of heddle/base/json.h for headers that only pass them on: the JSON library takes longer to
// compile than most files that do not use it.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace heddle {

using Json = nlohmann::ordered_json;
class JsonCursor;

}  // namespace heddle

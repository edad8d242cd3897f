// Declares the names of heddle/base/json.h for headers that only pass them on, because the JSON library is
// slow to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace heddle {

using Json = nlohmann::ordered_json;
class JsonCursor;

}  // namespace heddle

// A succession over a store that is open already.
#pragma once

#include <memory>

#include "heddle/serve/succession.h"
#include "shared_store.h"

namespace heddle {

// Succession::open() without `where` and `bucket`, which stand for the store in messages.
std::unique_ptr<Succession> stored_succession(const std::shared_ptr<SharedStore>& store,
                                              const SuccessionOptions& options);

}  // namespace heddle

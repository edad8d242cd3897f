// Large parameters in pieces (ImportOptions::split_bytes).
#pragma once

#include <cstdint>

namespace ov {
class Model;
}

namespace heddle::internal {

// Every MatMul by a constant matrix of more than `bytes` becomes the fewest MatMuls by some of its columns,
// at most `bytes` each where 64 columns are not more than that, and a Concat. Stored matrices that are
// transposed are not copied. Shapes are known before and after.
void split_weights(ov::Model& model, int64_t bytes);

}  // namespace heddle::internal

// Splits large parameters into pieces (ImportOptions::split_bytes).
#pragma once

#include <cstdint>

namespace ov {
class Model;
}

namespace heddle::internal {

// Replaces every MatMul by a constant matrix of more than `bytes`: the fewest MatMuls by some of its columns,
// each of at most `bytes` (but at least 64 columns), and a Concat. Transposed constants are split without a
// copy. All shapes must be static, and stay so.
void split_weights(ov::Model& model, int64_t bytes);

}  // namespace heddle::internal

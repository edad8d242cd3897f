// Reads the models inside ops: branches and loop bodies.
#pragma once

#include <vector>

#include "op_node.h"

namespace ov {
class Model;
namespace op::util {
class MultiSubGraphOp;
}
}  // namespace ov

namespace heddle::torch_backend {

// The ops of a whole model. Its memory must outlive them.
Result<SegmentOps> read_model(const ov::Model& model);
// The two branches of an If (then, else), or a loop's body. Fails (unsupported) as read_segment() does.
Result<std::vector<OpBody>> read_bodies(const ov::op::util::MultiSubGraphOp& op);

}  // namespace heddle::torch_backend

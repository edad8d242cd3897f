// Ops that hold models of their own: branches and loops.
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

// The ops of a whole model, whose memory must outlive them.
Result<SegmentOps> read_model(const ov::Model& model);
// An If's two branches, then and else, or the one body of a loop. Fails (unsupported) as read_segment() does.
Result<std::vector<OpBody>> read_bodies(const ov::op::util::MultiSubGraphOp& op);

}  // namespace heddle::torch_backend

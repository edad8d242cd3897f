// The OpenVINO objects that a Model keeps, and the functions that build it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <openvino/core/model.hpp>
#include <openvino/core/node.hpp>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"
#include "heddle/graph/onnx_cut.h"
#include "onnx_file.h"

namespace heddle {

// The nodes behind the graph's ops and the outputs behind its tensors. Not modified after loading, except for
// what is read on demand.
struct Model::Impl {
  std::vector<std::shared_ptr<ov::Node>> nodes;  // by OpId; a region's last node
  // Ops that stand for several nodes, with those in topological order.
  std::unordered_map<OpId, std::vector<std::shared_ptr<ov::Node>>> regions;
  std::vector<ov::Output<ov::Node>> outputs;  // by TensorId
  std::unordered_map<const ov::Node*, OpId> ops;
  std::unordered_map<const ov::Node*, std::vector<TensorId>> tensors;  // by node and output index
  std::unordered_map<std::string, TensorId>
      onnx_names;  // every ONNX value name that leads to a tensor of the graph
  mutable std::once_flag read_parts;
  mutable std::optional<Result<OnnxParts>> parts;

  std::span<const std::shared_ptr<ov::Node>> nodes_of(OpId op) const {
    const auto region = regions.find(op);
    return region == regions.end() ? std::span(&nodes[op.index()], 1) : std::span(region->second);
  }
  // Invalid for constants and for values inside a region.
  TensorId tensor_of(const ov::Output<ov::Node>& output) const {
    const auto it = tensors.find(output.get_node());
    return it == tensors.end() ? TensorId() : it->second[output.get_index()];
  }
};

namespace internal {

// kUndefined if there is no equivalent.
DType dtype_of(const ov::element::Type& type);
// Static shapes only.
Shape shape_of(const ov::Output<ov::Node>& output);

// Makes names unique by a number: "x", "x#2", "x#3". The result depends only on the order of the calls.
class UniqueNames {
 public:
  std::string make(const std::string& wanted) {
    std::string name = wanted;
    // Numbering continues from the last one, so that many equal names do not cost quadratic time.
    while (!taken_.insert(name).second) name = wanted + "#" + std::to_string(++numbers_[wanted] + 1);
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> numbers_;
};

// Names of ops and tensors (model_names.cc).
struct ModelNames {
  std::unordered_map<const ov::Node*, std::string> ops;
  std::unordered_map<const ov::Node*, std::vector<std::string>> onnx_nodes;
  std::unordered_map<const ov::Node*, std::vector<std::string>> tensors;  // by output; empty: unnamed
  std::unordered_map<const ov::Node*, std::vector<std::vector<std::string>>>
      aliases;  // by output, all names of the file
};
// `ops`: the nodes that become ops, in topological order.
ModelNames name_model(const ov::Model& model, const std::vector<std::shared_ptr<ov::Node>>& ops,
                      const OnnxModel* onnx);

// Groups `ops` (in topological order) so that no group gives another one a value for which `inner` is true.
// The groups are as small as possible, convex, and in a topological order. O(V + E).
using NodeGroup = std::vector<std::shared_ptr<ov::Node>>;
std::vector<NodeGroup> group_nodes(const std::vector<std::shared_ptr<ov::Node>>& ops,
                                   const std::function<bool(const ov::Output<ov::Node>&)>& inner);

// One op per node that does work, one parameter per constant value that such a node reads. Nodes that exchange
// values of unknown shape or unsupported type become one op. The model's nodes are renamed to the ops' names.
// Fills `impl`.
Result<std::shared_ptr<const Graph>> make_graph(const std::shared_ptr<ov::Model>& model,
                                                const std::string& name, const OnnxModel* onnx,
                                                Model::Impl& impl);

// Floating-point operations of one execution (model_flops.cc); docs/import.md has the rules.
double node_flops(const ov::Node& node);

// Replaces every MatMul by a constant matrix of more than `bytes`: the fewest MatMuls by some of its columns,
// each of at most `bytes` (but at least 64 columns), and a Concat. Transposed constants are split without a
// copy. All shapes must be static, and stay so.
void split_weights(ov::Model& model, int64_t bytes);

struct ProbeLimits {
  double cpu_s = 60;                        // CPU time of the child
  int64_t memory_bytes = int64_t{4} << 30;  // anonymous memory added; not mapped files
  // A child that for less than a tenth of so long computed, or could have, waits for a lock that is never released.
  double stall_s = 10;
};
// What the caller does on a thread of its own while the child runs; each may be empty.
struct Meanwhile {
  std::function<void()> start;
  std::function<void()> join;  // the thread has ended on return
};
// The thread sanitizer does not survive a fork of a threaded process.
#if defined(HEDDLE_THREAD_SANITIZER)
inline constexpr bool kProbes = false;
#else
inline constexpr bool kProbes = true;
#endif
// Forks, runs `work` in the child with its output silenced, and waits. Succeeds if `work` returned, whatever
// its result; otherwise the error names the cause (signal, time, memory). The child has only the calling
// thread: `work` must not wait for other threads. If the child makes no progress, because another thread held
// a lock at the fork, the probe is repeated, and in the end kIo: what was not tried is not imported. Without kProbes
// every model passes. `meanwhile` starts once the first child runs and is joined before another one is forked, so
// its thread holds no lock at a fork. If starting it throws, the child is killed first.
Status probe(const std::function<void()>& work, const ProbeLimits& limits, const Meanwhile& meanwhile = {});

}  // namespace internal
}  // namespace heddle

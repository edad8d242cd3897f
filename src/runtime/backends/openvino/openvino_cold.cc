// Measures the cold start of a whole model with OpenVINO alone, for comparison.
#include <map>

#include "heddle/runtime/cold.h"
#include "openvino_session.h"
#include "threads/cpu_time.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

// Sets the plan's shapes; its graph's inputs have the model's order.
void set_shapes(ov::Model& model, const Graph& graph) {
  if (!model.is_dynamic()) return;
  std::map<ov::Output<ov::Node>, ov::PartialShape> shapes;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Shape& shape = graph.tensor(graph.inputs()[i]).shape;
    shapes[model.input(i)] = ov::PartialShape(std::vector<ov::Dimension>(shape.begin(), shape.end()));
  }
  model.reshape(shapes);
}

}  // namespace

Result<ColdWhole> openvino_cold_start(const Problem& problem, const InputOptions& inputs,
                                      const std::string& cache_folder, Engine engine) {
  if (!problem.model) return invalid_input("the plan's graph has no model behind it");
  if (!problem.model->values.empty())
    return unsupported(problem.model->path +
                       ": has inputs set by --value, which OpenVINO alone would not read");
  try {
    ColdWhole result;
    const double cpu = process_cpu_s();
    const int64_t begin = now_ns();
    const auto precision = engine == Engine::kOpenVinoF32 ? std::optional(Precision::kF32) : std::nullopt;
    auto config = openvino::whole_cpu_config(ov::hint::PerformanceMode::LATENCY, precision);
    if (!cache_folder.empty()) config.insert(ov::cache_dir(cache_folder));
    // OpenVINO does not read a cached model when given its path; but a model with shapes to set must be read.
    const bool by_path = !cache_folder.empty() && problem.model->shapes.empty() && !problem.model->batch;
    ov::CompiledModel compiled;
    if (by_path) {
      compiled = openvino::core().compile_model(problem.model->path, "CPU", config);
    } else {
      const auto model = openvino::core().read_model(problem.model->path);
      set_shapes(*model, *problem.graph);
      result.read_us = static_cast<double>(now_ns() - begin) / 1000;
      compiled = openvino::core().compile_model(model, "CPU", config);
    }
    const int64_t compiled_ns = now_ns();
    result.compile_us = static_cast<double>(compiled_ns - begin) / 1000 - result.read_us;
    ov::InferRequest request = compiled.create_infer_request();
    HEDDLE_ASSIGN_OR_RETURN(const auto values, make_inputs(*problem.graph, inputs));
    HEDDLE_RETURN_IF_ERROR(openvino::copy_inputs(request, values));
    HEDDLE_RETURN_IF_ERROR(openvino::infer(request));
    const int64_t end = now_ns();
    result.run_us = static_cast<double>(end - compiled_ns) / 1000;
    result.first_output_us = static_cast<double>(end - begin) / 1000;
    result.cpu_s = process_cpu_s() - cpu;
    return result;
  } catch (...) {
    return openvino::current_error("the cold start of the whole model");
  }
}

}  // namespace heddle

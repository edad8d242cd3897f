#include "torch/op_models.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <openvino/core/graph_util.hpp>

#include "corpus/corpus.h"
#include "heddle/runtime/blocking_device.h"
#include "torch/support.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

// Through a file, as models come.
std::shared_ptr<const Model> imported(const std::shared_ptr<ov::Model>& model) {
  std::string name = (fs::temp_directory_path() / "heddle-ops-XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  ov::save_model(model, folder / "model.xml", false);
  auto loaded = Model::load((folder / "model.xml").string());
  fs::remove_all(folder);
  EXPECT_TRUE(loaded.ok()) << loaded.error().to_string();
  return loaded.ok() ? *loaded : nullptr;
}

TensorValue value_of(const ov::Tensor& tensor) {
  const ov::Shape shape = tensor.get_shape();
  TensorValue value =
      make_tensor(*dtype_of(tensor.get_element_type()), Shape(shape.begin(), shape.end())).value();
  std::memcpy(value.data.get(), tensor.data(), tensor.get_byte_size());
  return value;
}

std::vector<ov::Tensor> outputs_of(const std::shared_ptr<const Model>& model,
                                   const std::vector<ov::Tensor>& inputs, const Device& on) {
  const auto device = open_device(on);
  EXPECT_TRUE(device.ok()) << device.error().to_string();
  if (!device.ok()) return {};
  auto segment = compile_whole(**device, model);
  if (segment.ok() && (*device)->stream_runtime() != nullptr) {
    auto blocking = BlockingSegment::make(**device, std::move(*segment), 1);
    segment = blocking.ok() ? Result<std::unique_ptr<CompiledSegment>>(std::move(*blocking))
                            : Result<std::unique_ptr<CompiledSegment>>(blocking.error());
  }
  EXPECT_TRUE(segment.ok()) << segment.error().to_string();
  if (!segment.ok()) return {};
  std::vector<TensorValue> values;
  for (const ov::Tensor& input : inputs) values.push_back(value_of(input));
  const auto made = run_whole(**segment, *model, values);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  if (!made.ok()) return {};
  std::vector<ov::Tensor> outputs;
  for (size_t i = 0; i < made->size(); ++i) {
    const auto view = as_openvino((*made)[i], model->whole()->output(i).get_element_type());
    ov::Tensor copy(view->get_element_type(), view->get_shape());
    view->copy_to(copy);
    outputs.push_back(copy);
  }
  return outputs;
}

}  // namespace

void expect_as_openvino(const std::shared_ptr<ov::Model>& model, const std::vector<ov::Tensor>& inputs,
                        double rtol, double atol) {
  const auto ours = imported(model);
  if (!ours) return;
  const auto made = outputs_of(ours, inputs, torch_cpu());
  std::map<TensorId, ov::Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[ours->graph()->inputs()[i]] = inputs[i];
  const auto expected = run_segment(whole_segment(*ours), values);
  ASSERT_EQ(made.size(), ours->graph()->outputs().size());
  for (size_t i = 0; i < made.size(); ++i)
    EXPECT_EQ(difference(made[i], expected.at(ours->graph()->outputs()[i]), rtol, atol), "")
        << "output " << i;
}

std::vector<ov::Tensor> run_on_torch(const std::shared_ptr<ov::Model>& model,
                                     const std::vector<ov::Tensor>& inputs, const Device& device) {
  const auto ours = imported(model);
  return ours ? outputs_of(ours, inputs, device) : std::vector<ov::Tensor>();
}

std::string refusal_of(const std::shared_ptr<ov::Model>& model) {
  const auto ours = imported(model);
  if (!ours) return "";
  const auto device = open_device(torch_cpu());
  const auto segment = compile_whole(**device, ours);
  return segment.ok() ? "" : segment.error().to_string();
}

}  // namespace heddle

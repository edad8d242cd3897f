// Small models made op by op, and what OpenVINO computes from them.
#pragma once

#include <openvino/core/model.hpp>
#include <vector>

#include "heddle/graph/model.h"
#include "torch/support.h"

namespace heddle {

// Runs the model on the backend torch and by OpenVINO, with the same inputs, in the model's order; expects
// equal outputs within the tolerance.
void expect_as_openvino(const std::shared_ptr<ov::Model>& model, const std::vector<ov::Tensor>& inputs,
                        double rtol = 1e-5, double atol = 1e-5);
// What the backend torch computes on the device; nothing, with a failed expectation, when it fails.
std::vector<ov::Tensor> run_on_torch(const std::shared_ptr<ov::Model>& model,
                                     const std::vector<ov::Tensor>& inputs,
                                     const Device& device = torch_cpu());
// Why the backend torch does not take it; empty when it does.
std::string refusal_of(const std::shared_ptr<ov::Model>& model);

}  // namespace heddle

// Parts that several networks share, built of the elementary nodes that framework exports contain.
#pragma once

#include <string>

#include "net.h"

namespace heddle::zoo {

// Convolution, batch normalization, ReLU.
Val conv_bn_relu(Net& net, const std::string& name, Val x, int64_t features, const Window& w, float epsilon);
// Over the last axis: (x - mean) / sqrt(variance + epsilon) * scale + shift. 9 nodes.
Val layer_norm(Net& net, const std::string& name, Val x, float epsilon = 1e-5F);
// Over the last axis: x / sqrt(mean of squares + epsilon) * scale. 6 nodes.
Val rms_norm(Net& net, const std::string& name, Val x, float epsilon);
// The exact GELU, by erf (5 nodes), and GPT-2's approximation by tanh (8 nodes).
Val gelu_erf(Net& net, const std::string& name, Val x);
Val gelu_tanh(Net& net, const std::string& name, Val x);
// x * sigmoid(x).
Val silu(Net& net, const std::string& name, Val x);

// [..., n, heads * d] to [..., heads, n, d] and back; x has rank 3.
Val split_heads(Net& net, const std::string& name, Val x, int64_t heads);
Val merge_heads(Net& net, const std::string& name, Val x);

// softmax(q k^T / sqrt(d) + addend...) v for [b, heads, n, d]; each addend broadcasts to [b, heads, n, n'].
Val attend(Net& net, const std::string& name, Val q, Val k, Val v, const std::vector<Val>& addends);

}  // namespace heddle::zoo

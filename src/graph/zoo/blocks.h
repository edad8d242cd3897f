// Parts that several networks share, built of the elementary nodes that framework exports contain.
#pragma once

#include <string>

#include "models.h"

namespace heddle::zoo {

// Convolution, batch normalization, ReLU.
Val conv_bn_relu(Net& net, const std::string& name, Val x, int64_t features, const KernelWindow& w,
                 float epsilon);
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

// q k^T / sqrt(d) for [b, heads, n, d].
Val attention_scores(Net& net, const std::string& name, Val q, Val k);
// softmax(q k^T / sqrt(d) + addend...) v for [b, heads, n, d]; each addend broadcasts to [b, heads, n, n'].
Val attend(Net& net, const std::string& name, Val q, Val k, Val v, const std::vector<Val>& addends);

// Inputs of a decoder with `past` tokens in its cache.
struct DecoderInputs {
  Val tokens, positions;
  Val mask;  // added to scores: 0 where visible, very negative elsewhere
};
DecoderInputs decoder_inputs(Net& net, const Values& p);
// Keys or values [b, heads, n, d] behind those of the `past` tokens before, which are a model input.
Val with_cache(Net& net, const std::string& layer, const std::string& part, Val x, int64_t past);

}  // namespace heddle::zoo

// The zoo's models: each has an entry for users and a function that describes the network.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heddle/graph/zoo.h"
#include "net.h"

namespace heddle::zoo {

// All parameters of a model, each within its range.
using Values = std::map<std::string, int64_t, std::less<>>;

struct Model {
  ZooEntry entry;
  std::function<void(Net&, const Values&)> describe;
};

std::vector<Model> resnet_models();
std::vector<Model> inception_models();
std::vector<Model> nasnet_models();
std::vector<Model> gpt_models();
std::vector<Model> llama_models();
std::vector<Model> bert_models();
std::vector<Model> swin_models();
std::vector<Model> evoformer_models();
std::vector<Model> gnmt_models();

// Parameters that several models have.
inline ZooParam batch_param() { return {"batch", "inputs at once", 1, 1, 65536}; }
inline ZooParam image_param(int64_t size, int64_t least) {
  return {"image", "height and width of the picture", size, least, 16384};
}
inline ZooParam layers_param(int64_t layers) { return {"layers", "blocks in a row", layers, 1, 1024}; }
inline std::vector<ZooParam> decoder_params(int64_t layers, int64_t seq, int64_t context) {
  return {batch_param(),
          {"seq", "tokens of each input", seq, 1, context},
          {"past", "tokens before them, in the key-value cache", 0, 0, 65536},
          layers_param(layers)};
}
inline ZooParam classes_param() { return {"classes", "classes to tell apart", 1000, 1, 1 << 20}; }

}  // namespace heddle::zoo

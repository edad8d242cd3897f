// The zoo's models: each has an entry for users and a function that describes the network.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/graph/zoo.h"
#include "net.h"

namespace heddle::zoo {

// All parameters of a model, each within its range.
class Values {
 public:
  explicit Values(std::map<std::string, int64_t, std::less<>> numbers) : numbers_(std::move(numbers)) {}
  // `name` must be one that the model's entry lists.
  int64_t operator[](std::string_view name) const { return numbers_.find(name)->second; }

 private:
  std::map<std::string, int64_t, std::less<>> numbers_;
};

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
inline ZooParam classes_param() { return {"classes", "classes to tell apart", 1000, 1, 1 << 20}; }

}  // namespace heddle::zoo

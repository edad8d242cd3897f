// ResNet (He et al., 2016), the variant with the stride in the 3x3 convolution ("v1.5").
#include "blocks.h"
#include "models.h"

namespace heddle::zoo {
namespace {

struct Depths {
  std::vector<int> blocks;  // in each of the four stages
  bool bottleneck;
};

Val conv_bn(Net& net, const std::string& name, Val x, int64_t features, const KernelWindow& w) {
  return net.batch_norm(name + ".bn", net.conv(name + ".conv", x, features, w));
}

Val block(Net& net, const std::string& name, Val x, int64_t width, int64_t stride, bool bottleneck) {
  const int64_t features = bottleneck ? 4 * width : width;
  Val y;
  if (bottleneck) {
    y = conv_bn_relu(net, name + ".1", x, width, window(1), 1e-5F);
    y = conv_bn_relu(net, name + ".2", y, width, window(3, stride, 1), 1e-5F);
    y = conv_bn(net, name + ".3", y, features, window(1));
  } else {
    y = conv_bn_relu(net, name + ".1", x, width, window(3, stride, 1), 1e-5F);
    y = conv_bn(net, name + ".2", y, features, window(3, 1, 1));
  }
  const bool same = stride == 1 && net.dim(x, 1) == features;
  const Val shortcut = same ? x : conv_bn(net, name + ".shortcut", x, features, window(1, stride));
  return net.relu(name + ".relu", net.add(name + ".sum", y, shortcut));
}

void describe(Net& net, const Values& p, const Depths& depths) {
  Val x = net.input("image", {p.at("batch"), 3, p.at("image"), p.at("image")});
  x = conv_bn_relu(net, "stem", x, 64, window(7, 2, 3), 1e-5F);
  x = net.max_pool("stem.pool", x, window(3, 2, 1));
  for (size_t stage = 0; stage < depths.blocks.size(); ++stage) {
    for (int b = 0; b < depths.blocks[stage]; ++b) {
      const std::string name = "stage" + std::to_string(stage + 1) + "." + std::to_string(b);
      x = block(net, name, x, int64_t{64} << stage, stage > 0 && b == 0 ? 2 : 1, depths.bottleneck);
    }
  }
  net.output(net.linear("classifier", net.reduce_mean("average", x, {2, 3}, false), p.at("classes")));
}

}  // namespace

std::vector<Model> resnet_models() {
  const std::vector<std::pair<int, Depths>> sizes = {{18, {{2, 2, 2, 2}, false}},
                                                     {34, {{3, 4, 6, 3}, false}},
                                                     {50, {{3, 4, 6, 3}, true}},
                                                     {101, {{3, 4, 23, 3}, true}},
                                                     {152, {{3, 8, 36, 3}, true}}};
  std::vector<Model> models;
  for (const auto& [depth, depths] : sizes) {
    const std::string n = std::to_string(depth);
    models.push_back({{"resnet-" + n,
                       "ResNet-" + n + ", image classification",
                       "He et al. 2016; DiviML, PPipe",
                       {batch_param(), image_param(224, 32), classes_param()}},
                      [depths = depths](Net& net, const Values& p) { describe(net, p, depths); }});
  }
  return models;
}

}  // namespace heddle::zoo

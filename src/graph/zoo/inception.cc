// Inception-v3 (Szegedy et al., 2016), torchvision's variant.
#include "blocks.h"
#include "models.h"

namespace heddle::zoo {
namespace {

KernelWindow flat(int64_t h, int64_t w) {
  return {.kernel_h = h,
          .kernel_w = w,
          .stride = 1,
          .top = h / 2,
          .left = w / 2,
          .bottom = h / 2,
          .right = w / 2};
}

class Inception {
 public:
  explicit Inception(Net& net) : net_(net) {}

  Val conv(const std::string& name, Val x, int64_t features, const KernelWindow& w) {
    return conv_bn_relu(net_, name, x, features, w, 1e-3F);
  }
  Val pooled(const std::string& name, Val x, int64_t features) {
    return conv(name + ".pool", net_.avg_pool(name + ".average", x, window(3, 1, 1)), features, window(1));
  }

  Val stem(Val x) {
    x = conv("stem.1a", x, 32, window(3, 2));
    x = conv("stem.2a", x, 32, window(3));
    x = conv("stem.2b", x, 64, window(3, 1, 1));
    x = net_.max_pool("stem.pool1", x, window(3, 2));
    x = conv("stem.3b", x, 80, window(1));
    x = conv("stem.4a", x, 192, window(3));
    return net_.max_pool("stem.pool2", x, window(3, 2));
  }

  Val module_a(const std::string& n, Val x, int64_t pool_features) {
    const Val one = conv(n + ".1x1", x, 64, window(1));
    const Val five = conv(n + ".5x5_2", conv(n + ".5x5_1", x, 48, window(1)), 64, window(5, 1, 2));
    Val twice = conv(n + ".3x3dbl_1", x, 64, window(1));
    twice = conv(n + ".3x3dbl_2", twice, 96, window(3, 1, 1));
    twice = conv(n + ".3x3dbl_3", twice, 96, window(3, 1, 1));
    return net_.concat(n + ".concat", {one, five, twice, pooled(n, x, pool_features)}, 1);
  }

  Val module_b(const std::string& n, Val x) {
    const Val three = conv(n + ".3x3", x, 384, window(3, 2));
    Val twice = conv(n + ".3x3dbl_1", x, 64, window(1));
    twice = conv(n + ".3x3dbl_2", twice, 96, window(3, 1, 1));
    twice = conv(n + ".3x3dbl_3", twice, 96, window(3, 2));
    return net_.concat(n + ".concat", {three, twice, net_.max_pool(n + ".pool", x, window(3, 2))}, 1);
  }

  Val module_c(const std::string& n, Val x, int64_t c) {
    const Val one = conv(n + ".1x1", x, 192, window(1));
    Val seven = conv(n + ".7x7_1", x, c, window(1));
    seven = conv(n + ".7x7_2", seven, c, flat(1, 7));
    seven = conv(n + ".7x7_3", seven, 192, flat(7, 1));
    Val twice = conv(n + ".7x7dbl_1", x, c, window(1));
    twice = conv(n + ".7x7dbl_2", twice, c, flat(7, 1));
    twice = conv(n + ".7x7dbl_3", twice, c, flat(1, 7));
    twice = conv(n + ".7x7dbl_4", twice, c, flat(7, 1));
    twice = conv(n + ".7x7dbl_5", twice, 192, flat(1, 7));
    return net_.concat(n + ".concat", {one, seven, twice, pooled(n, x, 192)}, 1);
  }

  Val module_d(const std::string& n, Val x) {
    const Val three = conv(n + ".3x3_2", conv(n + ".3x3_1", x, 192, window(1)), 320, window(3, 2));
    Val seven = conv(n + ".7x7x3_1", x, 192, window(1));
    seven = conv(n + ".7x7x3_2", seven, 192, flat(1, 7));
    seven = conv(n + ".7x7x3_3", seven, 192, flat(7, 1));
    seven = conv(n + ".7x7x3_4", seven, 192, window(3, 2));
    return net_.concat(n + ".concat", {three, seven, net_.max_pool(n + ".pool", x, window(3, 2))}, 1);
  }

  Val module_e(const std::string& n, Val x) {
    const Val one = conv(n + ".1x1", x, 320, window(1));
    const Val three = conv(n + ".3x3_1", x, 384, window(1));
    const Val threes = net_.concat(
        n + ".3x3",
        {conv(n + ".3x3_2a", three, 384, flat(1, 3)), conv(n + ".3x3_2b", three, 384, flat(3, 1))}, 1);
    const Val twice = conv(n + ".3x3dbl_2", conv(n + ".3x3dbl_1", x, 448, window(1)), 384, window(3, 1, 1));
    const Val twices = net_.concat(
        n + ".3x3dbl",
        {conv(n + ".3x3dbl_3a", twice, 384, flat(1, 3)), conv(n + ".3x3dbl_3b", twice, 384, flat(3, 1))}, 1);
    return net_.concat(n + ".concat", {one, threes, twices, pooled(n, x, 192)}, 1);
  }

  Val auxiliary(Val x, int64_t classes) {
    x = conv("aux.conv0", net_.avg_pool("aux.pool", x, window(5, 3)), 128, window(1));
    x = conv("aux.conv1", x, 768, window(5));
    return net_.linear("aux.classifier", net_.reduce_mean("aux.average", x, {2, 3}, false), classes);
  }

 private:
  Net& net_;
};

void describe(Net& net, const Values& p) {
  Inception make(net);
  Val x = make.stem(net.input("image", {p.at("batch"), 3, p.at("image"), p.at("image")}));
  x = make.module_a("5b", x, 32);
  x = make.module_a("5c", x, 64);
  x = make.module_a("5d", x, 64);
  x = make.module_b("6a", x);
  x = make.module_c("6b", x, 128);
  x = make.module_c("6c", x, 160);
  x = make.module_c("6d", x, 160);
  x = make.module_c("6e", x, 192);
  const Val middle = x;
  x = make.module_d("7a", x);
  x = make.module_e("7b", x);
  x = make.module_e("7c", x);
  net.output(net.linear("classifier", net.reduce_mean("average", x, {2, 3}, false), p.at("classes")));
  if (p.at("aux") != 0) net.output(make.auxiliary(middle, p.at("classes")));
}

}  // namespace

std::vector<Model> inception_models() {
  return {{{"inception-v3",
            "Inception-v3, image classification",
            "Szegedy et al. 2016; HIOS, DiviML",
            {batch_param(),
             image_param(299, 75),
             classes_param(),
             {"aux", "1: with the auxiliary classifier", 0, 0, 1}}},
           describe}};
}

}  // namespace heddle::zoo

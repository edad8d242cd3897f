// NASNet-A (Zoph et al., 2018): normal and reduction cells of separable convolutions; each reads the two
// before.
#include "models.h"

namespace heddle::zoo {
namespace {

constexpr float kNasnetEpsilon = 1e-3F;

// "Same" padding: no more than the kernel needs, with the odd pixel at the end.
KernelWindow same(int64_t size, int64_t kernel, int64_t stride, int64_t groups = 1) {
  KernelWindow w = window(kernel, stride, kernel / 2, groups);
  if (stride == 2 && size % 2 == 0) w.top = w.left = kernel / 2 - 1;
  return w;
}

class NasNet {
 public:
  NasNet(Net& net, bool skip_reduction) : net_(net), skip_reduction_(skip_reduction) {}

  Val run(Val image, int64_t stem, int64_t filters, int64_t blocks, int64_t classes) {
    x_ = net_.batch_norm("stem.bn", net_.conv("stem.conv", image, stem, window(3, 2)), kNasnetEpsilon);
    reduction_cell("stem1", filters / 4);
    reduction_cell("stem2", filters / 2);
    for (int64_t stage = 0; stage < 3; ++stage) {
      if (stage > 0) {
        const Val before = previous_;
        reduction_cell("reduce" + std::to_string(stage), filters << stage);
        // In the large net, the cell after a reduction reads the cell before the reduction's input.
        if (skip_reduction_) previous_ = before;
      }
      for (int64_t b = 0; b < blocks; ++b)
        normal_cell("cell" + std::to_string(stage * blocks + b), filters << stage);
    }
    x_ = net_.relu("final.relu", x_);
    return net_.linear("classifier", net_.reduce_mean("average", x_, {2, 3}, false), classes);
  }

 private:
  int64_t side(Val v) const { return net_.dim(v, 2); }

  Val separable(const std::string& n, Val x, int64_t filters, int64_t kernel, int64_t stride = 1) {
    x = net_.relu(n + ".relu1", x);
    x = net_.conv(n + ".depthwise1", x, net_.dim(x, 1), same(side(x), kernel, stride, net_.dim(x, 1)));
    x = net_.batch_norm(n + ".bn1", net_.conv(n + ".pointwise1", x, filters, window(1)), kNasnetEpsilon);
    x = net_.relu(n + ".relu2", x);
    x = net_.conv(n + ".depthwise2", x, filters, same(side(x), kernel, 1, filters));
    return net_.batch_norm(n + ".bn2", net_.conv(n + ".pointwise2", x, filters, window(1)), kNasnetEpsilon);
  }

  Val squeeze(const std::string& n, Val x, int64_t filters) {
    return net_.batch_norm(n + ".bn", net_.conv(n + ".conv", net_.relu(n + ".relu", x), filters, window(1)),
                           kNasnetEpsilon);
  }

  // Resizes the older cell's output to the current size. Half of the features come from even pixels, half
  // from odd ones.
  Val adjust(const std::string& n, Val p, Val x, int64_t filters) {
    if (p < 0) return x;
    if (side(p) == side(x)) return net_.dim(p, 1) == filters ? p : squeeze(n, p, filters);
    p = net_.relu(n + ".relu", p);
    const Val even =
        net_.conv(n + ".even.conv", net_.avg_pool(n + ".even", p, window(1, 2)), filters / 2, window(1));
    Val odd = net_.pad(n + ".odd.pad", p, {0, 0, 0, 0}, {0, 0, 1, 1});
    odd = net_.slice(n + ".odd.rows", odd, 2, 1, side(p) + 1);
    odd = net_.slice(n + ".odd.columns", odd, 3, 1, net_.dim(p, 3) + 1);
    odd = net_.conv(n + ".odd.conv", net_.avg_pool(n + ".odd", odd, window(1, 2)), filters / 2, window(1));
    return net_.batch_norm(n + ".bn", net_.concat(n + ".both", {even, odd}, 1), kNasnetEpsilon);
  }

  void normal_cell(const std::string& n, int64_t f) {
    const Val p = adjust(n + ".adjust", previous_, x_, f), h = squeeze(n + ".squeeze", x_, f);
    const KernelWindow three = window(3, 1, 1);
    const Val a = net_.add(n + ".1", separable(n + ".1l", h, f, 5), separable(n + ".1r", p, f, 3));
    const Val b = net_.add(n + ".2", separable(n + ".2l", p, f, 5), separable(n + ".2r", p, f, 3));
    const Val c = net_.add(n + ".3", net_.avg_pool(n + ".3l", h, three), p);
    const Val d = net_.add(n + ".4", net_.avg_pool(n + ".4l", p, three), net_.avg_pool(n + ".4r", p, three));
    const Val e = net_.add(n + ".5", separable(n + ".5l", h, f, 3), h);
    previous_ = x_;
    x_ = net_.concat(n + ".concat", {p, a, b, c, d, e}, 1);
  }

  void reduction_cell(const std::string& n, int64_t f) {
    const Val p = adjust(n + ".adjust", previous_, x_, f), h = squeeze(n + ".squeeze", x_, f);
    const KernelWindow three = same(side(h), 3, 2);
    const Val a = net_.add(n + ".1", separable(n + ".1l", h, f, 5, 2), separable(n + ".1r", p, f, 7, 2));
    const Val b = net_.add(n + ".2", net_.max_pool(n + ".2l", h, three), separable(n + ".2r", p, f, 7, 2));
    const Val c = net_.add(n + ".3", net_.avg_pool(n + ".3l", h, three), separable(n + ".3r", p, f, 5, 2));
    const Val d = net_.add(n + ".4", b, net_.avg_pool(n + ".4l", a, window(3, 1, 1)));
    const Val e = net_.add(n + ".5", separable(n + ".5l", a, f, 3), net_.max_pool(n + ".5r", h, three));
    previous_ = x_;
    x_ = net_.concat(n + ".concat", {b, c, d, e}, 1);
  }

  Net& net_;
  bool skip_reduction_;
  Val x_ = -1, previous_ = -1;
};

Model nasnet_model(const std::string& name, const std::string& text, int64_t image, int64_t stem,
                   int64_t filters, int64_t blocks, bool skip) {
  return {{name,
           text,
           "Zoph et al. 2018; HIOS",
           {batch_param(),
            image_param(image, 32),
            classes_param(),
            {"blocks", "normal cells in each of the three stages", blocks, 1, 100}}},
          [=](Net& net, const Values& p) {
            const Val x = net.input("image", {p.at("batch"), 3, p.at("image"), p.at("image")});
            net.output(NasNet(net, skip).run(x, stem, filters, p.at("blocks"), p.at("classes")));
          }};
}

}  // namespace

std::vector<Model> nasnet_models() {
  return {nasnet_model("nasnet-a-mobile", "NASNet-A (4 @ 1056), image classification", 224, 32, 44, 4, false),
          nasnet_model("nasnet-a-large", "NASNet-A (6 @ 4032), image classification", 331, 96, 168, 6, true)};
}

}  // namespace heddle::zoo

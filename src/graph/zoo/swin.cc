// Swin Transformer (Liu et al., 2021): attention within windows; every other block shifts them by half.
#include <algorithm>

#include "blocks.h"
#include "models.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kPatch = 4, kHeadSize = 32;
constexpr float kHidden = -100;  // added to the scores of tokens that a shift made neighbours

struct SwinSize {
  std::vector<int64_t> depths;  // blocks of the stages
  int64_t hidden;               // features of the first stage; each further stage doubles them
};

// The values of a stage have shape [batch, height, width, features].
class Swin {
 public:
  Swin(Net& net, int64_t window) : net_(net), w_(window) {}

  Val run(Val image, const SwinSize& size, int64_t classes) {
    const int64_t c = size.hidden;
    Val x = net_.bias("patches.conv", net_.conv("patches", image, c, window(kPatch, kPatch)), 1);
    x = layer_norm(net_, "patches.norm", net_.transpose("patches.last", x, {0, 2, 3, 1}));
    for (size_t stage = 0; stage < size.depths.size(); ++stage) {
      const std::string n = "stage" + std::to_string(stage);
      if (stage > 0) x = merge(n + ".merge", x);
      for (int64_t b = 0; b < size.depths[stage]; ++b) x = block(n + "." + std::to_string(b), x, b % 2 == 1);
    }
    return net_.linear("classifier", net_.reduce_mean("average", layer_norm(net_, "norm", x), {1, 2}, false),
                       classes);
  }

 private:
  // Pads both sides at their ends to a multiple.
  Val pad_to(const std::string& n, Val x, int64_t multiple) {
    const Shape s = net_.shape(x);
    const int64_t h = (multiple - s[1] % multiple) % multiple, w = (multiple - s[2] % multiple) % multiple;
    return h + w == 0 ? x : net_.pad(n, x, {0, 0, 0, 0}, {0, h, w, 0});
  }
  Val crop_to(const std::string& n, Val x, const Shape& s) {
    if (net_.dim(x, 1) != s[1]) x = net_.slice(n + ".rows", x, 1, 0, s[1]);
    return net_.dim(x, 2) == s[2] ? x : net_.slice(n + ".columns", x, 2, 0, s[2]);
  }
  // Rotates both sides by `by` places towards the start.
  Val roll(const std::string& n, Val x, int64_t by) {
    for (size_t axis = 1; axis <= 2; ++axis) {
      const std::string a = n + std::to_string(axis);
      const int64_t size = net_.dim(x, axis), at = (by + size) % size;
      x = net_.concat(
          a, {net_.slice(a + ".end", x, axis, at, size), net_.slice(a + ".start", x, axis, 0, at)}, axis);
    }
    return x;
  }

  // Merges 2x2 tokens into one with twice the features.
  Val merge(const std::string& n, Val x) {
    x = pad_to(n + ".pad", x, 2);
    const Shape s = net_.shape(x);
    x = net_.transpose(n + ".gathered", net_.reshape(n + ".parts", x, {s[0], s[1] / 2, 2, s[2] / 2, 2, s[3]}),
                       {0, 1, 3, 4, 2, 5});
    x = net_.reshape(n + ".joined", x, {s[0], s[1] / 2, s[2] / 2, 4 * s[3]});
    return net_.linear(n + ".reduce", layer_norm(net_, n + ".norm", x), 2 * s[3], false);
  }

  Val block(const std::string& n, Val x, bool shifted) {
    const Shape s = net_.shape(x);
    // A picture of one window has nothing to shift.
    const int64_t shift = shifted && std::min(s[1], s[2]) > w_ ? w_ / 2 : 0;
    Val y = pad_to(n + ".pad", layer_norm(net_, n + ".norm1", x), w_);
    const Shape padded = net_.shape(y);
    const int64_t rows = padded[1] / w_, columns = padded[2] / w_;
    if (shift > 0) y = roll(n + ".roll", y, shift);
    y = net_.transpose(n + ".tiles", net_.reshape(n + ".cut", y, {s[0], rows, w_, columns, w_, s[3]}),
                       {0, 1, 3, 2, 4, 5});
    y = attention(n, net_.reshape(n + ".windows", y, {s[0] * rows * columns, w_ * w_, s[3]}), s[0], rows,
                  columns, shift);
    y = net_.transpose(n + ".untile", net_.reshape(n + ".tiled", y, {s[0], rows, columns, w_, w_, s[3]}),
                       {0, 1, 3, 2, 4, 5});
    y = net_.reshape(n + ".picture", y, padded);
    if (shift > 0) y = roll(n + ".unroll", y, -shift);
    x = net_.add(n + ".sum1", x, crop_to(n + ".crop", y, s));
    const Val wide =
        gelu_erf(net_, n + ".gelu", net_.linear(n + ".widen", layer_norm(net_, n + ".norm2", x), 4 * s[3]));
    return net_.add(n + ".sum2", x, net_.linear(n + ".narrow", wide, s[3]));
  }

  Val attention(const std::string& n, Val x, int64_t batch, int64_t rows, int64_t columns, int64_t shift) {
    const int64_t c = net_.dim(x, 2), heads = c / kHeadSize, tokens = w_ * w_, tiles = rows * columns;
    const auto qkv = net_.split(n + ".qkv", net_.linear(n + ".attention", x, 3 * c), 3, 2);
    Val q = split_heads(net_, n + ".q", qkv[0], heads), k = split_heads(net_, n + ".k", qkv[1], heads);
    Val v = split_heads(net_, n + ".v", qkv[2], heads);
    // Expanded per pair of tokens, as inference engines store it; trained is one number per offset.
    const Val bias = net_.weight(n + ".position_bias", {.shape = {1, heads, tokens, tokens},
                                                        .fill = Fill::kAroundZero,
                                                        .trained = heads * (2 * w_ - 1) * (2 * w_ - 1)});
    if (shift == 0) {
      return net_.linear(n + ".project",
                         merge_heads(net_, n + ".mixed", attend(net_, n + ".attend", q, k, v, {bias})), c);
    }
    Val scores = net_.add(n + ".attend.biased", attention_scores(net_, n + ".attend", q, k), bias);
    scores = net_.reshape(n + ".attend.tiles", scores, {batch, tiles, heads, tokens, tokens});
    scores = net_.add(n + ".attend.masked", scores, mask(rows, columns, shift));
    scores = net_.reshape(n + ".attend.rows", scores, {batch * tiles, heads, tokens, tokens});
    const Val mixed = net_.matmul(n + ".attend.mixed", net_.softmax(n + ".attend.shares", scores), v);
    return net_.linear(n + ".project", merge_heads(net_, n + ".mixed", mixed), c);
  }

  // Masks, within a window, tokens that come from different ends of the picture; one mask per resolution.
  Val mask(int64_t rows, int64_t columns, int64_t shift) {
    const auto known = masks_.find({rows, columns});
    if (known != masks_.end()) return known->second;
    const int64_t w = w_, tokens = w * w;
    const auto region = [=](int64_t at, int64_t size) {
      return at < size - w ? 0 : at < size - shift ? 1 : 2;
    };
    const auto value = [=](int64_t i) {
      const int64_t b = i % tokens, a = i / tokens % tokens, tile = i / (tokens * tokens),
                    row = tile / columns * w, column = tile % columns * w;
      const auto place = [&](int64_t t) {
        return 3 * region(row + t / w, rows * w) + region(column + t % w, columns * w);
      };
      return place(a) == place(b) ? 0.0F : kHidden;
    };
    const Val made =
        net_.weight("mask_" + std::to_string(rows) + "x" + std::to_string(columns),
                    {.shape = {1, rows * columns, 1, tokens, tokens}, .trained = 0, .exact = value});
    return masks_[{rows, columns}] = made;
  }

  Net& net_;
  int64_t w_;
  std::map<std::pair<int64_t, int64_t>, Val> masks_;
};

Model swin_model(const std::string& name, const std::string& text, const std::string& source,
                 const SwinSize& size, int64_t image) {
  return {{name,
           text,
           source,
           {batch_param(),
            image_param(image, 32),
            classes_param(),
            {"window", "side of a window, in patches", 7, 2, 64},
            {"middle", "blocks of the third stage", size.depths[2], 1, 1000}}},
          [size](Net& net, const Values& p) {
            SwinSize s = size;
            s.depths[2] = p.at("middle");
            const Val x = net.input("image", {p.at("batch"), 3, p.at("image"), p.at("image")});
            net.output(Swin(net, p.at("window")).run(x, s, p.at("classes")));
          }};
}

}  // namespace

std::vector<Model> swin_models() {
  const std::string paper = "Liu et al. 2021", moirai = paper + "; Moirai, Table IV (1100 x 1100 pixels)";
  return {swin_model("swin-t", "Swin-T, 28M", paper, {{2, 2, 6, 2}, 96}, 224),
          swin_model("swin-s", "Swin-S, 50M", paper, {{2, 2, 18, 2}, 96}, 224),
          swin_model("swin-b", "Swin-B, 88M", paper, {{2, 2, 18, 2}, 128}, 224),
          swin_model("swin-l", "Swin-L, 197M", paper, {{2, 2, 18, 2}, 192}, 224),
          swin_model("swin-1.8b", "Swin of 32 blocks and 512 features", moirai, {{2, 2, 26, 2}, 512}, 1100),
          swin_model("swin-6.6b", "Swin of 48 blocks and 768 features", moirai, {{2, 2, 40, 4}, 768}, 1100),
          swin_model("swin-13b", "Swin of 56 blocks and 1024 features", moirai, {{2, 2, 48, 4}, 1024}, 1100)};
}

}  // namespace heddle::zoo

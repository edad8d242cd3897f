// AlphaFold 2's Evoformer stack (Jumper et al., 2021, supplement algorithms 6 to 15): the alignment's rows
// (sequences x residues x features) and the pairs of residues inform each other.
#include "blocks.h"
#include "models.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kOuter = 32;  // features of the outer product mean

struct EvoformerSize {
  int64_t layers, rows, pairs, row_heads, pair_heads;  // rows and pairs: features
};

class Evoformer {
 public:
  Evoformer(Net& net, const EvoformerSize& size) : net_(net), size_(size) {}

  void block(const std::string& n, Val& m, Val& z) {
    const Val by_row = row_attention(n + ".row", m, z);
    m = net_.add(n + ".row.sum", m, by_row);
    const Val turned = net_.transpose(n + ".column.in", m, {1, 0, 2});
    const Val by_column =
        gated_attention(n + ".column", layer_norm(net_, n + ".column.norm", turned), size_.row_heads, {});
    m = net_.add(n + ".column.sum", m, net_.transpose(n + ".column.out", by_column, {1, 0, 2}));
    m = transition(n + ".rows", m);
    z = net_.add(n + ".outer.sum", z, outer_product(n + ".outer", m));
    z = net_.add(n + ".out.sum", z, triangle_product(n + ".out", z, true));
    z = net_.add(n + ".in.sum", z, triangle_product(n + ".in", z, false));
    z = net_.add(n + ".start.sum", z, triangle_attention(n + ".start", z));
    const Val across = triangle_attention(n + ".end", net_.transpose(n + ".end.in", z, {1, 0, 2}));
    z = net_.add(n + ".end.sum", z, net_.transpose(n + ".end.out", across, {1, 0, 2}));
    z = transition(n + ".pairs", z);
  }

 private:
  // Attention along the second axis of [a, b, c]; `bias` is [1, heads, b, b].
  Val gated_attention(const std::string& n, Val x, int64_t heads, const std::vector<Val>& bias) {
    const int64_t c = net_.dim(x, 2);
    const auto part = [&](const char* name) {
      return split_heads(net_, n + name, net_.linear(n + name, x, c, false), heads);
    };
    const Val q = part(".q"), k = part(".k"), v = part(".v");
    const Val gate = net_.unary("Sigmoid", n + ".open", net_.linear(n + ".gate", x, c));
    const Val mixed = merge_heads(net_, n + ".mixed", attend(net_, n + ".attend", q, k, v, bias));
    return net_.linear(n + ".project", net_.mul(n + ".gated", mixed, gate), c);
  }

  // Per head, one number from each pair, added to the scores.
  Val pair_bias(const std::string& n, Val z, int64_t heads) {
    const Val numbers =
        net_.transpose(n + ".bias.heads", net_.linear(n + ".bias", z, heads, false), {2, 0, 1});
    return net_.reshape(n + ".bias.rows", numbers, {1, heads, net_.dim(z, 0), net_.dim(z, 1)});
  }

  Val row_attention(const std::string& n, Val m, Val z) {
    const Val bias = pair_bias(n, layer_norm(net_, n + ".pair_norm", z), size_.row_heads);
    return gated_attention(n, layer_norm(net_, n + ".norm", m), size_.row_heads, {bias});
  }

  Val triangle_attention(const std::string& n, Val z) {
    const Val x = layer_norm(net_, n + ".norm", z);
    return gated_attention(n, x, size_.pair_heads, {pair_bias(n, x, size_.pair_heads)});
  }

  Val transition(const std::string& n, Val x) {
    const int64_t c = net_.dim(x, 2);
    const Val wide =
        net_.relu(n + ".relu", net_.linear(n + ".widen", layer_norm(net_, n + ".norm", x), 4 * c));
    return net_.add(n + ".sum", x, net_.linear(n + ".narrow", wide, c));
  }

  // Mean over the sequences of the outer products of two residues' features.
  Val outer_product(const std::string& n, Val m) {
    const int64_t s = net_.dim(m, 0), r = net_.dim(m, 1);
    const Val x = layer_norm(net_, n + ".norm", m);
    const Val left = net_.reshape(n + ".left.rows", net_.linear(n + ".left", x, kOuter), {s, r * kOuter});
    const Val right = net_.reshape(n + ".right.rows", net_.linear(n + ".right", x, kOuter), {s, r * kOuter});
    Val sums = net_.matmul(n + ".products", net_.transpose(n + ".left.columns", left, {1, 0}), right);
    sums =
        net_.transpose(n + ".pairs", net_.reshape(n + ".parts", sums, {r, kOuter, r, kOuter}), {0, 2, 1, 3});
    sums = net_.reshape(n + ".features", sums, {r, r, kOuter * kOuter});
    return net_.linear(n + ".project", net_.mul(n + ".mean", sums, net_.scalar(1 / static_cast<float>(s))),
                       size_.pairs);
  }

  // z[i][j] from the sum over k of a[i][k] b[j][k] (outgoing edges), or of a[k][i] b[k][j] (incoming).
  Val triangle_product(const std::string& n, Val z, bool outgoing) {
    const int64_t c = size_.pairs;
    const Val x = layer_norm(net_, n + ".norm", z);
    const auto gated = [&](const std::string& name) {
      const Val gate = net_.unary("Sigmoid", n + name + ".open", net_.linear(n + name + ".gate", x, c));
      return net_.mul(n + name + ".gated", gate, net_.linear(n + name, x, c));
    };
    using Axes = std::vector<int64_t>;
    const Val a = net_.transpose(n + ".a.planes", gated(".a"), outgoing ? Axes{2, 0, 1} : Axes{2, 1, 0});
    const Val b = net_.transpose(n + ".b.planes", gated(".b"), outgoing ? Axes{2, 1, 0} : Axes{2, 0, 1});
    const Val sums = net_.transpose(n + ".pairs", net_.matmul(n + ".products", a, b), {1, 2, 0});
    const Val y = net_.linear(n + ".project", layer_norm(net_, n + ".out_norm", sums), c);
    return net_.mul(n + ".gated", net_.unary("Sigmoid", n + ".open", net_.linear(n + ".gate", x, c)), y);
  }

  Net& net_;
  EvoformerSize size_;
};

Model evoformer_model(const std::string& name, const std::string& text, const EvoformerSize& size) {
  return {{name,
           text,
           "Jumper et al. 2021; Moirai, Table IV",
           {{"sequences", "rows of the alignment", 128, 1, 65536},
            {"residues", "length of the protein", 256, 1, 16384},
            layers_param(size.layers)}},
          [size](Net& net, const Values& p) {
            Val m = net.input("rows", {p.at("sequences"), p.at("residues"), size.rows});
            Val z = net.input("pairs", {p.at("residues"), p.at("residues"), size.pairs});
            for (int64_t i = 0; i < p.at("layers"); ++i)
              Evoformer(net, size).block("block" + std::to_string(i), m, z);
            net.output(m);
            net.output(z);
          }};
}

}  // namespace

std::vector<Model> evoformer_models() {
  return {
      evoformer_model("evoformer", "AlphaFold 2's Evoformer, 48 blocks, 256 features (Moirai's 87M)",
                      {48, 256, 128, 8, 4}),
      evoformer_model("evoformer-64", "Evoformer of 64 blocks and 512 features", {64, 512, 256, 16, 8}),
      evoformer_model("evoformer-96", "Evoformer of 96 blocks and 1024 features", {96, 1024, 512, 32, 16}),
      evoformer_model("evoformer-128", "Evoformer of 128 blocks and 1024 features",
                      {128, 1024, 512, 32, 16})};
}

}  // namespace heddle::zoo

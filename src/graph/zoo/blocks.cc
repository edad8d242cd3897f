#include "blocks.h"

#include <cmath>

namespace heddle::zoo {

Val conv_bn_relu(Net& net, const std::string& name, Val x, int64_t features, const KernelWindow& w,
                 float epsilon) {
  const Val conv = net.conv(name + ".conv", x, features, w);
  return net.relu(name + ".relu", net.batch_norm(name + ".bn", conv, epsilon));
}

Val layer_norm(Net& net, const std::string& name, Val x, float epsilon) {
  const int64_t c = net.shape(x).back(), last = static_cast<int64_t>(net.shape(x).size()) - 1;
  const Val centred =
      net.binary("Sub", name + ".centred", x, net.reduce_mean(name + ".mean", x, {last}, true));
  const Val squares = net.binary("Pow", name + ".squares", centred, net.scalar(2));
  const Val variance = net.reduce_mean(name + ".variance", squares, {last}, true);
  const Val deviation =
      net.unary("Sqrt", name + ".deviation", net.add(name + ".stable", variance, net.scalar(epsilon)));
  const Val normal = net.binary("Div", name + ".normal", centred, deviation);
  const Val scaled = net.mul(name + ".scaled", normal,
                             net.weight(name + ".weight", {.shape = {c}, .fill = Fill::kAroundOne}));
  return net.add(name + ".shifted", scaled,
                 net.weight(name + ".bias", {.shape = {c}, .fill = Fill::kAroundZero}));
}

Val rms_norm(Net& net, const std::string& name, Val x, float epsilon) {
  const int64_t c = net.shape(x).back(), last = static_cast<int64_t>(net.shape(x).size()) - 1;
  const Val squares = net.binary("Pow", name + ".squares", x, net.scalar(2));
  const Val mean = net.reduce_mean(name + ".mean", squares, {last}, true);
  const Val size = net.unary("Sqrt", name + ".size", net.add(name + ".stable", mean, net.scalar(epsilon)));
  const Val normal = net.binary("Div", name + ".normal", x, size);
  return net.mul(name + ".scaled", normal,
                 net.weight(name + ".weight", {.shape = {c}, .fill = Fill::kAroundOne}));
}

Val gelu_erf(Net& net, const std::string& name, Val x) {
  const Val inner =
      net.unary("Erf", name + ".erf", net.binary("Div", name + ".inner", x, net.scalar(std::sqrt(2.0F))));
  const Val shifted = net.add(name + ".shifted", inner, net.scalar(1));
  return net.mul(name + ".half", net.mul(name + ".product", x, shifted), net.scalar(0.5F));
}

Val gelu_tanh(Net& net, const std::string& name, Val x) {
  const Val cube = net.binary("Pow", name + ".cube", x, net.scalar(3));
  const Val sum = net.add(name + ".sum", x, net.mul(name + ".small", cube, net.scalar(0.044715F)));
  const Val inner = net.mul(name + ".inner", sum, net.scalar(0.7978845608F));  // sqrt(2 / pi)
  const Val shifted = net.add(name + ".shifted", net.unary("Tanh", name + ".tanh", inner), net.scalar(1));
  return net.mul(name + ".product", net.mul(name + ".half", x, net.scalar(0.5F)), shifted);
}

Val silu(Net& net, const std::string& name, Val x) {
  return net.mul(name + ".product", x, net.unary("Sigmoid", name + ".sigmoid", x));
}

Val split_heads(Net& net, const std::string& name, Val x, int64_t heads) {
  const Shape s = net.shape(x);
  return net.transpose(name + ".heads", net.reshape(name + ".parts", x, {s[0], s[1], heads, s[2] / heads}),
                       {0, 2, 1, 3});
}

Val merge_heads(Net& net, const std::string& name, Val x) {
  const Shape s = net.shape(x);
  return net.reshape(name + ".merged", net.transpose(name + ".rows", x, {0, 2, 1, 3}),
                     {s[0], s[2], s[1] * s[3]});
}

Val attention_scores(Net& net, const std::string& name, Val q, Val k) {
  const auto d = static_cast<float>(net.shape(q).back());
  const Val products = net.matmul(name + ".products", q, net.transpose(name + ".keys", k, {0, 1, 3, 2}));
  return net.mul(name + ".scores", products, net.scalar(1 / std::sqrt(d)));
}

Val attend(Net& net, const std::string& name, Val q, Val k, Val v, const std::vector<Val>& addends) {
  Val scores = attention_scores(net, name, q, k);
  for (size_t i = 0; i < addends.size(); ++i)
    scores = net.add(name + ".added" + std::to_string(i), scores, addends[i]);
  return net.matmul(name + ".mixed", net.softmax(name + ".shares", scores), v);
}

DecoderInputs decoder_inputs(Net& net, const Values& p) {
  const int64_t batch = p.at("batch"), seq = p.at("seq");
  return {net.input("input_ids", DType::kI64, {batch, seq}),
          net.input("position_ids", DType::kI64, {batch, seq}),
          net.input("attention_mask", {batch, 1, seq, p.at("past") + seq})};
}

Val with_cache(Net& net, const std::string& layer, const std::string& part, Val x, int64_t past) {
  if (past == 0) return x;
  const Shape s = net.shape(x);
  const Val cache = net.input(layer + ".past_" + part, {s[0], s[1], past, s[3]});
  return net.concat(layer + ".all_" + part, {cache, x}, 2);
}

}  // namespace heddle::zoo

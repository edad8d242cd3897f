// BERT (Devlin et al., 2019), uncased, with the pooler and no task head.
#include "blocks.h"
#include "models.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kBertVocabulary = 30522, kBertContext = 512;
constexpr float kBertEpsilon = 1e-12F;

struct BertSize {
  int64_t layers, hidden, heads;
};

// BERT's own epsilon rounds to zero in f16; use about the smallest positive number then.
float epsilon(const Net& net) { return net.float_type() == DType::kF16 ? 6e-8F : kBertEpsilon; }

Val bert_layer(Net& net, const std::string& n, Val x, const BertSize& size, Val mask) {
  const auto part = [&](const char* name) {
    return split_heads(net, n + name, net.linear(n + name, x, size.hidden), size.heads);
  };
  const Val q = part(".q"), k = part(".k"), v = part(".v");
  const Val mixed = merge_heads(net, n + ".mixed", attend(net, n + ".attend", q, k, v, {mask}));
  const Val sum = net.add(n + ".sum1", net.linear(n + ".project", mixed, size.hidden), x);
  const Val y = layer_norm(net, n + ".norm1", sum, epsilon(net));
  const Val wide = gelu_erf(net, n + ".gelu", net.linear(n + ".widen", y, 4 * size.hidden));
  return layer_norm(net, n + ".norm2", net.add(n + ".sum2", net.linear(n + ".narrow", wide, size.hidden), y),
                    epsilon(net));
}

void describe_bert(Net& net, const Values& p, BertSize size) {
  size.layers = p.at("layers");
  const int64_t batch = p.at("batch"), seq = p.at("seq"), h = size.hidden;
  const auto embed = [&](const std::string& name, const std::string& input, int64_t rows) {
    const Val table = net.weight(name + "_table", {.shape = {rows, h}, .fan_in = h});
    return net.gather(name, table, net.input(input, DType::kI64, {batch, seq}));
  };
  const Val words = embed("token", "input_ids", kBertVocabulary), types = embed("type", "token_type_ids", 2);
  const Val places = embed("position", "position_ids", kBertContext);
  const Val mask =
      net.input("attention_mask", {batch, 1, 1, seq});  // added: 0 where visible, very negative elsewhere
  Val x = layer_norm(net, "embedding.norm",
                     net.add("embedding", net.add("embedding.words", words, types), places), epsilon(net));
  for (int64_t i = 0; i < size.layers; ++i) x = bert_layer(net, "layer" + std::to_string(i), x, size, mask);
  net.output(x);
  const Val first = net.reshape("pooler.row", net.slice("pooler.first", x, 1, 0, 1), {batch, h});
  net.output(net.unary("Tanh", "pooler.tanh", net.linear("pooler", first, h)));
}

Model bert_model(const std::string& name, const std::string& text, const BertSize& size) {
  return {{name,
           text,
           "Devlin et al. 2019",
           {batch_param(), {"seq", "tokens of each input", 128, 1, kBertContext}, layers_param(size.layers)}},
          [size](Net& net, const Values& p) { describe_bert(net, p, size); }};
}

}  // namespace

std::vector<Model> bert_models() {
  return {bert_model("bert-base", "BERT base, 110M", {12, 768, 12}),
          bert_model("bert-large", "BERT large, 335M", {24, 1024, 16})};
}

}  // namespace heddle::zoo

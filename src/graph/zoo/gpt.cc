// GPT-2 (Radford et al., 2019) and GPT-3 (Brown et al., 2020), the same decoder; GPT-3 with dense attention
// in all layers. The output layer shares the token table.
#include "blocks.h"
#include "models.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kGptVocabulary = 50257;

struct GptSize {
  int64_t layers, hidden, heads, context;
};

Val gpt_layer(Net& net, const std::string& n, Val x, const GptSize& size, int64_t past, Val mask) {
  const auto qkv = net.split(
      n + ".qkv", net.linear(n + ".attention", layer_norm(net, n + ".norm1", x), 3 * size.hidden), 3, 2);
  const Val q = split_heads(net, n + ".q", qkv[0], size.heads);
  Val k = split_heads(net, n + ".k", qkv[1], size.heads), v = split_heads(net, n + ".v", qkv[2], size.heads);
  k = with_cache(net, n, "k", k, past);
  v = with_cache(net, n, "v", v, past);
  const Val mixed = merge_heads(net, n + ".mixed", attend(net, n + ".attend", q, k, v, {mask}));
  const Val y = net.add(n + ".sum1", x, net.linear(n + ".project", mixed, size.hidden));
  const Val wide = gelu_tanh(net, n + ".gelu",
                             net.linear(n + ".widen", layer_norm(net, n + ".norm2", y), 4 * size.hidden));
  return net.add(n + ".sum2", y, net.linear(n + ".narrow", wide, size.hidden));
}

void describe_gpt(Net& net, const Values& p, GptSize size) {
  size.layers = p.at("layers");
  const int64_t batch = p.at("batch"), seq = p.at("seq"), h = size.hidden;
  const auto [tokens, positions, mask] = decoder_inputs(net, p);
  const Val table = net.weight("token_table", {.shape = {kGptVocabulary, h}, .fan_in = h});
  const Val places = net.weight("position_table", {.shape = {size.context, h}, .fan_in = h});
  Val x = net.add("embedding", net.gather("token", table, tokens), net.gather("position", places, positions));
  for (int64_t i = 0; i < size.layers; ++i)
    x = gpt_layer(net, "layer" + std::to_string(i), x, size, p.at("past"), mask);
  const double macs = static_cast<double>(batch * seq * h) * kGptVocabulary;
  net.output(net.einsum("logits", "bsh,vh->bsv", layer_norm(net, "norm", x), table,
                        {batch, seq, kGptVocabulary}, macs));
}

Model gpt_model(const std::string& name, const std::string& text, const std::string& source,
                const GptSize& size, int64_t seq) {
  return {{name, text, source, decoder_params(size.layers, seq, size.context)},
          [size](Net& net, const Values& p) { describe_gpt(net, p, size); }};
}

}  // namespace

std::vector<Model> gpt_models() {
  const std::string two = "Radford et al. 2019", three = "Brown et al. 2020";
  return {
      gpt_model("gpt2", "GPT-2, 124M", two, {12, 768, 12, 1024}, 1024),
      gpt_model("gpt2-medium", "GPT-2, 355M", two, {24, 1024, 16, 1024}, 1024),
      gpt_model("gpt2-large", "GPT-2, 774M", two + "; SortingHat", {36, 1280, 20, 1024}, 1024),
      gpt_model("gpt2-xl", "GPT-2, 1.56B", two + "; SortingHat", {48, 1600, 25, 1024}, 1024),
      gpt_model("gpt3-125m", "GPT-3 Small", three, {12, 768, 12, 2048}, 2048),
      gpt_model("gpt3-350m", "GPT-3 Medium (Moirai's 330M)", three + "; Moirai", {24, 1024, 16, 2048}, 2048),
      gpt_model("gpt3-760m", "GPT-3 Large", three, {24, 1536, 16, 2048}, 2048),
      gpt_model("gpt3-1.3b", "GPT-3 XL, 24 layers (Moirai's table has 32: layers=32)", three + "; Moirai",
                {24, 2048, 32, 2048}, 2048),
      gpt_model("gpt3-2.7b", "GPT-3, 2.7B", three + "; Moirai", {32, 2560, 32, 2048}, 2048),
      gpt_model("gpt3-6.7b", "GPT-3, 6.7B", three, {32, 4096, 32, 2048}, 2048),
      gpt_model("gpt3-13b", "GPT-3, 13B, with the 5120 features of Moirai's table", three + "; Moirai",
                {40, 5120, 40, 2048}, 2048),
      gpt_model("gpt3-175b", "GPT-3, 175B (DiviML's case study has inputs of 20 tokens: seq=20)",
                three + "; DiviML", {96, 12288, 96, 2048}, 2048),
  };
}

}  // namespace heddle::zoo

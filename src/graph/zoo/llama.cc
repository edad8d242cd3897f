// OpenLLaMA (Geng and Liu, 2023), of LLaMA's architecture (Touvron et al., 2023).
#include <cmath>

#include "blocks.h"
#include "models.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kLlamaVocabulary = 32000, kLlamaContext = 2048;
constexpr float kLlamaEpsilon = 1e-6F;

struct LlamaSize {
  int64_t layers, hidden, heads, wide;
};

struct Rotation {
  Val cosine, sine;
};

// Angles of rotary position embeddings: position times 10000^(-2i/d), the same for both halves of a head.
Rotation angles(Net& net, Val positions, int64_t head) {
  const int64_t batch = net.dim(positions, 0), seq = net.dim(positions, 1);
  const auto rate = [head](int64_t i) {
    return std::pow(10000.0F, -2 * static_cast<float>(i) / static_cast<float>(head));
  };
  const Val rates = net.weight("rotary.rates", {.shape = {head / 2}, .trained = 0, .exact = rate});
  const Val numbers =
      net.reshape("rotary.column", net.cast("rotary.positions", positions), {batch, 1, seq, 1});
  const Val half = net.mul("rotary.half", numbers, rates);
  const Val both = net.concat("rotary.angles", {half, half}, 3);
  return {net.unary("Cos", "rotary.cos", both), net.unary("Sin", "rotary.sin", both)};
}

Val rotate(Net& net, const std::string& n, Val x, const Rotation& r) {
  const int64_t head = net.dim(x, 3);
  const Val low = net.slice(n + ".low", x, 3, 0, head / 2),
            high = net.slice(n + ".high", x, 3, head / 2, head);
  const Val turned = net.concat(n + ".turned", {net.unary("Neg", n + ".minus", high), low}, 3);
  return net.add(n + ".rotated", net.mul(n + ".cos", x, r.cosine), net.mul(n + ".sin", turned, r.sine));
}

Val llama_layer(Net& net, const std::string& n, Val x, const LlamaSize& size, int64_t past, Val mask,
                const Rotation& r) {
  const Val y = rms_norm(net, n + ".norm1", x, kLlamaEpsilon);
  const auto part = [&](const char* name) {
    return split_heads(net, n + name, net.linear(n + name, y, size.hidden, false), size.heads);
  };
  const Val q = rotate(net, n + ".q", part(".q"), r);
  Val k = rotate(net, n + ".k", part(".k"), r), v = part(".v");
  k = with_cache(net, n, "k", k, past);
  v = with_cache(net, n, "v", v, past);
  const Val mixed = merge_heads(net, n + ".mixed", attend(net, n + ".attend", q, k, v, {mask}));
  const Val z = net.add(n + ".sum1", x, net.linear(n + ".project", mixed, size.hidden, false));
  const Val w = rms_norm(net, n + ".norm2", z, kLlamaEpsilon);
  const Val gate = silu(net, n + ".silu", net.linear(n + ".gate", w, size.wide, false));
  const Val wide = net.mul(n + ".gated", gate, net.linear(n + ".up", w, size.wide, false));
  return net.add(n + ".sum2", z, net.linear(n + ".down", wide, size.hidden, false));
}

void describe_llama(Net& net, const Values& p, LlamaSize size) {
  size.layers = p.at("layers");
  const auto [tokens, positions, mask] = decoder_inputs(net, p);
  const Rotation rotation = angles(net, positions, size.hidden / size.heads);
  Val x = net.gather(
      "token", net.weight("token_table", {.shape = {kLlamaVocabulary, size.hidden}, .fan_in = size.hidden}),
      tokens);
  for (int64_t i = 0; i < size.layers; ++i)
    x = llama_layer(net, "layer" + std::to_string(i), x, size, p.at("past"), mask, rotation);
  net.output(net.linear("logits", rms_norm(net, "norm", x, kLlamaEpsilon), kLlamaVocabulary, false));
}

Model llama_model(const std::string& name, const std::string& text, const LlamaSize& size) {
  return {{name, text, "Geng and Liu 2023; SortingHat", decoder_params(size.layers, 1024, kLlamaContext)},
          [size](Net& net, const Values& p) { describe_llama(net, p, size); }};
}

}  // namespace

std::vector<Model> llama_models() {
  return {llama_model("openllama-3b", "OpenLLaMA, 3.43B", {26, 3200, 32, 8640}),
          llama_model("openllama-7b", "OpenLLaMA, 6.74B", {32, 4096, 32, 11008})};
}

}  // namespace heddle::zoo

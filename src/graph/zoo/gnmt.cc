// GNMT (Wu et al., 2016): LSTM encoder and decoder with attention, unrolled over time, so that a planner can
// run layers concurrently as a wavefront. All steps share their layer's weights.
#include "models.h"

namespace heddle::zoo {
namespace {

struct Sizes {
  int64_t batch, hidden, vocabulary, layers, source, target;
};

struct State {
  Val h, c;
};

struct Cell {
  Val input, recurrent, bias;
};

class Gnmt {
 public:
  Gnmt(Net& net, const Sizes& s) : net_(net), s_(s) {
    start_ = net_.input("initial_state", {1, s.batch, s.hidden});  // zeros, for all layers
  }

  Val run() {
    const std::vector<Val> encoded = encode(embed("source", s_.source));
    const Val all = joined("encoder.all", encoded);
    keys_ = net_.linear("attention.keys", all, s_.hidden, false);
    memory_ = net_.transpose("attention.memory", all, {1, 0, 2});
    query_ = weight("attention.query.weight", s_.hidden, s_.hidden);
    score_ = weight("attention.score.weight", s_.hidden, 1);
    const std::vector<Val> decoded = decode(embed("target", s_.target));
    return net_.linear("classifier", joined("decoder.all", decoded), s_.vocabulary);
  }

 private:
  Val weight(const std::string& name, int64_t in, int64_t out) {
    return net_.weight(name, {.shape = {in, out}, .fan_in = in});
  }
  Val joined(const std::string& name, const std::vector<Val>& steps) {
    return steps.size() == 1 ? steps[0] : net_.concat(name, steps, 0);
  }

  // One [1, batch, hidden] value per step.
  std::vector<Val> embed(const std::string& name, int64_t steps) {
    const Val words = net_.gather(name + ".embedding", weight(name + ".table", s_.vocabulary, s_.hidden),
                                  net_.input(name, DType::kI64, {steps, s_.batch}));
    return steps == 1 ? std::vector<Val>{words} : net_.split(name + ".steps", words, steps, 0);
  }

  Cell cell(const std::string& n, int64_t in) {
    return {weight(n + ".input.weight", in, 4 * s_.hidden),
            weight(n + ".recurrent.weight", s_.hidden, 4 * s_.hidden),
            net_.weight(n + ".bias", {.shape = {4 * s_.hidden}, .fill = Fill::kAroundZero})};
  }

  State step(const std::string& n, const Cell& cell, Val x, const State& before) {
    const Val sum = net_.add(n + ".sum", net_.matmul(n + ".input", x, cell.input),
                             net_.matmul(n + ".recurrent", before.h, cell.recurrent));
    const auto gates = net_.split(n + ".gates", net_.add(n + ".biased", sum, cell.bias), 4, 2);
    const Val in = net_.unary("Sigmoid", n + ".in", gates[0]),
              keep = net_.unary("Sigmoid", n + ".keep", gates[1]);
    const Val fresh = net_.unary("Tanh", n + ".fresh", gates[2]),
              out = net_.unary("Sigmoid", n + ".out", gates[3]);
    const Val c = net_.add(n + ".c", net_.mul(n + ".kept", keep, before.c), net_.mul(n + ".new", in, fresh));
    return {net_.mul(n + ".h", out, net_.unary("Tanh", n + ".shown", c)), c};
  }

  std::vector<Val> run_layer(const std::string& n, const std::vector<Val>& xs, bool backwards) {
    const Cell shared = cell(n, net_.shape(xs[0]).back());
    State state{start_, start_};
    std::vector<Val> hs(xs.size());
    for (size_t i = 0; i < xs.size(); ++i) {
      const size_t t = backwards ? xs.size() - 1 - i : i;
      state = step(n + ".t" + std::to_string(t), shared, xs[t], state);
      hs[t] = state.h;
    }
    return hs;
  }

  // The first layer is bidirectional; from the third layer on, a layer's input is added to its output.
  std::vector<Val> encode(const std::vector<Val>& words) {
    const auto forth = run_layer("encoder0.forth", words, false),
               back = run_layer("encoder0.back", words, true);
    std::vector<Val> xs;
    for (size_t t = 0; t < words.size(); ++t)
      xs.push_back(net_.concat("encoder0.t" + std::to_string(t), {forth[t], back[t]}, 2));
    for (int64_t l = 1; l < s_.layers; ++l) {
      const std::string n = "encoder" + std::to_string(l);
      auto hs = run_layer(n, xs, false);
      for (size_t t = 0; l >= 2 && t < hs.size(); ++t)
        hs[t] = net_.add(n + ".t" + std::to_string(t) + ".residual", hs[t], xs[t]);
      xs = std::move(hs);
    }
    return xs;
  }

  // Additive attention: softmax over the source of score . tanh(key + query), then the weighted sum of the
  // memory.
  Val context(const std::string& n, Val h) {
    const Val sum = net_.add(n + ".sum", keys_, net_.matmul(n + ".query", h, query_));
    const Val scores = net_.matmul(n + ".scores", net_.unary("Tanh", n + ".tanh", sum), score_);
    const Val shares = net_.transpose(n + ".row", net_.softmax(n + ".shares", scores, 0), {1, 2, 0});
    return net_.transpose(n + ".context", net_.matmul(n + ".mixed", shares, memory_), {1, 0, 2});
  }

  // The first layer queries the attention; each further layer reads the layer below and the context.
  std::vector<Val> decode(const std::vector<Val>& words) {
    std::vector<Val> xs = run_layer("decoder0", words, false), contexts;
    for (size_t t = 0; t < xs.size(); ++t)
      contexts.push_back(context("attention.t" + std::to_string(t), xs[t]));
    for (int64_t l = 1; l < s_.layers; ++l) {
      const std::string n = "decoder" + std::to_string(l);
      std::vector<Val> both;
      for (size_t t = 0; t < xs.size(); ++t)
        both.push_back(net_.concat(n + ".t" + std::to_string(t) + ".both", {xs[t], contexts[t]}, 2));
      auto hs = run_layer(n, both, false);
      for (size_t t = 0; l >= 2 && t < hs.size(); ++t)
        hs[t] = net_.add(n + ".t" + std::to_string(t) + ".residual", hs[t], xs[t]);
      xs = std::move(hs);
    }
    return xs;
  }

  Net& net_;
  Sizes s_;
  Val start_ = -1, keys_ = -1, memory_ = -1, query_ = -1, score_ = -1;
};

}  // namespace

std::vector<Model> gnmt_models() {
  return {{{"gnmt",
            "GNMT, 8 + 8 layers of LSTM with attention, unrolled",
            "Wu et al. 2016",
            {batch_param(),
             {"seq", "words of the source sentence", 20, 1, 400},
             {"target", "words of the translation", 20, 1, 400},
             {"layers", "layers of the encoder, and of the decoder", 8, 2, 64},
             {"hidden", "features", 1024, 1, 65536},
             {"vocabulary", "words known", 32000, 2, 1 << 24}}},
           [](Net& net, const Values& p) {
             net.output(Gnmt(net, {p.at("batch"), p.at("hidden"), p.at("vocabulary"), p.at("layers"),
                                   p.at("seq"), p.at("target")})
                            .run());
           }}};
}

}  // namespace heddle::zoo

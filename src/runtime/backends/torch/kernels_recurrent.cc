// Recurrent sequences: time steps run one after the other, each for the whole batch.
#include "kernel.h"

namespace heddle::torch_backend {
namespace {

using Activation = at::Tensor (*)(const at::Tensor&);

Activation activation_named(const std::string& name) {
  if (name == "sigmoid") return at::sigmoid;
  if (name == "tanh") return at::tanh;
  if (name == "relu") return at::relu;
  return nullptr;
}

struct Cell {
  std::vector<Activation> activations;
  double clip = 0;  // 0: none
  bool linear_before_reset = false;

  at::Tensor clipped(const at::Tensor& x) const { return clip > 0 ? at::clamp(x, -clip, clip) : x; }
};

// One direction's weights: W [gates * hidden, input], R [gates * hidden, hidden], B.
struct RecurrentWeights {
  at::Tensor w, r, b;
};

struct State {
  at::Tensor hidden, cell;
};

State rnn_step(const Cell& cell, const RecurrentWeights& k, const at::Tensor& x, const State& s) {
  const at::Tensor sum = at::matmul(x, k.w.t()) + at::matmul(s.hidden, k.r.t()) + k.b;
  return {cell.activations[0](cell.clipped(sum)), s.cell};
}

// Gates z, r, h. With linear_before_reset, the last quarter of the bias belongs to the recurrent part.
State gru_step(const Cell& cell, const RecurrentWeights& k, const at::Tensor& x, const State& s) {
  const int64_t n = s.hidden.size(1);
  const at::Tensor from_x = at::matmul(x, k.w.t()) + k.b.narrow(0, 0, 3 * n);
  const at::Tensor gates = from_x.narrow(1, 0, 2 * n) + at::matmul(s.hidden, k.r.narrow(0, 0, 2 * n).t());
  const at::Tensor update = cell.activations[0](cell.clipped(gates.narrow(1, 0, n)));
  const at::Tensor reset = cell.activations[0](cell.clipped(gates.narrow(1, n, n)));
  const at::Tensor r = k.r.narrow(0, 2 * n, n).t();
  const at::Tensor from_h = cell.linear_before_reset
                                ? reset * (at::matmul(s.hidden, r) + k.b.narrow(0, 3 * n, n))
                                : at::matmul(reset * s.hidden, r);
  const at::Tensor candidate = cell.activations[1](cell.clipped(from_x.narrow(1, 2 * n, n) + from_h));
  return {(1 - update) * candidate + update * s.hidden, s.cell};
}

// Gates f, i, c, o.
State lstm_step(const Cell& cell, const RecurrentWeights& k, const at::Tensor& x, const State& s) {
  const int64_t n = s.hidden.size(1);
  const at::Tensor gates = at::matmul(x, k.w.t()) + at::matmul(s.hidden, k.r.t()) + k.b;
  const auto gate = [&](int64_t g, size_t activation) {
    return cell.activations[activation](cell.clipped(gates.narrow(1, g * n, n)));
  };
  const at::Tensor memory = gate(0, 0) * s.cell + gate(1, 0) * gate(2, 1);
  return {gate(3, 0) * cell.activations[2](memory), memory};
}

using Step = State (*)(const Cell&, const RecurrentWeights&, const at::Tensor&, const State&);

struct Sequence {
  Step step = nullptr;
  Cell cell;
  bool has_cell_state = false;
  std::vector<bool> backwards;  // [direction]
};

// Steps beyond a sequence's length do not change the state and output zeros.
Tensors run_sequence(const Sequence& sequence, Operands in) {
  const size_t at = sequence.has_cell_state ? 3 : 2;  // input index of the lengths
  const at::Tensor& x = in[0];                        // [batch, time, input]
  const at::Tensor lengths = in[at].to(at::kLong).unsqueeze(1);
  Tensors outputs, hiddens, cells;
  for (size_t d = 0; d < sequence.backwards.size(); ++d) {
    const auto direction = static_cast<int64_t>(d);
    const RecurrentWeights weights{in[at + 1].select(0, direction), in[at + 2].select(0, direction),
                                   in[at + 3].select(0, direction)};
    State state{in[1].select(1, direction), {}};
    if (sequence.has_cell_state) state.cell = in[2].select(1, direction);
    Tensors steps(static_cast<size_t>(x.size(1)));
    for (int64_t i = 0; i < x.size(1); ++i) {
      const int64_t t = sequence.backwards[d] ? x.size(1) - 1 - i : i;
      const at::Tensor inside = lengths > t;
      const State next = sequence.step(sequence.cell, weights, x.select(1, t), state);
      state.hidden = at::where(inside, next.hidden, state.hidden);
      if (sequence.has_cell_state) state.cell = at::where(inside, next.cell, state.cell);
      steps[static_cast<size_t>(t)] = next.hidden * inside.to(next.hidden.scalar_type());
    }
    outputs.push_back(at::stack(steps, 1));
    hiddens.push_back(state.hidden);
    if (sequence.has_cell_state) cells.push_back(state.cell);
  }
  Tensors result = {at::stack(outputs, 1), at::stack(hiddens, 1)};
  if (sequence.has_cell_state) result.push_back(at::stack(cells, 1));
  return result;
}

Result<Kernel> make_sequence(const OpSite& site, Step step, bool has_cell_state) {
  Sequence sequence{.step = step, .cell = {}, .has_cell_state = has_cell_state, .backwards = {}};
  HEDDLE_ASSIGN_OR_RETURN(const auto direction,
                          site.choice("direction", "forward", {"forward", "reverse", "bidirectional"}));
  if (direction == "forward") sequence.backwards = {false};
  if (direction == "reverse") sequence.backwards = {true};
  if (direction == "bidirectional") sequence.backwards = {false, true};
  HEDDLE_RETURN_IF_ERROR(site.expect_floating(3));
  if (site.rank() > 3 || site.in(0)[1] < 1)
    return site.refuse("its input is " + shape_text(site.in(0)) + "; expected batch, time and features");
  for (const auto& name : site.node.attribute<std::vector<std::string>>("activations", {})) {
    sequence.cell.activations.push_back(activation_named(name));
    if (sequence.cell.activations.back() == nullptr)
      return site.refuse("its activation is '" + name + "'; expected sigmoid, tanh or relu");
  }
  const size_t wanted = step == rnn_step ? 1 : step == gru_step ? 2 : 3;
  if (sequence.cell.activations.size() != wanted)
    return site.refuse("it has " + std::to_string(sequence.cell.activations.size()) +
                       " activations; expected " + std::to_string(wanted));
  sequence.cell.clip = site.node.attribute<double>("clip", 0);
  sequence.cell.linear_before_reset = site.node.attribute<bool>("linear_before_reset", false);
  return Kernel([sequence](Operands in) { return run_sequence(sequence, in); });
}

Result<Kernel> make_rnn(const OpSite& site) { return make_sequence(site, rnn_step, false); }
Result<Kernel> make_gru(const OpSite& site) { return make_sequence(site, gru_step, false); }
Result<Kernel> make_lstm(const OpSite& site) { return make_sequence(site, lstm_step, true); }

constexpr KernelEntry kRecurrentKernels[] = {
    {"GRUSequence", 5, 5, make_gru},
    {"LSTMSequence", 5, 5, make_lstm},
    {"RNNSequence", 5, 5, make_rnn},
};

}  // namespace

std::span<const KernelEntry> recurrent_kernels() { return kRecurrentKernels; }

}  // namespace heddle::torch_backend

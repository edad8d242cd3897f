// Branches and loops; their bodies are separate programs.
#include <algorithm>
#include <memory>
#include <optional>

#include "torch_program.h"

namespace heddle::torch_backend {
namespace {

struct Body : OpBody {
  std::shared_ptr<const TorchProgram> program;

  const std::vector<ValueType>& parameters() const { return ops->input_types; }
  Tensors run(Tensors values) const {
    auto results = program->compute(std::move(values));
    TORCH_CHECK(results.ok(), results.error().to_string());
    return std::move(results).value();
  }
};

Result<Body> body_of(const OpSite& site, const OpBody& given) {
  if (!site.device.is_cpu())
    return site.refuse("what it runs next depends on numbers that only the device has; run it on the host");
  HEDDLE_ASSIGN_OR_RETURN(auto program, TorchProgram::make(*given.ops, site.device));
  for (const BodyOutput& output : given.outputs) {
    const Shape& made = given.ops->output_types[output.result].shape;
    if (!output.joined && made != site.out(output.output))
      return site.refuse("a body makes " + shape_text(made) + " where the graph says " +
                         shape_text(site.out(output.output)));
  }
  return Body{given, std::move(program)};
}

bool true_in(const at::Tensor& condition) { return condition.reshape({}).item<bool>(); }

Result<Kernel> make_if(const OpSite& site) {
  if (site.node.bodies.size() != 2)
    return site.refuse("it has " + std::to_string(site.node.bodies.size()) + " branches; expected two");
  HEDDLE_ASSIGN_OR_RETURN(const Body yes, body_of(site, site.node.bodies[0]));
  HEDDLE_ASSIGN_OR_RETURN(const Body no, body_of(site, site.node.bodies[1]));
  return Kernel([yes, no, count = site.node.outputs.size()](Operands in) {
    const Body& body = true_in(in[0]) ? yes : no;
    Tensors values(body.parameters().size()), out(count);
    for (const BodyInput& i : body.inputs) values[i.parameter] = in[i.input];
    const Tensors results = body.run(std::move(values));
    for (const BodyOutput& o : body.outputs) out[o.output] = results[o.result];
    return out;
  });
}

int64_t from_start(int64_t place, int64_t size) { return place < 0 ? place + size : place; }

// Number of slices between the first and the last element.
Result<int64_t> slices_of(const OpSite& site, const BodyInput& i) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_of(i.axis, site.rank(i.input)));
  if (i.part < 1 || std::abs(i.stride) != i.part)
    return site.refuse("it slices an input by " + std::to_string(i.part) + " elements with a stride of " +
                       std::to_string(i.stride) + "; expected equal numbers");
  const int64_t size = site.in(i.input)[static_cast<size_t>(axis)];
  const int64_t first = from_start(i.start, size), last = from_start(i.end, size);
  return size == 0 ? 0 : (std::abs(last - first) + 1) / i.part;
}

at::Tensor slice_at(const BodyInput& i, const at::Tensor& x, int64_t iteration) {
  const int64_t first = from_start(i.start, x.size(i.axis)) + iteration * i.stride;
  return x.narrow(i.axis, i.stride < 0 ? first - i.part + 1 : first, i.part);
}

struct Loop {
  Body body;
  std::optional<int64_t> count;                        // number of iterations, if known
  std::optional<size_t> count_input, condition_input;  // of Loop: maximum count; whether it runs at all
  size_t outputs = 0;

  bool goes_on(Operands in, const Tensors& results, int64_t done) const {
    if (count) return done < *count;
    if (count_input) {
      const auto most = in[*count_input].reshape({}).item<int64_t>();
      if (most >= 0 && done >= most) return false;
    }
    if (done == 0) return !condition_input || true_in(in[*condition_input]);
    return !body.condition_result || true_in(results[*body.condition_result]);
  }

  Tensors operator()(Operands in) const {
    Tensors results, out(outputs), fed;
    std::vector<Tensors> parts(outputs);
    for (const BodyInput& i : body.inputs) fed.push_back(in[i.input]);
    // Without any iteration, outputs are the values that the first one would have been fed.
    for (const BodyOutput& o : body.outputs)
      for (const BodyInput& i : body.inputs)
        if (i.fed_back == o.result) out[o.output] = in[i.input];
    for (int64_t done = 0; goes_on(in, results, done); ++done) {
      Tensors values(body.parameters().size());
      for (size_t k = 0; k < body.inputs.size(); ++k) {
        const BodyInput& i = body.inputs[k];
        values[i.parameter] = i.sliced ? slice_at(i, fed[k], done) : fed[k];
      }
      if (body.number_parameter) {
        const ValueType& type = body.parameters()[*body.number_parameter];
        values[*body.number_parameter] = at::full(type.shape, done, at::kLong).to(carrier(type.dtype));
      }
      results = body.run(std::move(values));
      for (size_t k = 0; k < fed.size(); ++k)
        if (body.inputs[k].fed_back) fed[k] = results[*body.inputs[k].fed_back];
      for (const BodyOutput& o : body.outputs) {
        if (o.joined)
          parts[o.output].push_back(results[o.result]);
        else
          out[o.output] = results[o.result];
      }
    }
    for (const BodyOutput& o : body.outputs) {
      if (!o.joined) continue;
      Tensors& list = parts[o.output];
      if (o.stride < 0) std::reverse(list.begin(), list.end());
      out[o.output] = at::cat(list, o.axis);
    }
    return out;
  }
};

Error unknown_count(const OpSite& site) {
  return site.refuse("its number of iterations is computed or 0; expected a constant of at least 1");
}

// Joined outputs need a known count of at least one; others such a count, or a value that is fed back.
Status check_outputs(const OpSite& site, const Loop& loop) {
  if (loop.count.value_or(0) >= 1) return {};
  for (const BodyOutput& o : loop.body.outputs) {
    const auto feeds = [&](const BodyInput& i) { return i.fed_back == o.result; };
    if (o.joined || std::none_of(loop.body.inputs.begin(), loop.body.inputs.end(), feeds))
      return unknown_count(site);
  }
  return {};
}

Result<Loop> sliced_loop(const OpSite& site) {
  if (site.node.bodies.size() != 1)
    return site.refuse("it has " + std::to_string(site.node.bodies.size()) + " bodies; expected one");
  HEDDLE_ASSIGN_OR_RETURN(Body body, body_of(site, site.node.bodies[0]));
  Loop loop{.body = std::move(body), .outputs = site.node.outputs.size()};
  for (const BodyInput& i : loop.body.inputs) {
    if (!i.sliced) continue;
    HEDDLE_ASSIGN_OR_RETURN(const int64_t count, slices_of(site, i));
    if (loop.count && *loop.count != count)
      return site.refuse("its inputs have " + std::to_string(*loop.count) + " and " + std::to_string(count) +
                         " slices; expected equal numbers");
    loop.count = count;
  }
  return loop;
}

Result<Kernel> make_tensor_iterator(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const Loop loop, sliced_loop(site));
  if (loop.count.value_or(0) < 1) return unknown_count(site);
  return Kernel(loop);
}

// The body's condition, if it is the same in every iteration.
std::optional<bool> constant_condition(const OpBody& body) {
  if (!body.condition_result) return true;
  const int value = body.ops->outputs[*body.condition_result];
  for (const SegmentConstant& c : body.ops->constants)
    if (c.value == value && c.view.bytes == 1) return *c.view.data != std::byte{0};
  return std::nullopt;
}

// Inputs: maximum count (negative: unlimited), whether to start, then the body's.
Result<Kernel> make_loop(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(Loop loop, sliced_loop(site));
  const auto most = site.integers(0), starts = site.integers(1);
  const auto goes_on = constant_condition(site.node.bodies[0]);
  const bool known = most.ok() && most->size() == 1 && (*most)[0] >= 0 && starts.ok() && starts->size() == 1;
  if (known && (*starts)[0] == 0) {
    loop.count = 0;
  } else if (known && goes_on) {
    loop.count = *goes_on ? (*most)[0] : std::min<int64_t>((*most)[0], 1);
  } else {
    loop.count.reset();
    loop.count_input = 0;
    loop.condition_input = 1;
    for (const BodyInput& i : loop.body.inputs)
      if (i.sliced) return unknown_count(site);
  }
  HEDDLE_RETURN_IF_ERROR(check_outputs(site, loop));
  return Kernel(loop);
}

constexpr KernelEntry kControlKernels[] = {
    {"If", 8, 8, make_if},
    {"Loop", 5, 5, make_loop},
    {"TensorIterator", 1, 1, make_tensor_iterator},
};

}  // namespace

std::span<const KernelEntry> control_kernels() { return kControlKernels; }

}  // namespace heddle::torch_backend
